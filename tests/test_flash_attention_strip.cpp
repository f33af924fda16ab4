// strip_attention_kernel on Host: the meaning of flash_attention, for every blocking.
#include "neuron_kernels/kernels/flash_attention_strip.hpp"

#include "attention.hpp"

namespace test {
namespace {

nk::StripBlocking blocking_in_use;

std::int64_t strip_attention(nk::View dst, nk::ConstView q, nk::ConstView k, nk::ConstView v,
                             const nk::AttentionOptions& options) {
  nk::AttentionArgs<nk::Host> args{.q = q, .k = k, .v = v, .dst = dst};
  if (options.lse.given()) args.lse = nk::host::as_columns(options.lse);
  args.scale = options.scale.value_or(1.f / std::sqrt(static_cast<float>(q.dim(3))));
  args.causal = options.causal;
  nk::host::launch(options.executor, 4,
                   [&](nk::Host& nc) { strip_attention_kernel(nc, args, blocking_in_use); });
  return 0;
}

TEST_CASE("strip_attention: shapes, dtypes, blockings, masks, extreme scores") {
  const std::vector<std::int64_t> q_lens = {1, 2, 63, 64, 65, 128, 300}, more_keys = {0, 1, 64, 129, 700};
  const std::vector<nk::StripBlocking> blockings = {
      {},
      {.q = 64, .kv = 64, .pv = 32, .exp = 3, .by_dma = 1, .of = 2, .program_q = 64},
      {.q = 32, .kv = 96, .pv = 96, .exp = 1, .by_dma = 1, .of = 1, .program_q = 96}};
  std::uint64_t seed = 300;
  for (const auto& row : pairwise({q_lens.size(), more_keys.size(), blockings.size(), 3, 3, 2, 2, 3, 3})) {
    Random random(++seed);
    blocking_in_use = blockings[row[2]];
    blocking_in_use.check(nk::trn2);
    const std::int64_t q_len = q_lens[row[0]], kv_len = q_len + more_keys[row[1]];
    Attention a =
        random_attention(random, {1, 4, 2, q_len, kv_len, 32, 48}, all_dtypes[row[3]], all_dtypes[row[4]]);
    a.call = strip_attention;
    a.causal = row[5] != 0;
    if (row[6] != 0) a.lse = Tensor(DType::f32, {1, 4, q_len});
    if (row[7] == 1) a.scale = 40.f;  // one key takes all
    if (row[7] == 2) a.scale = 1e-6f;
    a.executor = &executor(static_cast<int>(row[8]));
    check_attention(a);
  }
}

}  // namespace
}  // namespace test
