// Attention over whole sequences, and decode steps of one query against a long cache.
#include "bench/expected.hpp"
#include "reference/flash_attention.hpp"

namespace bench {
namespace {

/// The right answer for row `row` of dst [batch * heads * q_len, d].
reference::Approx answer(const Attention& p, const std::vector<Tensor>& in, std::int64_t row) {
  const std::int64_t head = row / p.q_len, query = row % p.q_len;
  const std::int64_t kv_head =
      head / p.heads * p.kv_heads + reference::kv_head_of(head % p.heads, p.heads, p.kv_heads);
  const std::int64_t visible = p.causal ? query + 1 : p.kv_len;
  const reference::AttentionHead one{.q = matrix(in[0], row, 1),
                                     .k = matrix(in[1], kv_head * p.kv_len, visible),
                                     .v = matrix(in[2], kv_head * p.kv_len, visible),
                                     .scale = 1 / std::sqrt(static_cast<double>(p.d)),
                                     .bias = {}};
  return reference::attention(one, reference_dtype(p.type)).dst;
}

std::unique_ptr<OpenCase> open(Attention p, const Entries<Attention>& entries) {
  std::vector<Tensor> in;
  in.push_back(normal("q", p.type, {p.batch, p.heads, p.q_len, p.d}));
  in.push_back(normal("k", p.type, {p.batch, p.kv_heads, p.kv_len, p.d}));
  in.push_back(normal("v", p.type, {p.batch, p.kv_heads, p.kv_len, p.d}));
  p.q = in[0].data.get();
  p.k = in[1].data.get();
  p.v = in[2].data.get();
  // 67: all rows of a decode step, all heads else.
  Expected want{sample_rows(p.batch * p.heads * p.q_len, 67), {}};
  const auto count = static_cast<Eigen::Index>(want.rows.size());
  want.values = reference::exact(reference::Matrix::Zero(count, p.d));
  for (std::size_t i = 0; i < want.rows.size(); ++i) {
    const reference::Approx one = answer(p, in, want.rows[i]);
    want.values.value.row(static_cast<Eigen::Index>(i)) = one.value;
    want.values.error.row(static_cast<Eigen::Index>(i)) = one.error;
  }
  want.values = reference::stored(want.values, reference_dtype(p.type));
  std::vector<std::int64_t> shape = in[0].shape;
  return std::make_unique<OpenProblem<Attention>>(p, std::move(in), std::move(shape), std::move(want),
                                                  entries);
}

}  // namespace

Cases attention_cases(std::span<Peer* const> peers) {
  Cases cases;
  const auto add = [&](const Attention& p) {
    const std::string heads =
        std::to_string(p.heads) + (p.kv_heads != p.heads ? ":" + std::to_string(p.kv_heads) : "");
    const bool decode = p.q_len == 1;
    const std::string name = std::string(decode ? "decode/" : "attention/") + name_of(p.type) + "/" +
                             std::to_string(p.batch) + "x" + heads + "x" + std::to_string(p.kv_len) + "x" +
                             std::to_string(p.d) + (p.causal ? "/causal" : "");
    const auto n = static_cast<double>(p.kv_len);
    const double pairs = p.causal ? n * (n + 1) / 2 : static_cast<double>(p.q_len) * n;  // of query and key
    const double flops = 4 * static_cast<double>(p.batch * p.heads * p.d) * pairs;
    const std::int64_t queries = p.batch * p.heads * p.q_len, keys = p.batch * p.kv_heads * p.kv_len;
    const auto bytes = static_cast<double>(2 * (queries + keys) * p.d * size_of(p.type));
    cases.push_back(make_case(name, flops, bytes, peers, p, &Peer::attention, open));
  };
  for (const bool causal : {false, true}) {
    add({.heads = 8, .kv_heads = 8, .q_len = 2048, .kv_len = 2048, .d = 64, .causal = causal});
    add({.heads = 8, .kv_heads = 8, .q_len = 1024, .kv_len = 1024, .d = 128, .causal = causal});
  }
  add({.heads = 9, .kv_heads = 3, .q_len = 512, .kv_len = 512, .d = 64, .causal = true});  // SmolLM2-135M
  for (const std::int64_t kv_len : {512, 1024})
    add({.heads = 9, .kv_heads = 3, .q_len = 1, .kv_len = kv_len, .d = 64});
  add({.heads = 32, .kv_heads = 8, .q_len = 1, .kv_len = 4096, .d = 128});
  add({.type = Type::bf16,
       .heads = 8,
       .kv_heads = 8,
       .q_len = 2048,
       .kv_len = 2048,
       .d = 64,
       .causal = true});
  add({.type = Type::bf16, .heads = 32, .kv_heads = 8, .q_len = 1, .kv_len = 4096, .d = 128});
  return cases;
}

}  // namespace bench
