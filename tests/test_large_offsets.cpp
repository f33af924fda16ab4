// Elements more than 2^31 apart: offsets must be computed in 64 bits.
// The memory is reserved, only its few used pages become real.
#include <sys/mman.h>

#include "attention.hpp"
#include "neuron_kernels/matmul.hpp"
#include "neuron_kernels/rmsnorm.hpp"
#include "reference/matmul.hpp"
#include "reference/rmsnorm.hpp"

namespace test {
namespace {

/// Zeros for an f16 tensor of that shape and strides; its elements are copied from and to a Tensor.
class Sparse {
 public:
  Sparse(const Shape& shape, const Shape& strides) : layout_(shape, strides) {
    for (std::size_t i = 0; i < shape.size(); ++i)
      bytes_ += static_cast<std::size_t>(2 * (shape[i] - 1) * strides[i]);
    memory_ =
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(memory_ != MAP_FAILED);
  }
  Sparse(const Sparse&) = delete;
  Sparse& operator=(const Sparse&) = delete;
  ~Sparse() { munmap(memory_, bytes_); }

  nk::View view() const { return {memory_, DType::f16, layout_}; }
  nk::f16& at(std::int64_t i) const {
    std::int64_t offset = 0;
    for (int axis = layout_.rank - 1; axis >= 0; --axis) {
      const auto d = static_cast<std::size_t>(axis);
      offset += i % layout_.shape[d] * layout_.stride[d];
      i /= layout_.shape[d];
    }
    return static_cast<nk::f16*>(memory_)[offset];
  }
  void set(const Tensor& from) {
    for (std::int64_t i = 0; i < from.size(); ++i) at(i) = nk::to_f16(static_cast<float>(from.at(i)));
  }
  Tensor read(const Shape& shape) const {
    return Tensor::of(DType::f16, shape, {},
                      [&](std::int64_t i) { return static_cast<double>(to_f32(at(i))); });
  }

 private:
  nk::Layout layout_;
  std::size_t bytes_ = 2;
  void* memory_ = nullptr;
};

constexpr std::int64_t far = (std::int64_t{1} << 30) + 16;  // elements; the third row starts past 2^31

TEST_CASE("matmul: rows far apart") {
  Random random(1);
  const Tensor a = Tensor::normal(random, DType::f16, {3, 40}),
               b = Tensor::normal(random, DType::f16, {40, 3});
  Sparse far_a({3, 40}, {far, 1}), far_b({40, 3}, {1, far}), far_dst({3, 3}, {far, 1});
  far_a.set(a), far_b.set(b);
  on_each_page([&] {
    nk::matmul(far_dst.view(), far_a.view(), far_b.view());
    check_near("matmul", "[3, 40] x [40, 3] f16, rows 2^30 + 16 apart", far_dst.read({3, 3}), 0,
               reference::matmul_bound(a.matrix(), b.matrix()));
    nk::matmul(nk::transposed(far_dst.view()), nk::transposed(far_b.view()), nk::transposed(far_a.view()));
    check_near("matmul", "the same transposed", far_dst.read({3, 3}), 0,
               reference::matmul_bound(a.matrix(), b.matrix()));
  });
}

TEST_CASE("rmsnorm: rows far apart") {
  Random random(2);
  const Tensor x = Tensor::normal(random, DType::f16, {3, 40});
  Sparse src({3, 40}, {far, 1}), dst({3, 40}, {far, 1});
  src.set(x);
  on_each_page([&] {
    nk::rmsnorm(dst.view(), src.view());
    check_near("rmsnorm", "[3, 40] f16, rows 2^30 + 16 apart", dst.read({3, 40}), 0,
               reference::rmsnorm_bound(x.matrix(), {}, static_cast<double>(nk::RmsnormOptions().eps)));
  });
}

TEST_CASE("flash_attention: batches far apart") {
  for (const std::int64_t q_len : {1, 20}) {
    Random random(3);
    Attention a = random_attention(random, {2, 2, 1, q_len, 16, 16, 16}, DType::f16, DType::f16);
    const auto place = [](const Tensor& t) {
      const std::int64_t head = t.dim(2) * 16;
      return Shape{2 * far + 32, head, 16, 1};
    };
    Sparse q(a.q.shape(), place(a.q)), k(a.k.shape(), place(a.k)), v(a.v.shape(), place(a.v)),
        dst(a.dst.shape(), place(a.dst));
    q.set(a.q), k.set(a.k), v.set(a.v);
    on_each_page([&] {
      nk::flash_attention(dst.view(), q.view(), k.view(), v.view());
      const Tensor got = dst.read(a.dst.shape());
      for (std::int64_t i = 0; i < 4; ++i) {
        check_near("flash_attention", describe(a) + ", batches more than 2^31 apart", got, i,
                   reference::attention(a.head(i / 2, i % 2), DType::f16).dst);
      }
    });
  }
}

}  // namespace
}  // namespace test
