// The matrix products and the transpose of every page that this CPU runs, and the choice among pages.
//
// Row ops and functions have tests of their own (test_rows.cpp, test_math.cpp).
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "neuron_kernels/host/pages.hpp"

namespace nk = neuron_kernels;
using nk::host::Page;

namespace {

std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Elements (i, j) at data()[i * row_step + j * col_step] among guards. What is not an element is NaN before
/// and must keep its bits; a read of it shows as NaN in a result.
class Matrix {
 public:
  Matrix(int rows, int cols, int row_step, int col_step)
      : rows_(rows), cols_(cols), row_step_(row_step), col_step_(col_step) {
    const int used = rows > 0 && cols > 0 ? (rows - 1) * row_step + (cols - 1) * col_step + 1 : 0;
    values_.assign(static_cast<std::size_t>(used) + 2 * guard, std::bit_cast<float>(guard_bits));
    element_.assign(values_.size(), false);
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < cols; ++j) element_[place(i, j)] = true;
    }
  }

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  int row_step() const { return row_step_; }
  int col_step() const { return col_step_; }
  float* data() { return values_.data() + guard; }
  const float* data() const { return values_.data() + guard; }
  float& operator()(int i, int j) { return values_[place(i, j)]; }
  float operator()(int i, int j) const { return values_[place(i, j)]; }

  template <class Value>
  Matrix& fill(Value value) {
    for (int i = 0; i < rows_; ++i) {
      for (int j = 0; j < cols_; ++j) (*this)(i, j) = value(i, j);
    }
    return *this;
  }

  bool guards_intact() const {
    for (std::size_t p = 0; p < values_.size(); ++p) {
      if (!element_[p] && bits_of(values_[p]) != guard_bits) return false;
    }
    return true;
  }

 private:
  static constexpr int guard = 160;  // longer than the widest tile: 8 vectors of 16
  static constexpr std::uint32_t guard_bits = 0x7fc0dead;

  std::size_t place(int i, int j) const {
    return static_cast<std::size_t>(std::int64_t{guard} + i * row_step_ + j * col_step_);
  }

  int rows_, cols_, row_step_, col_step_;
  std::vector<float> values_;
  std::vector<bool> element_;
};

/// How the elements of an operand lie in memory.
enum class Layout { row_major, column_major, spread };

Matrix matrix(int rows, int cols, Layout layout) {
  if (layout == Layout::row_major) return {rows, cols, cols + 3, 1};
  if (layout == Layout::column_major) return {rows, cols, 1, rows + 5};
  return {rows, cols, 2 * cols + 1, 2};
}

/// Small integers: sums of products of up to 2^18 of them are exact in f32 in any order.
auto integers(std::uint32_t seed) {
  return [random = std::minstd_rand(seed + 1)](int, int) mutable {
    return static_cast<float>(random() % 9) - 4.0f;
  };
}
auto normals(std::uint32_t seed) {
  return [random = std::mt19937(seed), normal = std::normal_distribution<float>()](int, int) mutable {
    return normal(random);
  };
}

void run_gemm(const Page& page, const Matrix& a, const Matrix& b, Matrix& c, bool accumulate) {
  page.gemm(c.rows(), c.cols(), a.cols(), a.data(), a.col_step(), a.row_step(), b.data(), b.row_step(),
            c.data(), c.row_step(), accumulate);
}

void run_gemm_dot(const Page& page, const Matrix& a, const Matrix& b, Matrix& c, bool accumulate) {
  page.gemm_dot(c.rows(), c.cols(), a.cols(), a.data(), a.row_step(), b.data(), b.row_step(), c.data(),
                c.row_step(), c.col_step(), accumulate);
}

/// "" or the first element where c is not start + sum_k a(i, k) b(k, j); b_rows: b is stored as rows along k.
std::string wrong_element(const Matrix& c, const Matrix& start, const Matrix& a, const Matrix& b,
                          bool b_rows) {
  for (int i = 0; i < c.rows(); ++i) {
    for (int j = 0; j < c.cols(); ++j) {
      double want = start(i, j);
      for (int k = 0; k < a.cols(); ++k) {
        want += static_cast<double>(a(i, k)) * static_cast<double>(b_rows ? b(j, k) : b(k, j));
      }
      if (static_cast<double>(c(i, j)) != want) {
        return "c(" + std::to_string(i) + ", " + std::to_string(j) + ") is " + std::to_string(c(i, j)) +
               ", want " + std::to_string(want);
      }
    }
  }
  return "";
}

