// This library, called as a C++ user calls it.
#include <memory>

#include "bench/peer.hpp"
#include "neuron_kernels/flash_attention.hpp"
#include "neuron_kernels/fused_mlp.hpp"
#include "neuron_kernels/layernorm.hpp"
#include "neuron_kernels/matmul.hpp"
#include "neuron_kernels/rmsnorm.hpp"
#include "neuron_kernels/version.hpp"

namespace bench {
namespace {

namespace nk = neuron_kernels;

nk::DType dtype(Type t) { return t == Type::f32 ? nk::DType::f32 : nk::DType::bf16; }

template <class V, class Pointer>
V view(Pointer data, Type t, std::initializer_list<std::int64_t> shape,
       std::initializer_list<std::int64_t> stride = {}) {
  return V(data, dtype(t), nk::Layout({shape.begin(), shape.size()}, {stride.begin(), stride.size()}));
}

class NeuronKernels final : public Peer {
 public:
  std::string description() const override {
    return "neuron_kernels " + std::string(nk::version) + ", page " + nk::host::best_page().name;
  }

  void set_threads(int threads) override {
    if (threads == 1) {
      executor_ = std::make_unique<nk::SerialExecutor>();
    } else {
      executor_ = std::make_unique<nk::ThreadPool>(threads);
    }
  }

  Entries<Matmul> matmul(const Matmul&) const override {
    const auto b = [](const Matmul& p) {
      return p.weight ? view<nk::ConstView>(p.b, p.type, {p.k, p.n}, {1, p.k})
                      : view<nk::ConstView>(p.b, p.type, {p.k, p.n});
    };
    const auto plain = [this, b](const Matmul& p) {
      const auto dst = view<nk::View>(p.dst, p.type, {p.m, p.n});
      const auto a = view<nk::ConstView>(p.a, p.type, {p.m, p.k});
      return [=, bv = b(p), this] { nk::matmul(dst, a, bv, {.executor = executor_.get()}); };
    };
    const auto packed = [this, b](const Matmul& p) {
      const auto dst = view<nk::View>(p.dst, p.type, {p.m, p.n});
      const auto a = view<nk::ConstView>(p.a, p.type, {p.m, p.k});
      return [=, weight = nk::pack_matrix(b(p)), this] {
        nk::matmul(dst, a, weight, {.executor = executor_.get()});
      };
    };
    return {{"neuron_kernels", plain}, {"neuron_kernels_packed", packed}};
  }

  Entries<Attention> attention(const Attention&) const override {
    return {{"neuron_kernels", [this](const Attention& p) {
               const auto dst = view<nk::View>(p.dst, p.type, {p.batch, p.heads, p.q_len, p.d});
               const auto q = view<nk::ConstView>(p.q, p.type, {p.batch, p.heads, p.q_len, p.d});
               const auto k = view<nk::ConstView>(p.k, p.type, {p.batch, p.kv_heads, p.kv_len, p.d});
               const auto v = view<nk::ConstView>(p.v, p.type, {p.batch, p.kv_heads, p.kv_len, p.d});
               return [=, causal = p.causal, this] {
                 nk::flash_attention(dst, q, k, v, {.causal = causal, .executor = executor_.get()});
               };
             }}};
  }

  Entries<Mlp> mlp(const Mlp&) const override {
    return {{"neuron_kernels", [this](const Mlp& p) {
               const auto dst = view<nk::View>(p.dst, p.type, {p.tokens, p.hidden});
               const auto x = view<nk::ConstView>(p.x, p.type, {p.tokens, p.hidden});
               nk::MlpWeights w{.up = view<nk::ConstView>(p.up, p.type, {p.inner, p.hidden}),
                                .down = view<nk::ConstView>(p.down, p.type, {p.hidden, p.inner})};
               if (p.gated) w.gate = view<nk::ConstView>(p.gate, p.type, {p.inner, p.hidden});
               return [=, act = p.gated ? nk::Act::silu : nk::Act::gelu, this] {
                 nk::fused_mlp(dst, x, w, {.activation = act, .executor = executor_.get()});
               };
             }}};
  }

  Entries<Norm> norm(const Norm&) const override {
    return {{"neuron_kernels", [this](const Norm& p) -> std::function<void()> {
               const auto dst = view<nk::View>(p.dst, p.type, {p.rows, p.n});
               const auto src = view<nk::ConstView>(p.src, p.type, {p.rows, p.n});
               const auto weight = view<nk::ConstView>(p.weight, p.type, {p.n});
               const float eps = norm_eps(p);
               if (p.rms)
                 return [=, this] {
                   nk::rmsnorm(dst, src, {.weight = weight, .eps = eps, .executor = executor_.get()});
                 };
               const auto bias = view<nk::ConstView>(p.bias, p.type, {p.n});
               return [=, this] {
                 nk::layernorm(dst, src,
                               {.weight = weight, .bias = bias, .eps = eps, .executor = executor_.get()});
               };
             }}};
  }

 private:
  std::unique_ptr<nk::Executor> executor_ = std::make_unique<nk::SerialExecutor>();
};

}  // namespace

Peer& neuron_kernels_peer() {
  static NeuronKernels peer;
  return peer;
}

}  // namespace bench
