// oneDNN (versions 2 and 3), by its C++ interface: primitives made once, activations as post-ops, weights
// either where the caller has them or, "_packed", in the layout that the library asks for.
#include <cmath>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

#include "bench/openmp.hpp"
#include "bench/peer.hpp"

namespace bench {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

dnnl::engine& engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}
dnnl::stream& stream() {
  static dnnl::stream s(engine());
  return s;
}

memory::data_type data_type(Type t) {
  return t == Type::f32 ? memory::data_type::f32 : memory::data_type::bf16;
}

memory wrap(const memory::desc& desc, const void* data) { return {desc, engine(), const_cast<void*>(data)}; }

#if DNNL_VERSION_MAJOR >= 3
void append(dnnl::post_ops& ops, dnnl::algorithm f, float alpha = 1, float beta = 0) {
  ops.append_eltwise(f, alpha, beta);
}
dnnl::matmul::primitive_desc matmul_desc(const memory::desc& a, const memory::desc& b, const memory::desc& c,
                                         const dnnl::primitive_attr& attr) {
  return {engine(), a, b, c, attr};
}
dnnl::softmax_forward softmax(const memory::desc& s) {
  return {{engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, s, s,
           s.get_ndims() - 1}};
}
dnnl::layer_normalization_forward layernorm(const memory::desc& x, float eps,
                                            dnnl::normalization_flags flags) {
  return {{engine(), dnnl::prop_kind::forward_inference, x, x, eps, flags}};
}
#else
void append(dnnl::post_ops& ops, dnnl::algorithm f, float alpha = 1, float beta = 0) {
  ops.append_eltwise(1, f, alpha, beta);
}
dnnl::matmul::primitive_desc matmul_desc(const memory::desc& a, const memory::desc& b, const memory::desc& c,
                                         const dnnl::primitive_attr& attr) {
  return {dnnl::matmul::desc(a, b, c), attr, engine()};
}
dnnl::softmax_forward softmax(const memory::desc& s) {
  const dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference, s, s.data.ndims - 1);
  return {dnnl::softmax_forward::primitive_desc(desc, engine())};
}
dnnl::layer_normalization_forward layernorm(const memory::desc& x, float eps,
                                            dnnl::normalization_flags flags) {
  const dnnl::layer_normalization_forward::desc desc(dnnl::prop_kind::forward_inference, x, eps, flags);
  return {dnnl::layer_normalization_forward::primitive_desc(desc, engine())};
}
#endif

/// A primitive with its arguments.
struct Step {
  dnnl::primitive primitive;
  std::unordered_map<int, memory> args;
};

std::function<void()> all(std::vector<Step> steps) {
  return [steps = std::move(steps)] {
    for (const Step& s : steps) s.primitive.execute(stream(), s.args);
    stream().wait();
  };
}

/// dst = post_ops(a b); b's layout is the library's choice if packed.
Step product(const memory& a, memory b, const memory& dst, bool packed, const dnnl::post_ops& ops = {},
             const memory& operand = {}) {
  dnnl::primitive_attr attr;
  attr.set_post_ops(ops);
  const auto any = memory::desc(b.get_desc().dims(), b.get_desc().data_type(), Tag::any);
  const auto desc = matmul_desc(a.get_desc(), packed ? any : b.get_desc(), dst.get_desc(), attr);
  memory weights = b;
  if (desc.weights_desc() != b.get_desc()) {
    weights = memory(desc.weights_desc(), engine());
    dnnl::reorder(b, weights).execute(stream(), b, weights);
    stream().wait();
  }
  Step step{dnnl::matmul(desc), {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}}};
  if (operand) {
    const int last = ops.len() - 1;
    step.args.insert({DNNL_ARG_ATTR_MULTIPLE_POST_OP(last) | DNNL_ARG_SRC_1, operand});
  }
  return step;
}

template <class Problem, class Make>
Entries<Problem> both(Make make) {
  return {{"onednn", [=](const Problem& p) { return make(p, false); }},
          {"onednn_packed", [=](const Problem& p) { return make(p, true); }}};
}

