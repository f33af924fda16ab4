// What the kernel tests share:
// guarded tensors, seeded data, comparison against a bound, and the failure report.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "catch.hpp"
#include "neuron_kernels/core/view.hpp"
#include "neuron_kernels/host/executor.hpp"
#include "neuron_kernels/host/launch.hpp"
#include "neuron_kernels/host/pages.hpp"
#include "reference/tolerance.hpp"

#if defined(__SANITIZE_ADDRESS__)  // g++
#define NEURON_KERNELS_TEST_ASAN 1
#elif defined(__clang__)
#if __has_feature(address_sanitizer)
#define NEURON_KERNELS_TEST_ASAN 1
#endif
#endif
#if defined(NEURON_KERNELS_TEST_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace test {

namespace nk = neuron_kernels;
using nk::DType;
using reference::Matrix;
using Shape = std::vector<std::int64_t>;

inline constexpr DType all_dtypes[] = {DType::f32, DType::bf16, DType::f16};

/// x as dtype t holds it.
inline double rounded(DType t, double x) {
  const float f = static_cast<float>(x);
  return static_cast<double>(t == DType::f32    ? f
                             : t == DType::bf16 ? to_f32(nk::to_bf16(f))
                                                : to_f32(nk::to_f16(f)));
}

/// Seeded data, the same with every compiler (std::normal_distribution is not).
class Random {
 public:
  explicit Random(std::uint64_t seed) : bits_(seed) {}
  /// In (0, 1).
  double uniform() { return (static_cast<double>(bits_() >> 11) + 0.5) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }
  /// In [-most, most].
  double integer(int most) { return std::floor(uniform() * (2 * most + 1)) - most; }

 private:
  std::mt19937_64 bits_;
};