/// Fills the operands with integers;
/// the result, with and without accumulation, is exact and nothing else changes.
template <class Run>
void check_product(const Page& page, Run run, Matrix a, Matrix b, const Matrix& shape) {
  a.fill(integers(1));
  b.fill(integers(2));
  for (const bool accumulate : {false, true}) {
    Matrix start = shape, c = shape;
    if (accumulate) {
      c = start.fill(integers(3));
    } else {
      start.fill([](int, int) { return 0.0f; });
      c.fill([](int, int) { return std::numeric_limits<float>::quiet_NaN(); });
    }
    run(page, a, b, c, accumulate);
    const std::string wrong = wrong_element(c, start, a, b, run == run_gemm_dot);
    if (wrong.empty() && c.guards_intact()) continue;
    CAPTURE(page.name, c.rows(), c.cols(), a.cols(), a.row_step(), a.col_step(), accumulate, wrong);
    FAIL((wrong.empty() ? "wrote outside c" : "wrong result"));
  }
}

bool same_bits(const Matrix& x, const Matrix& y) {
  for (int i = 0; i < x.rows(); ++i) {
    for (int j = 0; j < x.cols(); ++j) {
      if (bits_of(x(i, j)) != bits_of(y(i, j))) return false;
    }
  }
  return true;
}

/// Memory whose end is followed by a page that cannot be touched.
class Unmapped {
 public:
  Unmapped() : start_(static_cast<char*>(mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, flags, -1, 0))) {
    REQUIRE(start_ != MAP_FAILED);
    REQUIRE(mprotect(start_ + bytes, bytes, PROT_NONE) == 0);
  }
  ~Unmapped() { munmap(start_, 2 * bytes); }
  Unmapped(const Unmapped&) = delete;
  Unmapped& operator=(const Unmapped&) = delete;

  /// The last n floats.
  float* last(int n) { return reinterpret_cast<float*>(start_ + bytes) - n; }

 private:
  static constexpr std::size_t bytes = 1 << 16;  // a multiple of every page size in use
  static constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  char* start_;
};

/// Around every tile size: 4, 6, 14 rows; 1, 2, 4 and 8 vectors of 4, 8 and 16 lanes.
const std::vector<int> sizes = {0,  1,  2,  3,  4,  5,  6,  7,  8,  12, 13, 14,  15,  16,
                                17, 28, 30, 31, 32, 33, 47, 48, 63, 64, 65, 127, 128, 135};

/// Each pair of two sizes occurs for each pair of arguments:
/// the third is picked by the sum of the two indices.
template <class Body>
void for_all_pairs(const std::vector<int>& first, Body body) {
  for (std::size_t x = 0; x < first.size(); ++x) {
    for (std::size_t y = 0; y < sizes.size(); ++y) body(first[x], sizes[y], sizes[(x + y) % sizes.size()]);
  }
}

}  // namespace

TEST_CASE("gemm is the sum over k for every size, layout and start") {
  for (const Page* page : nk::host::all_pages()) {
    for_all_pairs(sizes, [&](int m, int n, int k) {
      for (const Layout layout : {Layout::row_major, Layout::column_major, Layout::spread}) {
        check_product(*page, run_gemm, matrix(m, k, layout), matrix(k, n, Layout::row_major),
                      matrix(m, n, Layout::row_major));
      }
    });
    SUCCEED(page->name);
  }
}

TEST_CASE("gemm is the sum over k for a b beyond the caches") {
  const int n = 137, k = 2003;  // k n > 2^18, where the first rows are treated otherwise
  for (const Page* page : nk::host::all_pages()) {
    for (const int m : {1, 2, 9, 33}) {
      check_product(*page, run_gemm, matrix(m, k, Layout::row_major), matrix(k, n, Layout::row_major),
                    matrix(m, n, Layout::row_major));
    }
    SUCCEED(page->name);
  }
}

