// matmul and matmul_into.
#include "neuron_kernels/matmul.hpp"

#include <algorithm>
#include <vector>

#include "operators.hpp"
#include "tensors.hpp"

namespace neuron_kernels::pytorch {
namespace {

/// The same elements as one matrix [rows, n], when the strides of all dimensions but the last allow it.
std::optional<Layout> as_matrix(const Layout& l) {
  std::int64_t rows = 1, stride = l.stride[static_cast<std::size_t>(l.rank - 2)];
  std::int64_t next = 0;  // stride that the next outer dimension must have
  for (int i = l.rank - 2; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    if (l.shape[at] == 1) continue;
    if (rows == 1) {
      stride = l.stride[at];
    } else if (l.stride[at] != next) {
      return std::nullopt;
    }
    rows *= l.shape[at];
    next = stride * rows;
  }
  const auto last = static_cast<std::size_t>(l.rank - 1);
  return Layout(std::array{rows, l.shape[last]}, std::array{stride, l.stride[last]});
}

struct Operands {
  View dst;
  ConstView a, b, residual;
};

// One matrix product is faster than a batch of products with the same b:
// leading dimensions of a, dst and residual become rows where b has none.
void merge_rows(Operands& o) {
  if (o.b.rank() != 2 || o.a.rank() <= 2 || o.dst.rank() != o.a.rank() || o.dst.layout.empty()) return;
  if (!std::equal(o.a.layout.shape.begin(), o.a.layout.shape.begin() + o.a.rank() - 1,
                  o.dst.layout.shape.begin())) {
    return;
  }
  const auto a = as_matrix(o.a.layout), dst = as_matrix(o.dst.layout);
  if (!a || !dst) return;
  if (o.residual.given()) {
    if (o.residual.rank() != o.dst.rank() || o.residual.layout.shape != o.dst.layout.shape) return;
    const auto residual = as_matrix(o.residual.layout);
    if (!residual) return;
    o.residual.layout = *residual;
  }
  o.a.layout = *a;
  o.dst.layout = *dst;
}

void run(const char* call, const Tensor& dst, const Tensor& a, const Tensor& b, const OptionalTensor& bias,
         const std::string& activation, const OptionalTensor& residual, double alpha, double beta) {
  Operands o{writable(call, "dst", dst), view(call, "a", a), view(call, "b", b),
             view(call, "residual", residual)};
  merge_rows(o);
  MatmulOptions options;
  options.alpha = static_cast<float>(alpha);
  options.beta = static_cast<float>(beta);
  options.bias = view(call, "bias", bias);
  options.activation = activation_of(call, activation);
  options.residual = o.residual;
  options.executor = torch_executor();
  neuron_kernels::matmul(o.dst, o.a, o.b, options);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, const OptionalTensor& bias, const std::string& activation,
              const OptionalTensor& residual, double alpha) {
  dtype_of_tensor("matmul", "a", a);
  const auto as = sizes_of(a), bs = sizes_of(b);
  if (as.size() < 2 || bs.size() < 2 || as.size() > static_cast<std::size_t>(max_rank) ||
      bs.size() > static_cast<std::size_t>(max_rank)) {
    shape_error("matmul", as.size() < 2 || as.size() > static_cast<std::size_t>(max_rank) ? "a" : "b",
                text("a ", sizes_text(a), ", b ", sizes_text(b), "; allowed are ranks 2 to ", max_rank));
  }
  std::vector<std::int64_t> sizes(std::max(as.size(), bs.size()));
  for (std::size_t i = 1; i <= sizes.size(); ++i) {  // i counts from the last dimension
    const std::int64_t m = i <= as.size() ? as[as.size() - i] : 1, n = i <= bs.size() ? bs[bs.size() - i] : 1;
    sizes[sizes.size() - i] = i == 1 ? n : i == 2 ? m : m == 1 ? n : m;  // the kernel checks that sizes agree
  }
  Tensor dst = fresh(a, sizes);
  run("matmul", dst, a, b, bias, activation, residual, alpha, 0.0);
  return dst;
}

void matmul_into(Tensor dst, const Tensor& a, const Tensor& b, const OptionalTensor& bias,
                 const std::string& activation, const OptionalTensor& residual, double alpha, double beta) {
  run("matmul_into", dst, a, b, bias, activation, residual, alpha, beta);
}

}  // namespace neuron_kernels::pytorch
