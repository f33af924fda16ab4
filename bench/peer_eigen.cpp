// Eigen, as its users are told to build it: for this CPU, with OpenMP.
//
// This unit alone is compiled with -march=native; its copy of Eigen has a namespace of its own
// (CMakeLists.txt), or the linker would mix it with the reference's, whose alignment differs.
#include <Eigen/Core>
#include <cmath>

#include "bench/openmp.hpp"
#include "bench/peer.hpp"

namespace bench {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using In = Eigen::Map<const Matrix, Eigen::Aligned64>;
using Out = Eigen::Map<Matrix, Eigen::Aligned64>;
using InRow = Eigen::Map<const Eigen::RowVectorXf, Eigen::Aligned64>;

In in(const void* data, std::int64_t rows, std::int64_t cols) {
  return {static_cast<const float*>(data), rows, cols};
}
Out out(void* data, std::int64_t rows, std::int64_t cols) { return {static_cast<float*>(data), rows, cols}; }
InRow row(const void* data, std::int64_t n) { return {static_cast<const float*>(data), n}; }

void normalise(const Norm& p) {
  const auto x = in(p.src, p.rows, p.n);
  auto y = out(p.dst, p.rows, p.n);
  const auto weight = row(p.weight, p.n).array();
  const auto n = static_cast<float>(p.n);
  for (Eigen::Index i = 0; i < p.rows; ++i) {
    if (p.rms) {
      const float rstd = 1 / std::sqrt(x.row(i).squaredNorm() / n + norm_eps(p));
      y.row(i) = x.row(i).array() * rstd * weight;
    } else {
      const float mean = x.row(i).mean();
      const float rstd = 1 / std::sqrt((x.row(i).array() - mean).square().sum() / n + norm_eps(p));
      y.row(i) = (x.row(i).array() - mean) * rstd * weight + row(p.bias, p.n).array();
    }
  }
}

/// One head at a time, blocks of queries against all keys that any of them sees.
void attend(const Attention& p, Matrix& s) {
  constexpr std::int64_t block = 128;
  const float scale = 1 / std::sqrt(static_cast<float>(p.d));
  const std::int64_t group = p.heads / p.kv_heads;
  for (std::int64_t h = 0; h < p.batch * p.heads; ++h) {
    const auto* q = static_cast<const float*>(p.q) + h * p.q_len * p.d;
    const auto* k = static_cast<const float*>(p.k) + h / group * p.kv_len * p.d;
    const auto* v = static_cast<const float*>(p.v) + h / group * p.kv_len * p.d;
    auto* dst = static_cast<float*>(p.dst) + h * p.q_len * p.d;
    for (std::int64_t begin = 0; begin < p.q_len; begin += block) {
      const std::int64_t queries = std::min(block, p.q_len - begin);
      const std::int64_t keys = p.causal ? begin + queries : p.kv_len;
      auto scores = s.topLeftCorner(queries, keys);
      scores.noalias() = scale * in(q + begin * p.d, queries, p.d) * in(k, keys, p.d).transpose();
      auto y = out(dst + begin * p.d, queries, p.d);
      Eigen::VectorXf sum(queries);
      for (std::int64_t i = 0; i < queries; ++i) {
        if (p.causal) scores.row(i).tail(queries - 1 - i).setConstant(-INFINITY);
        scores.row(i) = (scores.row(i).array() - scores.row(i).maxCoeff()).exp();
        sum(i) = scores.row(i).sum();
      }
      y.noalias() = scores * in(v, keys, p.d);
      y.array().colwise() /= sum.array();
    }
  }
}

class EigenPeer final : public Peer {
 public:
  std::string description() const override {
    return "eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
           std::to_string(EIGEN_MINOR_VERSION) + ", -O3 -march=native: " + Eigen::SimdInstructionSetsInUse();
  }
  void set_threads(int threads) override { Eigen::setNbThreads(threads); }
  void rest() override { end_openmp_threads(); }

  Entries<Matmul> matmul(const Matmul& sizes) const override {
    if (sizes.type != Type::f32) return {};
    return {{"eigen", [](const Matmul& p) -> std::function<void()> {
               if (!p.weight) {
                 return [p] { out(p.dst, p.m, p.n).noalias() = in(p.a, p.m, p.k) * in(p.b, p.k, p.n); };
               }
               return [p] {
                 out(p.dst, p.m, p.n).noalias() = in(p.a, p.m, p.k) * in(p.b, p.n, p.k).transpose();
               };
             }}};
  }

  Entries<Attention> attention(const Attention& sizes) const override {
    if (sizes.type != Type::f32) return {};
    return {{"eigen_unfused", [](const Attention& p) {
               return [p, s = Matrix(std::min<std::int64_t>(128, p.q_len), p.kv_len)]() mutable {
                 attend(p, s);
               };
             }}};
  }

  Entries<Mlp> mlp(const Mlp& sizes) const override {
    if (sizes.type != Type::f32 || !sizes.gated) return {};  // Eigen has no vectorised erf
    return {{"eigen", [](const Mlp& p) {
               return [p, gate = Matrix(p.tokens, p.inner), up = Matrix(p.tokens, p.inner)]() mutable {
                 const auto x = in(p.x, p.tokens, p.hidden);
                 gate.noalias() = x * in(p.gate, p.inner, p.hidden).transpose();
                 up.noalias() = x * in(p.up, p.inner, p.hidden).transpose();
                 up.array() *= gate.array() * gate.array().logistic();
                 out(p.dst, p.tokens, p.hidden).noalias() = up * in(p.down, p.hidden, p.inner).transpose();
               };
             }}};
  }

  Entries<Norm> norm(const Norm& sizes) const override {
    if (sizes.type != Type::f32) return {};
    return {{"eigen", [](const Norm& p) { return [p] { normalise(p); }; }}};
  }
};

}  // namespace

Peer& eigen_peer() {
  static EigenPeer peer;
  return peer;
}

}  // namespace bench