/// A tensor in memory of its own that starts as NaN everywhere: elements, the gaps that strides leave, and
/// guards on both sides. Elements are numbered row-major, whatever the strides.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(DType dtype, const Shape& shape, const Shape& strides = {})
      : layout_(shape, strides), dtype_(dtype), size_(1) {
    std::int64_t low = 0, high = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::int64_t reach = (std::max<std::int64_t>(layout_.shape[i], 1) - 1) * layout_.stride[i];
      (reach < 0 ? low : high) += reach;
      size_ *= shape[i];
    }
    first_ = guard_len - low;
    memory_.resize(static_cast<std::size_t>((2 * guard_len + high - low + 1) * words()), nan_word);
    touched_.resize(memory_.size(), false);
    for (std::int64_t i = 0; i < size_; ++i) {
      for (std::int64_t w = 0; w < words(); ++w) touched_[static_cast<std::size_t>(word_of(i) + w)] = true;
    }
    poison();
  }
  Tensor(const Tensor& other) { *this = other; }
  Tensor& operator=(const Tensor& other) {
    if (this == &other) return *this;
    other.unpoison(), unpoison();
    layout_ = other.layout_, dtype_ = other.dtype_, size_ = other.size_, first_ = other.first_;
    memory_ = other.memory_, touched_ = other.touched_;
    other.poison(), poison();
    return *this;
  }
  ~Tensor() { unpoison(); }

  template <class F>
  static Tensor of(DType dtype, const Shape& shape, const Shape& strides, F&& value_at) {
    Tensor t(dtype, shape, strides);
    for (std::int64_t i = 0; i < t.size(); ++i) t.set(i, value_at(i));
    return t;
  }
  static Tensor normal(Random& random, DType dtype, const Shape& shape, const Shape& strides = {},
                       double scale = 1) {
    return of(dtype, shape, strides, [&](std::int64_t) { return scale * random.normal(); });
  }
  static Tensor constant(DType dtype, const Shape& shape, double value) {
    return of(dtype, shape, {}, [&](std::int64_t) { return value; });
  }

  bool given() const { return layout_.rank != 0; }
  DType dtype() const { return dtype_; }
  std::int64_t size() const { return size_; }
  Shape shape() const { return {layout_.shape.begin(), layout_.shape.begin() + layout_.rank}; }
  std::int64_t dim(int i) const {
    return layout_.shape[static_cast<std::size_t>(i < 0 ? layout_.rank + i : i)];
  }
  nk::View view() { return given() ? nk::View(element(0), dtype_, layout_) : nk::View(); }
  nk::ConstView view() const {
    return given() ? nk::ConstView(const_cast<Tensor*>(this)->element(0), dtype_, layout_) : nk::ConstView();
  }

  double at(std::int64_t i) const {
    const std::uint16_t* p = &memory_[static_cast<std::size_t>(word_of(i))];
    float f = 0;
    if (dtype_ == DType::f32) return std::memcpy(&f, p, sizeof f), static_cast<double>(f);
    return static_cast<double>(dtype_ == DType::bf16 ? to_f32(nk::bf16{*p}) : to_f32(nk::f16{*p}));
  }
  /// Rounds x to the dtype.
  void set(std::int64_t i, double x) {
    std::uint16_t* p = &memory_[static_cast<std::size_t>(word_of(i))];
    const float f = static_cast<float>(x);
    if (dtype_ == DType::f32) std::memcpy(p, &f, sizeof f);
    if (dtype_ == DType::bf16) *p = nk::to_bf16(f).bits;
    if (dtype_ == DType::f16) *p = nk::to_f16(f).bits;
  }

  /// The matrix of the last two dimensions at one index of the others (numbered row-major);
  /// a vector is one row.
  Matrix matrix(std::int64_t batch = 0) const { return part(batch, layout_.rank > 1 ? dim(-2) : 1); }
  /// All rows of the last dimension under each other.
  Matrix rows() const {
    std::int64_t row_count = 1;
    for (int i = 0; i + 1 < layout_.rank; ++i) row_count *= dim(i);
    return part(0, row_count);
  }

  /// Whether gaps and guards are as they were made.
  bool outside_untouched() const {
    unpoison();
    bool same = true;
    for (std::size_t i = 0; i < memory_.size(); ++i) same = same && (touched_[i] || memory_[i] == nan_word);
    poison();
    return same;
  }
  /// Whether no element was written since the tensor was made.
  bool still_nan() const {
    for (std::int64_t i = 0; i < size_; ++i) {
      if (memory_[static_cast<std::size_t>(word_of(i))] != nan_word) return false;
    }
    return true;
  }
  bool same_bits(const Tensor& other) const {
    if (size_ != other.size_ || dtype_ != other.dtype_) return false;
    for (std::int64_t i = 0; i < size_; ++i) {
      if (!same_bits_at(other, i, i)) return false;
    }
    return true;
  }
  bool same_bits_at(const Tensor& other, std::int64_t mine, std::int64_t its) const {
    const auto bytes = static_cast<std::size_t>(nk::size_of(dtype_));
    return std::memcmp(&memory_[static_cast<std::size_t>(word_of(mine))],
                       &other.memory_[static_cast<std::size_t>(other.word_of(its))], bytes) == 0;
  }

 private:
  static constexpr std::uint16_t nan_word = 0x7fe5;  // once or twice in a row a NaN in each dtype
  static constexpr std::int64_t guard_len = 67;  // more than a register; odd, so that data are not aligned

  Matrix part(std::int64_t batch, std::int64_t row_count) const {
    const std::int64_t cols = dim(-1);
    Matrix m(row_count, cols);
    for (std::int64_t i = 0; i < row_count; ++i) {
      for (std::int64_t j = 0; j < cols; ++j) m(i, j) = at((batch * row_count + i) * cols + j);
    }
    return m;
  }
  std::int64_t words() const { return nk::size_of(dtype_) / 2; }
  std::int64_t word_of(std::int64_t i) const {
    std::int64_t offset = first_;
    for (int axis = layout_.rank - 1; axis >= 0; --axis) {
      const auto at = static_cast<std::size_t>(axis);
      offset += i % layout_.shape[at] * layout_.stride[at];
      i /= layout_.shape[at];
    }
    return offset * words();
  }
  void* element(std::int64_t) { return &memory_[static_cast<std::size_t>(first_ * words())]; }

  // Under AddressSanitizer a read of a guard is an error of its own, also where the value would not be used.
  void poison() const {
#if defined(NEURON_KERNELS_TEST_ASAN)
    const auto guard = static_cast<std::size_t>(guard_len * words());
    if (memory_.size() <= 2 * guard) return;
    ASAN_POISON_MEMORY_REGION(memory_.data(), guard * 2);
    ASAN_POISON_MEMORY_REGION(memory_.data() + memory_.size() - guard, guard * 2);
#endif
  }
  void unpoison() const {
#if defined(NEURON_KERNELS_TEST_ASAN)
    ASAN_UNPOISON_MEMORY_REGION(memory_.data(), memory_.size() * 2);
#endif
  }

  nk::Layout layout_;
  DType dtype_ = DType::f32;
  std::int64_t size_ = 0, first_ = 0;
  std::vector<std::uint16_t> memory_;
  std::vector<bool> touched_;  // words that belong to an element
};

// ---------------------------------------------------------------- pages and executors

/// The pages to test: all that run here, or the one that NEURON_KERNELS_ISA names.
inline std::vector<const nk::host::Page*> pages() {
  if (std::getenv("NEURON_KERNELS_ISA") != nullptr) return {&nk::host::best_page()};
  std::vector<const nk::host::Page*> all;
  for (const nk::host::Page* page : nk::host::all_pages()) all.push_back(page);
  return all;
}

inline const char*& page_in_use() {
  static const char* name = "";
  return name;
}