TEST_CASE("each element of gemm is one chain over k, whatever the tiling") {
  const int m = 47, n = 151;
  for (const Page* page : nk::host::all_pages()) {
    const bool fused = page->name != std::string("portable");
    for (const int k : {1, 5, 64, 131}) {
      CAPTURE(page->name, k);
      Matrix a = matrix(m, k, Layout::row_major), b = matrix(k, n, Layout::row_major);
      Matrix start = matrix(m, n, Layout::row_major);
      a.fill(normals(1));
      b.fill(normals(2));
      start.fill(normals(3));
      Matrix want = start;
      want.fill([&](int i, int j) {
        float sum = start(i, j);
        for (int l = 0; l < k; ++l) {
          const volatile float product = a(i, l) * b(l, j);  // volatile: rounded by itself under any flags
          sum = fused ? std::fma(a(i, l), b(l, j), sum) : product + sum;
        }
        return sum;
      });
      Matrix whole = start;
      run_gemm(*page, a, b, whole, true);
      CHECK(same_bits(whole, want));

      for (const int rows : {1, 2, 3, 4, 5, 7, 8, 14, 15, 16}) {
        for (const int cols : {1, 3, 8, 16, 17, 48, 64, 128}) {
          CAPTURE(rows, cols);
          Matrix c = start;
          for (int i = 0; i < m; i += rows) {
            for (int j = 0; j < n; j += cols) {
              page->gemm(std::min(rows, m - i), std::min(cols, n - j), k, &a(i, 0), 1, a.row_step(), &b(0, j),
                         b.row_step(), &c(i, j), c.row_step(), true);
            }
          }
          if (!same_bits(c, whole)) FAIL("blocks of m and n change bits");
        }
      }
      Matrix c = start;
      for (int l = 0; l < k; l += 7) {
        page->gemm(m, n, std::min(7, k - l), &a(0, l), 1, a.row_step(), &b(l, 0), b.row_step(), c.data(),
                   c.row_step(), true);
      }
      CHECK(same_bits(c, whole));
    }
  }
}

TEST_CASE("gemm_dot is the sum over k for every size and layout of c") {
  for (const Page* page : nk::host::all_pages()) {
    for_all_pairs({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, [&](int m, int n, int k) {
      for (const Layout layout : {Layout::row_major, Layout::column_major, Layout::spread}) {
        check_product(*page, run_gemm_dot, matrix(m, k, Layout::row_major), matrix(n, k, Layout::row_major),
                      matrix(m, n, layout));
      }
    });
    SUCCEED(page->name);
  }
}

TEST_CASE("the order of gemm_dot's sum depends on k alone") {
  const int m = 9, n = 29;
  for (const Page* page : nk::host::all_pages()) {
    for (const int k : {1, 3, 15, 64, 100, 577}) {
      CAPTURE(page->name, k);
      Matrix a = matrix(m, k, Layout::row_major), b = matrix(n, k, Layout::row_major);
      a.fill(normals(4));
      b.fill(normals(5));
      Matrix whole = matrix(m, n, Layout::row_major);
      run_gemm_dot(*page, a, b, whole, false);
      for (int rows = 1; rows <= m; ++rows) {
        for (const int cols : {1, 2, 4, 5, 8, 11, 29}) {
          Matrix c = matrix(m, n, Layout::row_major);
          for (int i = 0; i < m; i += rows) {
            for (int j = 0; j < n; j += cols) {
              page->gemm_dot(std::min(rows, m - i), std::min(cols, n - j), k, &a(i, 0), a.row_step(),
                             &b(j, 0), b.row_step(), &c(i, j), c.row_step(), 1, false);
            }
          }
          CAPTURE(rows, cols);
          if (!same_bits(c, whole)) FAIL("blocks of m and n change bits");
        }
      }
      for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
          double want = 0, magnitude = 0;
          for (int l = 0; l < k; ++l) {
            const double product = static_cast<double>(a(i, l)) * static_cast<double>(b(j, l));
            want += product;
            magnitude += std::abs(product);
          }
          // Each product is rounded at most once by itself and passes at most k sums (Higham, Accuracy and
          // Stability of Numerical Algorithms, 3.1).
          if (std::abs(static_cast<double>(whole(i, j)) - want) > (k + 1) * 0x1p-24 * magnitude) {
            CAPTURE(i, j, whole(i, j), want);
            FAIL("gemm_dot is beyond its bound");
          }
        }
      }
      SUCCEED();
    }
  }
}

