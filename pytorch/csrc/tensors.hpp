// What every operator needs: torch tensors as views, fresh results, PyTorch's threads as an Executor.
//
// Only libtorch's stable ABI is used (torch/csrc/stable), so one binary serves PyTorch 2.10 and later.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include "neuron_kernels/core/error.hpp"
#include "neuron_kernels/core/ops.hpp"
#include "neuron_kernels/core/view.hpp"
#include "neuron_kernels/host/executor.hpp"

namespace neuron_kernels::pytorch {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

/// Runs workers on PyTorch's threads:
/// torch.set_num_threads is honoured, and a call inside a parallel region is serial.
class TorchExecutor final : public Executor {
 public:
  int concurrency() const override { return static_cast<int>(torch::stable::get_num_threads()); }
  void run(int n, Work work, void* context) override {
    if (n == 1) return work(context, 0);
    torch::stable::parallel_for(0, n, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) work(context, static_cast<int>(i));
    });
  }
};

inline Executor* torch_executor() {
  static TorchExecutor executor;
  return &executor;
}

inline std::span<const std::int64_t> sizes_of(const Tensor& t) {
  return {t.sizes().data(), t.sizes().size()};
}
inline std::span<const std::int64_t> strides_of(const Tensor& t) {
  return {t.strides().data(), t.strides().size()};
}

/// "[2, 8, 64]" for messages.
inline std::string sizes_text(const Tensor& t) {
  std::string s = "[";
  for (const auto n : sizes_of(t)) s += (s.size() > 1 ? ", " : "") + std::to_string(n);
  return s + "]";
}

/// Errors: ShapeError on a dtype that the kernels do not compute with.
inline DType dtype_of_tensor(std::string_view call, std::string_view argument, const Tensor& t) {
  switch (t.scalar_type()) {
    case ScalarType::Float:
      return DType::f32;
    case ScalarType::BFloat16:
      return DType::bf16;
    case ScalarType::Half:
      return DType::f16;
    default:
      shape_error(call, argument,
                  text("dtype ", torch::headeronly::toString(t.scalar_type()),
                       "; allowed are Float, BFloat16, Half; convert it first, e.g. with .float()"));
  }
}

inline ConstView view(std::string_view call, std::string_view argument, const Tensor& t) {
  const DType dtype = dtype_of_tensor(call, argument, t);
  if (t.dim() < 1 || t.dim() > max_rank) {
    shape_error(call, argument,
                text("rank ", t.dim(), "; allowed are ranks 1 to ", max_rank, "; reshape it"));
  }
  return {t.const_data_ptr(), dtype, Layout(sizes_of(t), strides_of(t))};
}

/// A tensor that was not passed is a view that is not given.
inline ConstView view(std::string_view call, std::string_view argument, const std::optional<Tensor>& t) {
  return t ? view(call, argument, *t) : ConstView();
}

/// A new tensor on like's device, with its dtype unless another is given (as libtorch numbers them).
/// Row-major without gaps unless strides are given.
/// A direct call: torch::stable::new_empty goes through the dispatcher.
inline Tensor fresh(const Tensor& like, std::span<const std::int64_t> sizes,
                    std::span<const std::int64_t> strides = {}, std::optional<std::int32_t> dtype = {}) {
  std::array<std::int64_t, 64> dense;  // PyTorch's largest rank
  if (strides.empty()) {
    std::int64_t step = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      dense[i] = step;
      step *= std::max<std::int64_t>(sizes[i], 1);
    }
    strides = {dense.data(), sizes.size()};
  }
  std::int32_t type = 0, device = 0, index = 0;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(like.get(), &type));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device));
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_index(like.get(), &index));
  AtenTensorHandle t = nullptr;
  STABLE_TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(static_cast<std::int64_t>(sizes.size()),
                                                         sizes.data(), strides.data(), dtype.value_or(type),
                                                         device, index, &t));
  return Tensor(t);
}

inline View writable(std::string_view call, std::string_view argument, const Tensor& t) {
  const ConstView v = view(call, argument, t);
  return {t.mutable_data_ptr(), v.dtype, v.layout};
}

/// Tensor of any rank as a tensor of the ranks that kernels take:
/// higher ranks become [rows, n], copied if they must.
inline Tensor at_most_rank_4(const Tensor& t) {
  if (t.dim() <= max_rank) return t;
  const std::array<std::int64_t, 2> rows = {-1, t.size(t.dim() - 1)};
  return t.numel() == 0 ? t : torch::stable::reshape(t, {rows.data(), rows.size()});
}

/// Errors: ShapeError unless both have the same sizes.
inline void require_same_sizes(std::string_view call, std::string_view argument, const Tensor& t,
                               std::string_view other, const Tensor& o) {
  const auto a = sizes_of(t), b = sizes_of(o);
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) {
    shape_error(call, argument,
                text("sizes ", sizes_text(t), "; must equal those of ", other, ", ", sizes_text(o)));
  }
}

/// Errors: ShapeError unless both have the same dtype.
inline void require_same_dtype(std::string_view call, std::string_view argument, const Tensor& t,
                               std::string_view other, const Tensor& o) {
  if (t.scalar_type() != o.scalar_type()) {
    shape_error(call, argument,
                text("dtype ", torch::headeronly::toString(t.scalar_type()), "; must equal that of ", other,
                     ", ", torch::headeronly::toString(o.scalar_type()), "; convert one of them"));
  }
}

/// Errors: ShapeError on a name that is none of those listed in it.
inline Act activation_of(std::string_view call, std::string_view name) {
  for (const Act f :
       {Act::identity, Act::relu, Act::silu, Act::gelu, Act::gelu_tanh, Act::sigmoid, Act::tanh}) {
    if (name == name_of(f)) return f;
  }
  shape_error(call, "activation",
              text("\"", name, "\"; allowed are identity, relu, silu, gelu, gelu_tanh, sigmoid, tanh"));
}

}  // namespace neuron_kernels::pytorch
