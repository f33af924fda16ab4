#include "bench/tensor.hpp"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <utility>

#include "neuron_kernels/core/dtype.hpp"

namespace bench {
namespace {

namespace nk = neuron_kernels;

Tensor allocated(std::string name, Type type, std::vector<std::int64_t> shape) {
  Tensor t{std::move(name), type, std::move(shape), {}};
  // Aligned to 64 bytes, each tensor at another distance from a page: where inputs and results have the same
  // one, loads wait for stores that they have nothing to do with (4 KiB aliasing).
  // Results from malloc do not have it either.
  constexpr std::size_t page = 4096, step = 5 * 64;
  static std::size_t count = 0;
  const std::size_t offset = count++ * step % page;
  const auto bytes = static_cast<std::size_t>(t.elements() * size_of(type));
  const std::shared_ptr<char> memory(
      static_cast<char*>(std::aligned_alloc(page, (bytes + 2 * page) / page * page)), std::free);
  t.data = std::shared_ptr<char>(memory, memory.get() + offset);
  return t;
}

void set(Tensor& t, std::int64_t i, float value) {
  if (t.type == Type::f32) {
    std::memcpy(t.data.get() + 4 * i, &value, 4);
  } else {
    const nk::bf16 half = nk::to_bf16(value);
    std::memcpy(t.data.get() + 2 * i, &half, 2);
  }
}

}  // namespace

std::int64_t Tensor::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t dim : shape) n *= dim;
  return n;
}

float Tensor::at(std::int64_t row, std::int64_t col) const {
  const std::int64_t i = row * shape.back() + col;
  if (type == Type::f32) {
    float value = 0;
    std::memcpy(&value, data.get() + 4 * i, 4);
    return value;
  }
  nk::bf16 half;
  std::memcpy(&half, data.get() + 2 * i, 2);
  return nk::to_f32(half);
}

Tensor normal(std::string name, Type type, std::vector<std::int64_t> shape, double scale, double mean) {
  Tensor t = allocated(std::move(name), type, std::move(shape));
  std::seed_seq seed(t.name.begin(), t.name.end());
  std::mt19937 random(seed);
  std::normal_distribution<float> values(static_cast<float>(mean), static_cast<float>(scale));
  for (std::int64_t i = 0; i < t.elements(); ++i) set(t, i, values(random));
  return t;
}

Tensor unwritten(Type type, std::vector<std::int64_t> shape) {
  Tensor t = allocated("dst", type, std::move(shape));
  for (std::int64_t i = 0; i < t.elements(); ++i) set(t, i, std::numeric_limits<float>::quiet_NaN());
  return t;
}

}  // namespace bench
