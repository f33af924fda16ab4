// Mean and variance of every page: accuracy against long double, equal rows, rows at any step.
#include "rows.hpp"

using namespace rows_test;

namespace {

/// Layer normalisation (eps 1e-5) from the page's mean and variance, against long double.
/// Allowed: half of the mean's last place over sigma, which rounding it to f32 costs, 5e-5,
/// and 1e-6 of the value (8 f32 ULP) for outliers.
void check_normalises(const Page& page, const std::vector<float>& x) {
  const int n = static_cast<int>(x.size());
  float mean = Matrix::nan(), variance = mean;
  page.stats({&mean, 0}, {&variance, 0}, {x.data(), 0}, 1, n);
  long double sum = 0, squares = 0;
  for (const float v : x) sum += static_cast<long double>(v);
  const auto exact_mean = static_cast<double>(sum / n);
  for (const float v : x)
    squares += (static_cast<long double>(v) - sum / n) * (static_cast<long double>(v) - sum / n);
  const auto exact_variance = static_cast<double>(squares / n);
  const double sigma = std::sqrt(exact_variance + 1e-5);
  const double last_place =
      std::nextafter(std::fabs(mean), std::numeric_limits<float>::infinity()) - std::fabs(mean);
  INFO(page.name << " n " << n << " mean " << mean << " exact " << exact_mean << " variance " << variance
                 << " exact " << exact_variance);
  double worst = 0;  // error over bound
  for (const float v : x) {
    const double got = (static_cast<double>(v) - static_cast<double>(mean)) /
                       std::sqrt(static_cast<double>(variance) + 1e-5);
    const double want = (static_cast<double>(v) - exact_mean) / sigma;
    const double bound = 0.5 * last_place / sigma + 5e-5 + 1e-6 * std::fabs(want);
    worst = std::fmax(worst, std::fabs(got - want) / bound);
  }
  CHECK(worst <= 1);
}

std::vector<float> normal_row(int n, double mean, double sigma, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(mean, sigma);
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) v = static_cast<float>(normal(random));
  return x;
}

}  // namespace

TEST_CASE("stats: large means, long rows, outliers") {
  for (const Page* page : nk::host::all_pages()) {
    for (const int n : lengths(*page)) {
      if (n > 0) check_normalises(*page, normal_row(n, 3.0, 1.0, 20));
    }
    for (const double mean : {0.0, 100.0, 1000.0, 1e4, 1e5, 1e6}) {
      std::vector<float> ramp(16);
      for (std::size_t j = 0; j < ramp.size(); ++j)
        ramp[j] = static_cast<float>(mean + static_cast<double>(j) * 1e-3);
      check_normalises(*page, ramp);
      check_normalises(*page, normal_row(4099, mean, 1.0, 21));
      check_normalises(*page, normal_row(262144, mean, 1.0, 22));
    }
    check_normalises(*page, normal_row(32768, 100.0, 0.01, 23));
    check_normalises(*page, normal_row(16, 1449.4, 0.5, 24));
    check_normalises(*page, normal_row(4, 2000.0, 1.0, 25));
    for (const std::size_t place : {std::size_t{0}, std::size_t{262143}}) {
      std::vector<float> spike(262144, 0.1f);
      spike[place] = 1e6f;
      check_normalises(*page, spike);
    }
    std::vector<float> alternating(16384, 300.1f);
    for (std::size_t j = 1; j < alternating.size(); j += 2) alternating[j] = -300.1f;
    check_normalises(*page, alternating);
  }
}

TEST_CASE("stats: constant rows and rows of one element have variance 0") {
  for (const Page* page : nk::host::all_pages()) {
    for (const float x : {1e6f, 300.7f, -0.1f, 1000.1f, 0.0f, 1e30f}) {
      for (int n : lengths(*page)) {
        if (n == 0) n = 768;
        const std::vector<float> row(static_cast<std::size_t>(n), x);
        float mean = Matrix::nan(), variance = mean;
        page->stats({&mean, 0}, {&variance, 0}, {row.data(), 0}, 1, n);
        INFO(page->name << " x " << x << " n " << n);
        CHECK(mean == x);
        CHECK(variance == 0.0f);
      }
    }
  }
}

TEST_CASE("stats: rows at any step, either result left out") {
  for (const Page* page : nk::host::all_pages()) {
    for (const int n : {1, 7, 64, 131}) {
      Matrix a(3, n);
      a.fill(30);
      std::vector<float> mean(7, -1.0f), variance(7, -1.0f), alone(7, -1.0f);
      page->stats({mean.data(), 2}, {variance.data(), 2}, a.in(), 3, n);
      page->stats({nullptr, 0}, {alone.data(), 2}, a.in(), 3, n);
      CHECK(alone == variance);
      page->stats({alone.data(), 2}, {nullptr, 0}, a.in(), 3, n);
      CHECK(alone == mean);
      CHECK(mean[1] == -1.0f);
      for (int i = 0; i < 3; ++i) {
        float m = 0, v = 0;
        page->stats({&m, 0}, {&v, 0}, {a.data() + i * a.step, 0}, 1, n);
        CHECK(bits_of(m) == bits_of(mean[static_cast<std::size_t>(2 * i)]));
        CHECK(bits_of(v) == bits_of(variance[static_cast<std::size_t>(2 * i)]));
      }
    }
  }
}
