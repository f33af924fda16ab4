// MLP blocks by tokens: gated SiLU of SmolLM2-135M, plain GELU of the size that BERT and GPT-2 have.
#include "bench/expected.hpp"
#include "reference/fused_mlp.hpp"

namespace bench {
namespace {

std::unique_ptr<OpenCase> open(Mlp p, const Entries<Mlp>& entries) {
  std::vector<Tensor> in;
  const double from_hidden = 1 / std::sqrt(static_cast<double>(p.hidden));
  in.push_back(normal("x", p.type, {p.tokens, p.hidden}));
  in.push_back(normal("up", p.type, {p.inner, p.hidden}, from_hidden));
  in.push_back(normal("down", p.type, {p.hidden, p.inner}, 1 / std::sqrt(static_cast<double>(p.inner))));
  if (p.gated) in.push_back(normal("gate", p.type, {p.inner, p.hidden}, from_hidden));
  p.x = in[0].data.get();
  p.up = in[1].data.get();
  p.down = in[2].data.get();
  p.gate = p.gated ? in[3].data.get() : nullptr;

  Expected want{sample_rows(p.tokens, 16), {}};
  reference::Mlp w{.up = matrix(in[1]),
                   .down = matrix(in[2]),
                   .gate = {},
                   .up_bias = {},
                   .down_bias = {},
                   .gate_bias = {}};
  w.activation = p.gated ? reference::Act::silu : reference::Act::gelu;
  if (p.gated) w.gate = matrix(in[3]);
  const auto dtype = reference_dtype(p.type);
  want.values = reference::stored(reference::fused_mlp_bound(matrix(in[0], want.rows), w, dtype), dtype);
  return std::make_unique<OpenProblem<Mlp>>(p, std::move(in), std::vector{p.tokens, p.hidden},
                                            std::move(want), entries);
}

}  // namespace

Cases mlp_cases(std::span<Peer* const> peers) {
  Cases cases;
  const auto add = [&](const Mlp& p) {
    const std::string name = std::string(p.gated ? "mlp_silu/" : "mlp_gelu/") + name_of(p.type) + "/" +
                             std::to_string(p.tokens) + "x" + std::to_string(p.hidden) + "x" +
                             std::to_string(p.inner);
    const std::int64_t weights = (p.gated ? 3 : 2) * p.hidden * p.inner;
    const auto bytes = static_cast<double>((weights + 2 * p.tokens * p.hidden) * size_of(p.type));
    const double flops = 2 * static_cast<double>(p.tokens) * static_cast<double>(weights);
    cases.push_back(make_case(name, flops, bytes, peers, p, &Peer::mlp, open));
  };
  for (const std::int64_t tokens : {1, 8, 32, 128, 512}) {
    add({.tokens = tokens, .hidden = 576, .inner = 1536, .gated = true});
    add({.tokens = tokens, .hidden = 768, .inner = 3072, .gated = false});
  }
  for (const std::int64_t tokens : {1, 128})
    add({.type = Type::bf16, .tokens = tokens, .hidden = 576, .inner = 1536, .gated = true});
  return cases;
}

}  // namespace bench
