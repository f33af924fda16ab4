// Matrix products: squares, and the linear layers of SmolLM2-135M (hidden 576, inner 1536) by tokens.
#include "bench/expected.hpp"
#include "reference/matmul.hpp"

namespace bench {
namespace {

std::unique_ptr<OpenCase> open(Matmul p, const Entries<Matmul>& entries) {
  std::vector<Tensor> in;
  in.push_back(normal("a", p.type, {p.m, p.k}));
  const double scale = 1 / std::sqrt(static_cast<double>(p.k));
  in.push_back(normal("b", p.type, p.weight ? std::vector{p.n, p.k} : std::vector{p.k, p.n}, scale));
  p.a = in[0].data.get();
  p.b = in[1].data.get();
  Expected want{sample_rows(p.m, 16), {}};
  const reference::Matrix b = matrix(in[1]);
  want.values = reference::matmul_bound(matrix(in[0], want.rows), p.weight ? b.transpose() : b);
  want.values = reference::stored(want.values, reference_dtype(p.type));
  return std::make_unique<OpenProblem<Matmul>>(p, std::move(in), std::vector{p.m, p.n}, std::move(want),
                                               entries);
}

}  // namespace

Cases matmul_cases(std::span<Peer* const> peers) {
  Cases cases;
  const auto add = [&](Type type, std::int64_t m, std::int64_t n, std::int64_t k, bool weight) {
    const std::string name = std::string(weight ? "linear/" : "matmul/") + name_of(type) + "/" +
                             std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
    const double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
    const auto bytes = static_cast<double>((m * k + k * n + m * n) * size_of(type));
    const Matmul p{.type = type, .m = m, .n = n, .k = k, .weight = weight};
    cases.push_back(make_case(name, flops, bytes, peers, p, &Peer::matmul, open));
  };
  for (const std::int64_t n : {512, 1024, 2048}) add(Type::f32, n, n, n, false);
  constexpr std::int64_t hidden = 576, inner = 1536;
  for (const std::int64_t tokens : {1, 8, 32, 128, 512}) {
    add(Type::f32, tokens, hidden, hidden, true);
    add(Type::f32, tokens, inner, hidden, true);
    add(Type::f32, tokens, hidden, inner, true);
  }
  add(Type::bf16, 1024, 1024, 1024, false);
  for (const std::int64_t tokens : {1, 128}) add(Type::bf16, tokens, inner, hidden, true);
  return cases;
}

}  // namespace bench
