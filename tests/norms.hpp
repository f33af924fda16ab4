// What the tests of layernorm and rmsnorm share:
// one call with all its tensors, and the checks that hold for both.
#pragma once

#include "cases.hpp"
#include "harness.hpp"

namespace test {

/// One call; tensors that are empty are not given. rmsnorm has no bias.
struct NormCall {
  Tensor src, dst;  // dst: as it is before the call
  Tensor weight, bias, residual, sum;
  float eps = 1e-5f;
  nk::Executor* executor = &test::executor(0);
};

struct NormKernel {
  std::string name;
  bool has_bias;
  void (*run)(nk::View dst, nk::ConstView src, nk::View sum, const NormCall& rest);
  reference::Approx (*reference)(const Matrix& x, const Eigen::RowVectorXd& weight,
                                 const Eigen::RowVectorXd& bias, double eps);
};

inline Eigen::RowVectorXd vector_of(const Tensor& t) {
  return t.given() ? Eigen::RowVectorXd(t.matrix().row(0)) : Eigen::RowVectorXd();
}

/// src + residual as the call forms it: added in f32, rounded to src's dtype.
inline Tensor sum_of(const NormCall& call) {
  Tensor x = call.src;
  for (std::int64_t i = 0; call.residual.given() && i < x.size(); ++i) {
    x.set(i,
          static_cast<double>(static_cast<float>(call.src.at(i)) + static_cast<float>(call.residual.at(i))));
  }
  return x;
}

inline std::string describe(const NormCall& c) {
  const auto dtype = [](const Tensor& t) { return nk::name_of(t.dtype()); };
  std::string s =
      nk::text(nk::shape_text(c.src.view().layout), " ", dtype(c.src), " to ", dtype(c.dst), ", eps ", c.eps);
  if (c.weight.given()) s += nk::text(", weight ", dtype(c.weight));
  if (c.bias.given()) s += nk::text(", bias ", dtype(c.bias));
  if (c.residual.given()) s += c.sum.given() ? ", residual, sum" : ", residual";
  return s;
}

/// The call on each page against the reference; `sum`, where given, bit for bit.
inline void check_norm(const NormKernel& kernel, const NormCall& call, const std::string& more = "") {
  const Tensor x = sum_of(call);
  const auto want =
      kernel.reference(x.rows(), vector_of(call.weight), vector_of(call.bias), static_cast<double>(call.eps));
  on_each_page([&] {
    Tensor dst = call.dst, sum = call.sum;
    kernel.run(dst.view(), call.src.view(), sum.view(), call);
    check_near(kernel.name, describe(call) + more, dst, dst.rows(), reference::stored(want, dst.dtype()));
    if (sum.given())
      check_near(kernel.name, "sum of " + describe(call) + more, sum, sum.rows(), reference::exact(x.rows()));
  });
}

/// A call without options on these rows; dst of the same dtype.
inline NormCall plain_call(const Tensor& src) {
  NormCall call;
  call.src = src;
  call.dst = Tensor(src.dtype(), src.shape());
  return call;
}

inline void check_norm_pairs(const NormKernel& kernel) {
  enum Options { none, weighted, biased, added, added_with_sum, all, option_count };
  const std::vector<std::int64_t> rows = {1, 2, 3, 5, 8, 17, 129};
  const std::vector<std::int64_t> sizes =
      joined(joined(small_sizes, step_sizes), {255, 511, 512, 513, 577, 1023, 3584});
  std::uint64_t seed = 1;
  for (const auto& row : pairwise({rows.size(), sizes.size(), 3, 3, 5, 5, option_count, 4, 3})) {
    Random random(++seed);
    const auto n = sizes[row[1]];
    const DType in = all_dtypes[row[2]], out = all_dtypes[row[3]];
    const Lie lie_in = input_lies[row[4]], lie_out = output_lies[row[5]];
    const auto option = static_cast<Options>(row[6]);
    const std::array<Shape, 4> shapes = {
        {{n}, {rows[row[0]], n}, {2, rows[row[0]], n}, {2, 1, rows[row[0]], n}}};
    const Shape& shape = shapes[row[7]];
    const Shape strides_in = strides_for(shape, lie_in);
    NormCall c;
    c.src = Tensor::normal(random, in, shape, strides_in);
    c.dst = Tensor(out, shape, strides_for(shape, lie_out));
    c.executor = &executor(static_cast<int>(row[8]));
    const auto vector = [&] {
      return Tensor::normal(random, all_dtypes[seed % 3], {n}, {seed % 4 == 0 ? 2 : 1});
    };
    if (option == weighted || option == biased || option == all) c.weight = vector();
    if (kernel.has_bias && (option == biased || option == all)) c.bias = vector();
    if (option >= added) c.residual = Tensor::normal(random, in, shape, strides_for(shape, lie_out));
    if (option >= added_with_sum) c.sum = Tensor(in, shape, strides_for(shape, lie_in));
    check_norm(kernel, c, nk::text(", lies ", name_of(lie_in), "/", name_of(lie_out)));
  }
}

/// dst on top of src, sum on top of residual or of src: allowed at equal strides.
inline void check_norm_in_place(const NormKernel& kernel) {
  for (const DType dtype : all_dtypes) {
    for (const Lie lie : {Lie::packed, Lie::padded, Lie::transposed, Lie::upside_down}) {
      for (const bool with_sum : {false, true}) {
        const Shape shape = {3, 7, 577};
        Random random(7);
        NormCall c;
        c.src = Tensor::normal(random, dtype, shape, strides_for(shape, lie));
        c.weight = Tensor::normal(random, DType::f32, {577});
        c.dst = c.src;
        if (with_sum) c.residual = Tensor::normal(random, dtype, shape, strides_for(shape, lie));
        const Tensor x = sum_of(c);
        const auto want = kernel.reference(x.rows(), vector_of(c.weight), {}, static_cast<double>(c.eps));
        on_each_page([&] {
          NormCall call = c;  // dst on src
          kernel.run(call.src.view(), call.src.view(), {}, call);
          check_near(kernel.name, nk::text("in place, ", describe(c), ", ", name_of(lie)), call.src,
                     call.src.rows(), reference::stored(want, dtype));
          for (const bool on_src : {false, true}) {
            if (!with_sum) continue;
            call = c;
            Tensor& sum = on_src ? call.src : call.residual;
            kernel.run(call.dst.view(), call.src.view(), sum.view(), call);
            const std::string what =
                nk::text("sum on ", on_src ? "src" : "residual", ", ", describe(c), ", ", name_of(lie));
            check_near(kernel.name, what, call.dst, call.dst.rows(), reference::stored(want, dtype));
            check_near(kernel.name, what, sum, sum.rows(), reference::exact(x.rows()));
          }
        });
      }
    }
  }
}

inline void check_norm_extremes(const NormKernel& kernel) {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t n : {1, 7, 64, 131}) {
      Random random(8);
      const auto rows = [&](auto value_at) {
        check_norm(kernel, plain_call(Tensor::of(dtype, {3, n}, {}, value_at)));
      };
      rows([](std::int64_t) { return 0.0; });
      rows([](std::int64_t) { return 3.0; });
      rows([&](std::int64_t i) { return i == 1 ? 1000 : 0.01 * random.normal(); });
      // Denormals.
      rows([&](std::int64_t i) {
        return (dtype == DType::f16 ? 0x1p-20 : 0x1p-130) * static_cast<double>(i % 5);
      });
      rows([&](std::int64_t) { return (dtype == DType::f16 ? 1e4 : 1e15) * random.normal(); });
      rows([&](std::int64_t) { return 1e-3 * random.normal(); });  // as small as the root of eps
    }
  }
}

