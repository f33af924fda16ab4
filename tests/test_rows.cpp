// Row ops of every page against their scalar meaning:
// ragged lengths, any steps, repeated rows, in place, guards.
#include "rows.hpp"

using namespace rows_test;

TEST_CASE("binary") {
  for (const Page* page : nk::host::all_pages()) {
    for (const Alu op : all_alu()) {
      for (const int n : lengths(*page)) {
        for (const int rows : {0, 1, 3}) {
          INFO(page->name << " " << nk::name_of(op) << " rows " << rows << " n " << n);
          Matrix a(rows, n), b(rows, n, 7), repeated(rows, n, 2, true), dst(rows, n, 3);
          a.fill(1), b.fill(2), repeated.fill(3);
          page->binary(op, dst.dst(), a.in(), b.in(), rows, n);
          check_equal(dst, [&](int i, int j) { return apply(op, a.at(i, j), b.at(i, j)); });
          page->binary(op, dst.dst(), a.in(), repeated.in(), rows, n);
          check_equal(dst, [&](int i, int j) { return apply(op, a.at(i, j), repeated.at(i, j)); });
          Matrix left = a, right = b;
          page->binary(op, left.dst(), left.in(), b.in(), rows, n);
          check_equal(left, [&](int i, int j) { return apply(op, a.at(i, j), b.at(i, j)); });
          page->binary(op, right.dst(), a.in(), right.in(), rows, n);
          if (rows > 0)
            check_equal(right, [&](int i, int j) {
              return apply(op, a.store[guard + static_cast<std::size_t>(i * a.step + j)], b.at(i, j));
            });
        }
      }
    }
  }
}

TEST_CASE("scalar") {
  for (const Page* page : nk::host::all_pages()) {
    for (const Alu op : all_alu()) {
      for (const int n : lengths(*page)) {
        for (const std::int64_t step : {0, 1, 3}) {
          const int rows = 3;
          INFO(page->name << " " << nk::name_of(op) << " n " << n << " column step " << step);
          Matrix a(rows, n), dst(rows, n, 3);
          a.fill(4);
          const Column s(rows, 5, step);
          const auto want = [&](int i, int j) { return apply(op, a.at(i, j), s.at(i)); };
          page->scalar(op, dst.dst(), a.in(), s.in(), rows, n);
          check_equal(dst, want);
          Matrix same = a;
          page->scalar(op, same.dst(), same.in(), s.in(), rows, n);
          check_equal(same, want);
        }
      }
    }
  }
}

TEST_CASE("scalar_scalar and scalar_tensor, every pair of operators") {
  for (const Page* page : nk::host::all_pages()) {
    for (const Alu op0 : all_alu()) {
      for (const Alu op1 : all_alu()) {
        for (const int n : lengths(*page)) {
          const int rows = 3;
          INFO(page->name << " " << nk::name_of(op0) << ", " << nk::name_of(op1) << " n " << n);
          Matrix a(rows, n), b(rows, n, 7), repeated(rows, n, 2, true), dst(rows, n, 3);
          a.fill(6), b.fill(7), repeated.fill(8);
          const Column s0(rows, 9), s1(rows, 10, 0);
          page->scalar_scalar(op0, op1, dst.dst(), a.in(), s0.in(), s1.in(), rows, n);
          check_equal(dst, [&](int i, int j) {
            const volatile float first = apply(op0, a.at(i, j), s0.at(i));
            return apply(op1, first, s1.at(i));
          });
          const auto want = [&](int i, int j, float right) {
            if (op0 == Alu::multiply && op1 == Alu::add)
              return multiply_add(*page, a.at(i, j), s0.at(i), right);
            const volatile float first = apply(op0, a.at(i, j), s0.at(i));
            return apply(op1, first, right);
          };
          page->scalar_tensor(op0, op1, dst.dst(), a.in(), s0.in(), b.in(), rows, n);
          check_equal(dst, [&](int i, int j) { return want(i, j, b.at(i, j)); });
          page->scalar_tensor(op0, op1, dst.dst(), a.in(), s0.in(), repeated.in(), rows, n);
          check_equal(dst, [&](int i, int j) { return want(i, j, repeated.at(i, j)); });
          Matrix left = a, right = b;
          page->scalar_tensor(op0, op1, left.dst(), left.in(), s0.in(), b.in(), rows, n);
          check_equal(left, [&](int i, int j) { return want(i, j, b.at(i, j)); });
          page->scalar_tensor(op0, op1, right.dst(), a.in(), s0.in(), right.in(), rows, n);
          check_equal(right, [&](int i, int j) { return want(i, j, b.at(i, j)); });
          Matrix past(rows, n, 3);  // past the caches
          page->scalar_tensor(op0, op1, {past.data(), past.step, a.data()}, a.in(), s0.in(), b.in(), rows, n);
          check_equal(past, [&](int i, int j) { return want(i, j, b.at(i, j)); });
          page->finish_stores();
        }
      }
    }
  }
}

