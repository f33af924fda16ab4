// matmul on the caller's tensors, by the tile program in kernels/matmul.hpp; weights can be packed once.
#pragma once

#include <memory>
#include <vector>

#include "neuron_kernels/host/arguments.hpp"
#include "neuron_kernels/host/launch.hpp"
#include "neuron_kernels/kernels/matmul.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

struct MatmulOptions {
  float alpha = 1.f, beta = 0.f;   // alpha = 0 never reads a and b, beta = 0 never reads dst
  ConstView bias{};                // [n], any dtype; added to each row
  Act activation = Act::identity;  // applied before residual is added
  ConstView residual{};            // [.., m, n], any dtype
  Executor* executor = nullptr;
};

namespace host {

// One call's operands in the form of the kernel, [batch, batch, rows, cols];
// b maybe packed in blocks of columns.
struct MatmulCall {
  View dst{};
  ConstView a{}, b{}, residual{};
};

inline ConstView broadcast(const Arguments& args, const char* name, const ConstView& given, const View& dst) {
  ConstView v = rank4(given);
  const View whole = rank4(dst);
  for (int i = 0; i < 2; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (v.dim(i) != whole.dim(i) && v.dim(i) != 1) {
      args.fail(name, text("shape ", shape_text(given.layout), "; its batch dimensions must be dst's, ",
                           shape_text(dst.layout), ", or 1"));
    }
    if (v.dim(i) == 1) v.layout.stride[at] = 0;
    v.layout.shape[at] = whole.dim(i);
  }
  return v;
}

inline MatmulCall check_matmul(const View& dst, const ConstView& a, const ConstView& b,
                               const MatmulOptions& o) {
  const Arguments args("matmul");
  args.require("dst", dst, 2, max_rank);
  args.require("a", a, 2, max_rank);
  args.require("b", b, 2, max_rank);
  args.require_dtype("b", b, a.dtype, "a's dtype");
  if (a.dim(-1) != b.dim(-2)) {
    args.fail("b", text("shape ", shape_text(b.layout), " after a ", shape_text(a.layout), "; expected ",
                        a.dim(-1), " rows, a's columns"));
  }
  if (dst.dim(-2) != a.dim(-2) || dst.dim(-1) != b.dim(-1)) {
    args.fail("dst", text("shape ", shape_text(dst.layout), "; expected [.., ", a.dim(-2), ", ", b.dim(-1),
                          "] from a ", shape_text(a.layout), " and b ", shape_text(b.layout)));
  }
  args.require_writable("dst", dst);
  if (o.alpha != 0.f) {  // else a and b are not read
    args.require_apart("dst", dst, "a", a);
    args.require_apart("dst", dst, "b", b);
  }
  if (o.bias.given()) {
    args.require_shape("bias", o.bias, {dst.dim(-1)}, "dst's last dimension");
    args.require_apart("dst", dst, "bias", o.bias);
  }
  if (o.residual.given()) {
    args.require("residual", o.residual, 2, max_rank);
    if (o.residual.dim(-2) != dst.dim(-2) || o.residual.dim(-1) != dst.dim(-1)) {
      args.fail("residual",
                text("shape ", shape_text(o.residual.layout), "; expected dst's, ", shape_text(dst.layout)));
    }
    args.require_apart("dst", dst, "residual", o.residual, true);
  }
  MatmulCall call{rank4(dst), {}, {}, {}};
  call.a = broadcast(args, "a", a, dst);
  call.b = broadcast(args, "b", b, dst);
  if (o.residual.given()) call.residual = broadcast(args, "residual", o.residual, dst);
  if (o.alpha == 0.f) {  // a product over no elements is 0 without reading any
    call.a.layout.shape[3] = 0;
    call.b.layout.shape[2] = 0;
  }
  return call;
}

inline void run_matmul(const MatmulCall& c, const MatmulOptions& o, const ConstView& packed) {
  const std::int64_t m = c.dst.dim(2), n = c.dst.dim(3), k = c.a.dim(3);
  if (c.dst.layout.empty()) return;
  // b that runs along k (a torch weight [n, k], transposed) is best read as the stationary operand, in place:
  // dst^T = b^T a^T copies a only, which is the smaller one here.
  const bool turn =
      !packed.given() && m > MatmulBlocking::few_rows && m < n && c.b.stride(2) == 1 && c.b.stride(3) != 1;
  MatmulArgs<Host> args;
  args.a = turn ? transposed(c.b) : c.a;
  args.b = turn ? transposed(c.a) : c.b;
  args.dst = turn ? transposed(c.dst) : c.dst;
  if (c.residual.given()) args.residual = turn ? transposed(c.residual) : c.residual;
  if (o.bias.given()) (turn ? args.col_bias : args.row_bias) = turn ? as_column(o.bias) : as_row(o.bias);
  args.alpha = o.alpha == 0.f ? 1.f : o.alpha;
  args.beta = o.beta;
  args.activation = o.activation;
  const MatmulShape shape = turn ? MatmulShape{n, m, k} : MatmulShape{m, n, k};
  auto blocking = MatmulBlocking::default_for(host_limits, shape);
  if (packed.given()) {
    args.packed_b = packed;
    blocking.n = static_cast<int>(packed.dim(2));
    blocking.program_n = static_cast<int>(round_up(blocking.program_n, blocking.n));
  }
  const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const std::int64_t programs = c.dst.dim(0) * c.dst.dim(1) * ceil_div(shape.m, blocking.program_m) *
                                ceil_div(shape.n, blocking.program_n);
  constexpr double serial_flops = 1 << 18;  // below, waking a second thread costs more than it saves
  launch(o.executor, flops * static_cast<double>(c.dst.dim(0) * c.dst.dim(1)) < serial_flops ? 1 : programs,
         [&](Host& nc) { matmul_kernel(nc, args, blocking); });
}

}  // namespace host

