// Layer and RMS normalisation of rows, from one row to more than the caches hold.
#include "bench/expected.hpp"
#include "reference/layernorm.hpp"
#include "reference/rmsnorm.hpp"

namespace bench {
namespace {

std::unique_ptr<OpenCase> open(Norm p, const Entries<Norm>& entries) {
  std::vector<Tensor> in;
  in.push_back(normal("src", p.type, {p.rows, p.n}, 2, 0.5));
  in.push_back(normal("weight", p.type, {p.n}, 0.2, 1));
  if (!p.rms) in.push_back(normal("bias", p.type, {p.n}, 0.2));
  p.src = in[0].data.get();
  p.weight = in[1].data.get();
  p.bias = p.rms ? nullptr : in[2].data.get();

  Expected want{sample_rows(p.rows, 64), {}};
  const reference::Matrix x = matrix(in[0], want.rows);
  const double eps = static_cast<double>(norm_eps(p));
  want.values = p.rms ? reference::rmsnorm_bound(x, matrix(in[1]).row(0), eps)
                      : reference::layernorm_bound(x, matrix(in[1]).row(0), matrix(in[2]).row(0), eps);
  want.values = reference::stored(want.values, reference_dtype(p.type));
  return std::make_unique<OpenProblem<Norm>>(p, std::move(in), std::vector{p.rows, p.n}, std::move(want),
                                             entries);
}

}  // namespace

Cases norm_cases(std::span<Peer* const> peers) {
  Cases cases;
  const auto add = [&](const Norm& p) {
    const std::string name = std::string(p.rms ? "rmsnorm/" : "layernorm/") + name_of(p.type) + "/" +
                             std::to_string(p.rows) + "x" + std::to_string(p.n);
    const auto elements = static_cast<double>(p.rows * p.n);
    const double bytes =
        static_cast<double>(size_of(p.type)) * (2 * elements + static_cast<double>(p.rms ? p.n : 2 * p.n));
    cases.push_back(make_case(name, (p.rms ? 4 : 8) * elements, bytes, peers, p, &Peer::norm, open));
  };
  for (const bool rms : {false, true}) {
    for (const std::int64_t n : {768, 1024, 4096}) {
      for (const std::int64_t rows : {1, 32, 512, 4096}) add({.rows = rows, .n = n, .rms = rms});
    }
    for (const std::int64_t rows : {1, 512}) add({.type = Type::bf16, .rows = rows, .n = 4096, .rms = rms});
  }
  return cases;
}

}  // namespace bench
