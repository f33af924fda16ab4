// What all cases share: opening a problem, and comparing an answer with rows of the reference.
#pragma once

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "bench/case.hpp"
#include "reference/tolerance.hpp"

namespace bench {

/// The right values of some rows of dst, seen as [rows, cols].
struct Expected {
  std::vector<std::int64_t> rows;
  reference::Approx values;  // one row for each
};

inline neuron_kernels::DType reference_dtype(Type t) {
  return t == Type::f32 ? neuron_kernels::DType::f32 : neuron_kernels::DType::bf16;
}

/// At most `most` rows of n, spread evenly, the first and the last among them.
inline std::vector<std::int64_t> sample_rows(std::int64_t n, std::int64_t most) {
  std::vector<std::int64_t> rows;
  const std::int64_t count = std::min(n, most);
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(count == 1 ? 0 : i * (n - 1) / (count - 1));
  return rows;
}

/// Rows [begin, begin + count) of a tensor seen as [rows, cols], in double.
inline reference::Matrix matrix(const Tensor& t, std::int64_t begin = 0, std::int64_t count = -1) {
  reference::Matrix m(count < 0 ? t.rows() : count, t.shape.back());
  for (Eigen::Index i = 0; i < m.rows(); ++i) {
    for (Eigen::Index j = 0; j < m.cols(); ++j) m(i, j) = static_cast<double>(t.at(begin + i, j));
  }
  return m;
}

inline reference::Matrix matrix(const Tensor& t, const std::vector<std::int64_t>& rows) {
  reference::Matrix m(static_cast<Eigen::Index>(rows.size()), t.shape.back());
  for (std::size_t i = 0; i < rows.size(); ++i) m.row(static_cast<Eigen::Index>(i)) = matrix(t, rows[i], 1);
  return m;
}

inline std::string compare(const Tensor& dst, const Expected& want) {
  std::ostringstream wrong;
  for (std::int64_t i = 0; i < dst.rows(); ++i) {
    for (std::int64_t j = 0; j < dst.shape.back(); ++j) {
      if (std::isfinite(dst.at(i, j))) continue;
      wrong << "element [" << i << ", " << j << "] is " << dst.at(i, j) << "; expected a finite number";
      return wrong.str();
    }
  }
  double worst = 1;
  for (std::size_t r = 0; r < want.rows.size(); ++r) {
    const auto row = static_cast<Eigen::Index>(r);
    for (Eigen::Index j = 0; j < want.values.value.cols(); ++j) {
      const double got = static_cast<double>(dst.at(want.rows[r], j)), value = want.values.value(row, j);
      const double excess = std::abs(got - value) / want.values.error(row, j);
      if (excess <= worst) continue;
      worst = excess;
      wrong.str("");
      wrong.precision(9);
      wrong << "element [" << want.rows[r] << ", " << j << "] is " << got << "; expected " << value << " +- "
            << want.values.error(row, j);
    }
  }
  return wrong.str();
}

/// An open case of one kind of problem.
template <class Problem>
class OpenProblem final : public OpenCase {
 public:
  OpenProblem(Problem problem, std::vector<Tensor> inputs, std::vector<std::int64_t> dst_shape,
              Expected expected, Entries<Problem> entries)
      : problem_(problem),
        inputs_(std::move(inputs)),
        dst_shape_(std::move(dst_shape)),
        expected_(std::move(expected)),
        entries_(std::move(entries)) {}

  std::span<const Tensor> inputs() const override { return inputs_; }
  Tensor make_dst() const override { return unwritten(problem_.type, dst_shape_); }
  std::function<void()> start(std::size_t contestant, void* dst) const override {
    Problem p = problem_;
    p.dst = dst;
    return entries_[contestant].start(p);
  }
  std::string check(const Tensor& dst) const override { return compare(dst, expected_); }

 private:
  Problem problem_;
  std::vector<Tensor> inputs_;
  std::vector<std::int64_t> dst_shape_;
  Expected expected_;
  Entries<Problem> entries_;
};

/// Fills in who takes part; open(problem, entries) makes the data.
template <class Problem, class Open>
Case make_case(std::string name, double flops, double bytes, std::span<Peer* const> peers,
               const Problem& problem, Entries<Problem> (Peer::*enter)(const Problem&) const, Open open) {
  Case c{std::move(name), flops, bytes, {}, {}};
  Entries<Problem> entries;
  for (Peer* peer : peers) {
    for (auto& entry : (peer->*enter)(problem)) {
      c.contestants.push_back({entry.name, peer});
      entries.push_back(std::move(entry));
    }
  }
  c.open = [=] { return open(problem, entries); };
  return c;
}

}  // namespace bench