inline void check_norm_empty(const NormKernel& kernel) {
  for (const Shape& shape : {Shape{0, 5}, Shape{4, 0}, Shape{2, 0, 3}, Shape{0}, Shape{0, 2, 1, 0}}) {
    const NormCall c = plain_call(Tensor(DType::f32, shape));
    on_each_page([&] {
      Tensor dst = c.dst;
      kernel.run(dst.view(), c.src.view(), {}, c);
      check(dst.outside_untouched(), kernel.name, describe(c) + ": wrote a dst of no elements");
    });
  }
}

/// A NaN makes its row NaN and no other.
inline void check_norm_nan(const NormKernel& kernel) {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t n : {1, 9, 64, 577}) {
      for (const std::int64_t at : {std::int64_t{0}, n / 2, n - 1}) {
        Random random(9);
        NormCall c = plain_call(Tensor::normal(random, dtype, {3, n}));
        c.src.set(n + at, std::numeric_limits<double>::quiet_NaN());
        on_each_page([&] {
          Tensor dst = c.dst;
          kernel.run(dst.view(), c.src.view(), {}, c);
          const Matrix y = dst.rows();
          check(y.row(1).array().isNaN().all() && y.row(0).allFinite() && y.row(2).allFinite(), kernel.name,
                nk::text(describe(c), ": NaN at [1, ", at, "] must make row 1 NaN and no other"));
        });
      }
    }
  }
}

/// The rows of a large tensor, which are stored past the caches, are bit for bit those of its two halves, which
/// are not.
inline void check_norm_large(const NormKernel& kernel) {
  for (const std::int64_t n : {768, 1001}) {
    const std::int64_t half = (8 << 20) / (2 * n * size_of(DType::f32)) + 1;
    Random random(10);
    NormCall c;
    c.src = Tensor::normal(random, DType::f32, {2 * half, n});
    for (const bool weighted : {false, true}) {
      if (weighted) c.weight = Tensor::normal(random, DType::f32, {n});
      if (weighted && kernel.has_bias) c.bias = Tensor::normal(random, DType::f32, {n});
      on_each_page([&] {
        c.executor = &executor(0);
        Tensor want(DType::f32, {2 * half, n});
        for (const std::int64_t row : {std::int64_t{0}, half}) {
          const auto rows = [&](auto view) {
            view.data = static_cast<const float*>(view.data) + row * n;
            view.layout.shape[0] = half;
            return view;
          };
          kernel.run(rows(want.view()), rows(std::as_const(c.src).view()), {}, c);
        }
        for (const int threads : {0, 1}) {
          c.executor = &executor(threads);
          Tensor dst(DType::f32, {2 * half, n}), both = c.src;
          kernel.run(dst.view(), c.src.view(), {}, c);
          kernel.run(both.view(), both.view(), {}, c);
          check(dst.same_bits(want) && both.same_bits(want), kernel.name,
                describe(c) + ": not as its halves");
          check(dst.outside_untouched(), kernel.name, describe(c) + ": wrote beside dst");
        }
      });
    }
  }
}

}  // namespace test
