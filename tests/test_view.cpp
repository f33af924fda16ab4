// Views and layouts: what they hold, how they transpose, and which shapes they refuse.
#include "neuron_kernels/core/view.hpp"

#include <array>

#include "catch.hpp"

namespace nk = neuron_kernels;

namespace {

using Dims = std::vector<std::int64_t>;

template <class F>
std::string message_of(F&& make) {
  try {
    make();
  } catch (const nk::ShapeError& error) {
    return error.what();
  }
  return "no ShapeError";
}

TEST_CASE("view: row-major strides unless given") {
  const float data[24] = {};
  const nk::ConstView v(data, {2, 3, 4});
  CHECK(v.given());
  CHECK(v.data == data);
  CHECK(v.dtype == nk::DType::f32);
  CHECK(v.rank() == 3);
  CHECK((v.dim(0) == 2 && v.dim(1) == 3 && v.dim(2) == 4));
  CHECK((v.stride(0) == 12 && v.stride(1) == 4 && v.stride(2) == 1));
  CHECK((v.dim(-1) == 4 && v.dim(-3) == 2 && v.stride(-1) == 1 && v.stride(-2) == 4));
  CHECK(nk::shape_text(v.layout) == "[2, 3, 4]");

  const nk::ConstView strided(data, {2, 3}, {-7, 0});
  CHECK((strided.stride(0) == -7 && strided.stride(1) == 0));
}

TEST_CASE("view: takes its dtype from the elements") {
  nk::bf16 b[2] = {};
  nk::f16 h[2] = {};
  CHECK(nk::ConstView(b, {2}).dtype == nk::DType::bf16);
  CHECK(nk::View(h, {2}).dtype == nk::DType::f16);
  CHECK(nk::View(h, {2}).writable() == h);
}

TEST_CASE("view: default-made means not given; no elements means given and empty") {
  CHECK_FALSE(nk::ConstView().given());
  CHECK_FALSE(nk::View().given());
  CHECK(nk::ConstView().rank() == 0);
  const nk::ConstView none(static_cast<const float*>(nullptr), {3, 0, 2});
  CHECK(none.given());
  CHECK(none.layout.empty());
  CHECK_FALSE(nk::ConstView(static_cast<const float*>(nullptr), {3}).layout.empty());
  // Never 0: gaps do not depend on size 0.
  CHECK((none.stride(0) == 2 && none.stride(1) == 2 && none.stride(2) == 1));
}

TEST_CASE("view: transposed exchanges two dimensions of the same memory") {
  float data[24] = {};
  const nk::View v(data, {2, 3, 4});
  const nk::View t = nk::transposed(v);
  CHECK((t.data == data && t.dim(1) == 4 && t.dim(2) == 3 && t.stride(1) == 1 && t.stride(2) == 4));
  const nk::View o = nk::transposed(v, 0, -1);
  CHECK((o.dim(0) == 4 && o.dim(2) == 2 && o.stride(0) == 1 && o.stride(2) == 12));
  const nk::View back = nk::transposed(nk::transposed(v));
  CHECK((back.layout.shape == v.layout.shape && back.layout.stride == v.layout.stride));
}

TEST_CASE("view: refuses ranks, sizes and strides that cannot be") {
  const float data[1] = {};
  const auto layout = [](const Dims& dims, const Dims& strides = {}) { return nk::Layout(dims, strides); };
  CHECK_THAT(message_of([&] { layout({}); }),
             contains_text("view: argument shape: rank 0") && contains_text("1 to 4"));
  CHECK_THAT(message_of([&] {
               layout({1, 1, 1, 1, 1});
             }),
             contains_text("view: argument shape: rank 5") && contains_text("1 to 4"));
  CHECK_THAT(message_of([&] { layout({2, -3}); }), contains_text("size -3 of dimension 1"));
  CHECK_THAT(message_of([&] {
               layout({2, 3}, {1});
             }),
             contains_text("view: argument strides: 1 strides for 2 dimensions"));
  CHECK_THAT(message_of([&] { layout({2}, {1, 1}); }), contains_text("2 strides for 1 dimensions"));
  CHECK_THAT(message_of([&] { nk::ConstView(data, {1, 1, 1, 1, 1}); }), contains_text("rank 5"));
  const std::int64_t big = std::int64_t{1} << 31;
  CHECK_THAT(message_of([&] { layout({big, big, 2}); }), contains_text("2^63"));
  CHECK_THAT(message_of([&] { layout({4, big, big}); }), contains_text("2^63"));
  CHECK_NOTHROW(layout({big, big}));     // 2^62
  CHECK_NOTHROW(layout({big, 0, big}));  // no elements
}

}  // namespace