TEST_CASE("no product and no transpose touches memory beyond its operands") {
  Unmapped a_memory, b_memory, c_memory;  // a touch beyond ends the test with a fault
  for (const Page* page : nk::host::all_pages()) {
    for (const int m : {1, 2, 3, 5, 14, 17}) {
      for (const int n : {1, 5, 12, 15, 31, 33, 71, 143}) {
        for (const int k : {1, 7, 19}) {
          const float* a = a_memory.last(m * k);
          const float* b = b_memory.last(k * n);
          float* c = c_memory.last(m * n);
          page->gemm(m, n, k, a, 1, k, b, n, c, n, false);
          page->gemm(m, n, k, a, m, 1, b, n, c, n, true);
          page->gemm_dot(m, n, k, a, k, b, k, c, n, 1, false);
          page->transpose(c, m, b_memory.last(m * n), n, m, n);
        }
      }
    }
    SUCCEED(page->name);
  }
}

TEST_CASE("transpose moves every bit pattern and writes nothing else") {
  for (const Page* page : nk::host::all_pages()) {
    for (const int rows : sizes) {
      for (const int cols : sizes) {
        Matrix src = matrix(rows, cols, Layout::row_major), dst = matrix(cols, rows, Layout::row_major);
        std::uint32_t bits = 0x7f7ffff0;  // passes from finite numbers over Inf to signalling NaNs
        src.fill([&](int, int) { return std::bit_cast<float>(bits++); });
        page->transpose(dst.data(), dst.row_step(), src.data(), src.row_step(), rows, cols);
        bool moved = true;
        for (int i = 0; i < rows; ++i) {
          for (int j = 0; j < cols; ++j) moved = moved && bits_of(dst(j, i)) == bits_of(src(i, j));
        }
        if (moved && dst.guards_intact()) continue;
        CAPTURE(page->name, rows, cols);
        FAIL((moved ? "transpose wrote outside dst" : "transpose is wrong"));
      }
    }
    SUCCEED(page->name);
  }
}

TEST_CASE("pages come lowest first and NEURON_KERNELS_ISA picks among them") {
  const auto pages = nk::host::all_pages();
  REQUIRE(!pages.empty());
  CHECK(pages.front()->name == std::string("portable"));
  for (std::size_t i = 1; i < pages.size(); ++i) CHECK(pages[i]->vector_len > pages[i - 1]->vector_len);
  for (const Page* page : pages) CHECK(page->tile_cols % page->vector_len == 0);

  CHECK(&nk::host::choose_page(nullptr, pages) == pages.back());
  CHECK(&nk::host::choose_page("", pages) == pages.back());
  for (const Page* page : pages) CHECK(&nk::host::choose_page(page->name, pages) == page);
  CHECK(&nk::host::best_page() == &nk::host::choose_page(std::getenv("NEURON_KERNELS_ISA"), pages));
}

TEST_CASE("a NEURON_KERNELS_ISA that cannot be had names what can") {
  const auto refusal = [](const char* isa, std::span<const Page* const> pages) -> std::string {
    try {
      nk::host::choose_page(isa, pages);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  };
  const auto lowest = nk::host::all_pages().first(1);
  CHECK(refusal("avx2", lowest) ==
        "NEURON_KERNELS_ISA: \"avx2\" is above what this CPU runs; allowed here: portable; unset it to use "
        "portable");
  CHECK(refusal("avx512", lowest) ==
        "NEURON_KERNELS_ISA: \"avx512\" is above what this CPU runs; allowed here: portable; unset it to use "
        "portable");
  const std::string unknown = refusal("AVX2", nk::host::all_pages());
  CHECK_THAT(unknown, contains_text("\"AVX2\" is not the name of an instruction set"));
  for (const Page* page : nk::host::all_pages()) CHECK_THAT(unknown, contains_text(page->name));
}
