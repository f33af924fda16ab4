// Rows and columns with NaN guards, and their comparison: what the tests of a page's row ops share.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "neuron_kernels/host/pages.hpp"

namespace nk = neuron_kernels;
using nk::Act;
using nk::Alu;
using nk::host::Page;

namespace rows_test {

constexpr int guard = 16;
inline std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Rows with NaN before, between and after them. Repeated: one row in memory, read `rows` times at step 0.
struct Matrix {
  Matrix(int rows_, int n_, int gap = 5, bool repeated = false)
      : rows(rows_),
        n(n_),
        step(repeated ? 0 : n_ + gap),
        store(static_cast<std::size_t>((rows_ + 1) * (n_ + gap) + 2 * guard), nan()) {}

  static float nan() { return std::numeric_limits<float>::quiet_NaN(); }
  float* data() { return store.data() + guard; }
  float& at(int i, int j) { return data()[i * step + j]; }
  nk::host::RowsIn in() { return {data(), step}; }
  nk::host::RowsOut dst() { return {data(), step}; }

  Matrix& fill(unsigned seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.0f, 2.0f);
    for (int i = 0; i < (step == 0 ? 1 : rows); ++i) {
      for (int j = 0; j < n; ++j) at(i, j) = normal(random);
    }
    return *this;
  }
  /// All floats outside the rows are the NaN that they were made as.
  bool guards_intact() {
    std::vector<float> other = store;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < n; ++j) other[static_cast<std::size_t>(guard + i * step + j)] = nan();
    }
    for (const float x : other) {
      if (bits_of(x) != bits_of(nan())) return false;
    }
    return true;
  }

  int rows, n;
  std::int64_t step;
  std::vector<float> store;
};

/// One value per row at a step of 3, or one for all at step 0.
struct Column {
  Column(int rows, unsigned seed, std::int64_t step_ = 3)
      : step(step_), store(static_cast<std::size_t>(3 * rows + 1), Matrix::nan()) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal(0.5f, 1.0f);
    for (int i = 0; i < rows + 1; ++i) store[static_cast<std::size_t>(i * step)] = normal(random);
  }
  float at(int i) const { return store[static_cast<std::size_t>(i * step)]; }
  nk::host::ColumnIn in() const { return {store.data(), step}; }

  std::int64_t step;
  std::vector<float> store;
};

inline float apply(Alu op, float a, float b) {
  switch (op) {
    case Alu::add:
      return a + b;
    case Alu::subtract:
      return a - b;
    case Alu::multiply:
      return a * b;
    case Alu::max:
      return a > b ? a : b;
    case Alu::min:
      return a < b ? a : b;
  }
  return 0;
}

inline bool has_fma(const Page& page) { return std::string(page.name) != "portable"; }
inline float multiply_add(const Page& page, float a, float b, float c) {
  const volatile float product = a * b;  // volatile: the compiler may not round once for twice
  return has_fma(page) ? std::fma(a, b, c) : product + c;
}

/// Additions that one term of a row's sum goes through:
/// 64 of one chain, one a block, the tail, the tree over lanes.
inline int sum_depth(const Page& page, int n) { return 64 + n / (64 * page.vector_len) + 4 + 8; }

inline std::vector<int> lengths(const Page& page) {
  const int len = page.vector_len;
  return {0, 1, 2, 3, len - 1, len, len + 1, 31, 67, 4 * len - 1, 4 * len, 4 * len + 1, 127, 1000};
}
inline std::vector<Alu> all_alu() { return {Alu::add, Alu::subtract, Alu::multiply, Alu::max, Alu::min}; }

/// got(i, j) == want(i, j) for every element, in bits, and nothing written outside.
template <class Want>
inline void check_equal(Matrix& got, Want want) {
  int wrong = 0;
  for (int i = 0; i < got.rows; ++i) {
    for (int j = 0; j < got.n; ++j) {
      const float w = want(i, j);
      if (bits_of(got.at(i, j)) == bits_of(w)) continue;
      if (wrong++ == 0)
        UNSCOPED_INFO("first wrong: (" << i << ", " << j << ") got " << got.at(i, j) << ", want " << w);
    }
  }
  CHECK(wrong == 0);
  CHECK(got.guards_intact());
}

}  // namespace rows_test