TEST_CASE("reduce") {
  for (const Page* page : nk::host::all_pages()) {
    for (int n : lengths(*page)) {
      if (n == 0) n = 100003;
      const int rows = 3;
      INFO(page->name << " n " << n);
      Matrix a(rows, n);
      a.fill(11);
      std::vector<float> sum(8, -1.0f), largest = sum, smallest = sum;
      page->reduce(Alu::add, {sum.data(), 2}, a.in(), rows, n);
      page->reduce(Alu::max, {largest.data(), 2}, a.in(), rows, n);
      page->reduce(Alu::min, {smallest.data(), 2}, a.in(), rows, n);
      for (int i = 0; i < rows; ++i) {
        double exact = 0, magnitude = 0;
        float hi = a.at(i, 0), lo = hi;
        for (int j = 0; j < n; ++j) {
          const float x = a.at(i, j);
          exact += static_cast<double>(x), magnitude += std::fabs(static_cast<double>(x));
          hi = x > hi ? x : hi, lo = x < lo ? x : lo;
        }
        const auto k = 2 * static_cast<std::size_t>(i);
        CHECK(std::fabs(static_cast<double>(sum[k]) - exact) <= sum_depth(*page, n) * 0x1p-24 * magnitude);
        CHECK(largest[k] == hi);
        CHECK(smallest[k] == lo);
        float alone = 0;  // the order depends on n alone, not on where the row lies
        page->reduce(Alu::add, {&alone, 0}, {a.data() + i * a.step, 0}, 1, n);
        CHECK(bits_of(alone) == bits_of(sum[k]));
      }
      CHECK(sum[1] == -1.0f);
      CHECK(sum[5] == -1.0f);
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < n; ++j) a.at(i, j) = static_cast<float>((j * 7 + i) % 15 - 7);
      }
      page->reduce(Alu::add, {sum.data(), 2}, a.in(), rows, n);
      for (int i = 0; i < rows; ++i) {
        int exact = 0;
        for (int j = 0; j < n; ++j) exact += (j * 7 + i) % 15 - 7;
        CHECK(sum[2 * static_cast<std::size_t>(i)] == static_cast<float>(exact));
      }
    }
  }
}

TEST_CASE("reduce finds an extremum in every place") {
  for (const Page* page : nk::host::all_pages()) {
    for (const int n :
         {1, 2, page->vector_len - 1, page->vector_len, page->vector_len + 1, 2 * page->vector_len, 67}) {
      for (int place = 0; place < n; ++place) {
        Matrix a(1, n);
        for (int j = 0; j < n; ++j) a.at(0, j) = 0.0f;
        float hi = 0, lo = 0;
        a.at(0, place) = 1.0f;
        page->reduce(Alu::max, {&hi, 0}, a.in(), 1, n);
        a.at(0, place) = -1.0f;
        page->reduce(Alu::min, {&lo, 0}, a.in(), 1, n);
        INFO(page->name << " n " << n << " place " << place);
        CHECK(hi == 1.0f);
        CHECK(lo == -1.0f);
      }
    }
  }
}

TEST_CASE(
    "activate: each element as if alone, scale and bias in one multiply-add, row_sum of what was stored") {
  for (const Page* page : nk::host::all_pages()) {
    for (int f = 0; f < nk::act_count; ++f) {
      const Act act = static_cast<Act>(f);
      for (const int n : lengths(*page)) {
        const int rows = 3;
        INFO(page->name << " " << nk::name_of(act) << " n " << n);
        Matrix a(rows, n), dst(rows, n, 3);
        a.fill(12);
        const bool positive = act == Act::log || act == Act::rsqrt;
        for (int i = 0; positive && i < rows; ++i) {
          for (int j = 0; j < n; ++j) a.at(i, j) = std::fabs(a.at(i, j)) + 0.25f;
        }
        Column scale(rows, 13), bias(rows, 14, 0);
        for (float& x : scale.store) x = std::fabs(x);
        for (float& x : bias.store) x = std::fabs(x);
        std::vector<float> sum(7, -1.0f);
        page->activate(act, dst.dst(), a.in(), scale.in(), bias.in(), {sum.data(), 2}, rows, n);
        const auto want = [&](int i, int j) {
          const float x = multiply_add(*page, a.at(i, j), scale.at(i), bias.at(i)), one = 1, none = -0.0f;
          float y = Matrix::nan();
          page->activate(act, {&y, 0}, {&x, 0}, {&one, 0}, {&none, 0}, {nullptr, 0}, 1, 1);
          return y;
        };
        check_equal(dst, want);
        for (int i = 0; i < rows; ++i) {
          double exact = 0, magnitude = 0;
          for (int j = 0; j < n; ++j) {
            exact += static_cast<double>(dst.at(i, j));
            magnitude += std::fabs(static_cast<double>(dst.at(i, j)));
          }
          const double error = std::fabs(static_cast<double>(sum[2 * static_cast<std::size_t>(i)]) - exact);
          CHECK(error <= sum_depth(*page, n) * 0x1p-24 * magnitude);
          float alone = 0;  // the order depends on n alone
          std::vector<float> row(static_cast<std::size_t>(n + 1));
          page->activate(act, {row.data(), 0}, {a.data() + i * a.step, 0}, {scale.in().data + 3 * i, 0},
                         bias.in(), {&alone, 0}, 1, n);
          CHECK(bits_of(sum[2 * static_cast<std::size_t>(i)]) == bits_of(alone));
        }
        CHECK(sum[1] == -1.0f);
        Matrix same = a;
        page->activate(act, same.dst(), same.in(), scale.in(), bias.in(), {nullptr, 0}, rows, n);
        check_equal(same, [&](int i, int j) { return dst.at(i, j); });
      }
    }
  }
}