class OneDnn final : public Peer {
 public:
  std::string description() const override {
    const dnnl_version_t& v = *dnnl_version();
    return "onednn " + std::to_string(v.major) + "." + std::to_string(v.minor) + "." +
           std::to_string(v.patch);
  }
  void set_threads(int threads) override { omp_set_num_threads(threads); }
  void rest() override { end_openmp_threads(); }

  Entries<Matmul> matmul(const Matmul&) const override {
    return both<Matmul>([](const Matmul& p, bool packed) {
      const auto t = data_type(p.type);
      const memory a = wrap({{p.m, p.k}, t, Tag::ab}, p.a), dst = wrap({{p.m, p.n}, t, Tag::ab}, p.dst);
      const memory b = wrap({{p.k, p.n}, t, p.weight ? Tag::ba : Tag::ab}, p.b);
      return all({product(a, b, dst, packed)});
    });
  }

  Entries<Mlp> mlp(const Mlp&) const override {
    return both<Mlp>([](const Mlp& p, bool packed) {
      const auto t = data_type(p.type);
      const memory::desc inner({p.tokens, p.inner}, t, Tag::ab), weight({p.hidden, p.inner}, t, Tag::ba);
      const memory x = wrap({{p.tokens, p.hidden}, t, Tag::ab}, p.x), dst = wrap(x.get_desc(), p.dst);
      const memory up = wrap(weight, p.up), down = wrap({{p.inner, p.hidden}, t, Tag::ba}, p.down);
      const memory h(inner, engine());
      dnnl::post_ops act, times;
      append(act, p.gated ? dnnl::algorithm::eltwise_swish : dnnl::algorithm::eltwise_gelu_erf);
      if (!p.gated) return all({product(x, up, h, packed, act), product(h, down, dst, packed)});
      const memory gated(inner, engine());
      times.append_binary(dnnl::algorithm::binary_mul, inner);
      return all({product(x, wrap(weight, p.gate), gated, packed, act),
                  product(x, up, h, packed, times, gated), product(h, down, dst, packed)});
    });
  }

  /// Scores in memory: matmul, softmax, matmul. A decode step's query heads of one kv head are rows of one
  /// product. Not causal: with a mask as a post-op, version 2 runs its reference code, 100 times slower.
  Entries<Attention> attention(const Attention& sizes) const override {
    if (sizes.causal || (sizes.heads != sizes.kv_heads && sizes.q_len != 1)) return {};
    return {
        {"onednn_unfused", [](const Attention& p) {
           const auto t = data_type(p.type);
           const std::int64_t heads = p.batch * p.kv_heads, queries = p.q_len * p.heads / p.kv_heads;
           const memory::desc q({heads, queries, p.d}, t, Tag::abc), kT({heads, p.d, p.kv_len}, t, Tag::acb);
           const memory::desc v({heads, p.kv_len, p.d}, t, Tag::abc),
               scores({heads, queries, p.kv_len}, t, Tag::abc);
           const memory s(scores, engine());
           dnnl::post_ops ops;
           append(ops, dnnl::algorithm::eltwise_linear, 1 / std::sqrt(static_cast<float>(p.d)));
           return all({product(wrap(q, p.q), wrap(kT, p.k), s, false, ops),
                       {softmax(scores), {{DNNL_ARG_SRC, s}, {DNNL_ARG_DST, s}}},
                       product(s, wrap(v, p.v), wrap(q, p.dst), false)});
         }}};
  }

  Entries<Norm> norm(const Norm& sizes) const override {
    // Weight and bias are f32 here, bf16 in the other problems.
    if (sizes.rms || sizes.type != Type::f32) return {};
    return {{"onednn", [](const Norm& p) {
               using dnnl::normalization_flags;
               const memory::desc rows({p.rows, p.n}, data_type(p.type), Tag::ab),
                   one({p.n}, memory::data_type::f32, Tag::a);
               const auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
               return all({{layernorm(rows, norm_eps(p), flags),
                            {{DNNL_ARG_SRC, wrap(rows, p.src)},
                             {DNNL_ARG_DST, wrap(rows, p.dst)},
                             {DNNL_ARG_SCALE, wrap(one, p.weight)},
                             {DNNL_ARG_SHIFT, wrap(one, p.bias)}}}});
             }}};
  }
};

}  // namespace

Peer& onednn_peer() {
  static OneDnn peer;
  return peer;
}

}  // namespace bench