/// Calls body() once with each page in use.
template <class F>
void on_each_page(F&& body) {
  for (const nk::host::Page* page : pages()) {
    const nk::host::PageScope scope(*page);
    page_in_use() = page->name;
    body();
  }
  page_in_use() = "";
}

/// 0: one thread, 1: two, 2: five.
inline nk::Executor& executor(int i) {
  static nk::SerialExecutor serial;
  static nk::ThreadPool two(2), five(5);
  return i == 0 ? static_cast<nk::Executor&>(serial) : i == 1 ? two : five;
}

// ---------------------------------------------------------------- checks

/// "NEURON_KERNELS_ISA=avx2 build/tests/test_matmul 'matmul: empty sizes'": a command line that fails again.
inline std::string repro() {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  const std::string page = *page_in_use() == '\0' ? "" : nk::text("NEURON_KERNELS_ISA=", page_in_use(), " ");
  return nk::text("repro: ", page, error ? "<this program>" : self, " '",
                  Catch::getResultCapture().getCurrentTestName(), "'");
}

/// Counts as one assertion; prints kernel, page and what, and how to see it again.
inline void check(bool right, const std::string& kernel, const std::string& what) {
  if (right) {
    SUCCEED();
  } else {
    const std::string page = *page_in_use() == '\0' ? "" : nk::text(" on page ", page_in_use());
    FAIL_CHECK(kernel << page << ": " << what << "\n  " << repro());
  }
}

/// Whether got is a right answer for want: NaN for NaN, the same infinity, else within bound.
inline bool within(double got, double want, double bound) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want)) return got == want;
  return std::abs(got - want) <= bound;
}

/// Every element of got within the bound of want, and nothing written beside it.
/// `what` tells dtypes and shape.
inline void check_near(const std::string& kernel, const std::string& what, const Tensor& dst,
                       const Matrix& got, const reference::Approx& want) {
  if (got.rows() != want.value.rows() || got.cols() != want.value.cols()) {
    return check(false, kernel, what + ": the test compares shapes that differ");
  }
  check(dst.outside_untouched(), kernel, what + ": wrote outside dst (guard or gap between rows)");
  double worst = 0;
  Eigen::Index wrong = 0, row = 0, col = 0;
  for (Eigen::Index i = 0; i < got.rows(); ++i) {
    for (Eigen::Index j = 0; j < got.cols(); ++j) {
      if (within(got(i, j), want.value(i, j), want.error(i, j))) continue;
      const double ratio = std::abs(got(i, j) - want.value(i, j)) / want.error(i, j);
      const double badness = std::isfinite(ratio) ? ratio : 1e300;
      if (wrong++ == 0 || badness > worst) worst = badness, row = i, col = j;
    }
  }
  check(wrong == 0, kernel,
        nk::text(what, "\n  worst of ", wrong, " wrong elements (of ", got.size(), "): at [", row, ", ", col,
                 "] got ", got(row, col), ", want ", want.value(row, col), " within ", want.error(row, col)));
}

/// The matrix `batch` of dst against want, after the rounding of the store.
inline void check_near(const std::string& kernel, const std::string& what, const Tensor& dst,
                       std::int64_t batch, const reference::Approx& want) {
  check_near(kernel, what, dst, dst.matrix(batch), reference::stored(want, dst.dtype()));
}

/// Every element == want rounded once to dst's dtype.
inline void check_equal(const std::string& kernel, const std::string& what, const Tensor& dst,
                        const Matrix& want, std::int64_t batch = 0) {
  const Matrix once = want.unaryExpr([&](double x) { return rounded(dst.dtype(), x); });
  check_near(kernel, what, dst, dst.matrix(batch), reference::exact(once));
}

/// call must throw a ShapeError that names kernel, one of the arguments ("a|b"), and every text in `shown`;
/// it must leave dst as it was made.
inline void check_rejects(const std::string& kernel, const std::string& arguments,
                          const std::vector<std::string>& shown, const Tensor& dst,
                          const std::function<void()>& call) {
  const std::string wanted = nk::text("ShapeError on argument ", arguments, " ");
  try {
    call();
    return check(false, kernel, wanted + "expected; the call returned");
  } catch (const nk::ShapeError& error) {
    const std::string message = error.what();
    bool named = false;
    for (std::size_t from = 0; from <= arguments.size();) {
      const std::size_t to = std::min(arguments.find('|', from), arguments.size());
      named = named || message.find(kernel + ": argument " + arguments.substr(from, to - from) + ":") == 0;
      from = to + 1;
    }
    check(named, kernel, wanted + "expected; it says: " + message);
    for (const std::string& text : shown) {
      check(message.find(text) != message.npos, kernel,
            wanted + "should show \"" + text + "\"; it says: " + message);
    }
  } catch (const std::exception& error) {
    check(false, kernel, wanted + "expected; thrown was: " + error.what());
  }
  check(dst.still_nan(), kernel, wanted + "came after dst was written");
}

}  // namespace test