/// dst = activation(alpha a b + beta dst + bias) + residual, summed in f32.
/// shapes: a [.., m, k], b [.., k, n], dst [.., m, n], residual as dst, bias [n]; rank 2 to 4;
/// batch dimensions of a, b and residual are dst's or 1; any size 0 is fine (k = 0: a b is 0)
/// needs: a, b of one dtype, any strides;
/// dst without overlapping elements, apart from all inputs but residual, which it may be (same strides)
/// errors: ShapeError naming the argument; nothing is written then
/// cost: 2 m n k FLOPs
inline void matmul(View dst, ConstView a, ConstView b, const MatmulOptions& options = {}) {
  host::run_matmul(host::check_matmul(dst, a, b, options), options, {});
}

/// A weight [k, n] in the order in which matmul reads it;
/// made once by pack_matrix, any number of calls may share it.
class PackedMatrix {
 public:
  std::int64_t rows() const { return k_; }
  std::int64_t cols() const { return n_; }
  DType dtype() const { return dtype_; }

 private:
  friend PackedMatrix pack_matrix(ConstView b);
  friend void matmul(View dst, ConstView a, const PackedMatrix& b, const MatmulOptions& options);

  ConstView blocks() const {  // [n / block, k, block], rows an odd number of cache lines apart
    const std::int64_t row = host::padded_row(block, dtype_);
    const std::array<std::int64_t, 3> shape{ceil_div(n_, block), k_, block}, stride{k_ * row, row, 1};
    return {data_.get(), dtype_, Layout(shape, stride)};
  }

  static constexpr int block = 128;  // columns; the n of MatmulBlocking for the host
  std::int64_t k_ = 0, n_ = 0;
  DType dtype_ = DType::f32;
  std::shared_ptr<char[]> data_;
};

/// Packs b [k, n], of any strides, for matmul(dst, a, packed). The result does not refer to b's memory.
/// errors: ShapeError; std::bad_alloc
inline PackedMatrix pack_matrix(ConstView b) {
  const host::Arguments args("pack_matrix");
  args.require("b", b, 2, 2);
  PackedMatrix packed;
  packed.k_ = b.dim(0);
  packed.n_ = b.dim(1);
  packed.dtype_ = b.dtype;
  const ConstView blocks = packed.blocks();
  const auto bytes = static_cast<std::size_t>(blocks.dim(0) * blocks.stride(0) * size_of(b.dtype));
  packed.data_ = std::shared_ptr<char[]>(new char[bytes]());
  const host::Page& page = host::current_page();
  for (std::int64_t j = 0; j < blocks.dim(0) && packed.k_ > 0; ++j) {
    const int n =
        static_cast<int>(std::min<std::int64_t>(PackedMatrix::block, packed.n_ - j * PackedMatrix::block));
    const auto src = host::rect(host::Hbm(b).cols(j * PackedMatrix::block, n));
    char* const data = packed.data_.get() + j * blocks.stride(0) * size_of(b.dtype);
    host::copy_rect(page, host::thread_arena(), {data, b.dtype, blocks.stride(1), 1, src.rows, n}, src);
  }
  return packed;
}

/// matmul with a packed b: the same result up to rounding, without reordering b at each call.
/// shapes: a [.., m, k], dst [.., m, n]
/// errors: as matmul
inline void matmul(View dst, ConstView a, const PackedMatrix& b, const MatmulOptions& options = {}) {
  const std::array<std::int64_t, 2> shape{b.k_, b.n_};
  // For the checks: same memory, not the same order.
  const ConstView whole(b.data_.get(), b.dtype_, Layout(shape));
  host::run_matmul(host::check_matmul(dst, a, whole, options), options, b.blocks());
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
