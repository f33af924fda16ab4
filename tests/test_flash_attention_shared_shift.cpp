// flash_attention_shared_shift: the meaning of flash_attention, whatever the scores are; what its guard sends back.
#include "neuron_kernels/flash_attention_shared_shift.hpp"

#include "attention.hpp"

namespace test {
namespace {

Attention in_shared_shift(Attention a) {
  a.call = nk::flash_attention_shared_shift;
  a.term_roundings = 2;  // probabilities, and sums of a group of them
  return a;
}

TEST_CASE("flash_attention_shared_shift: shapes with layouts and dtypes and masks") {
  const std::vector<std::int64_t> q_lens = {1, 2, 127, 128, 129, 256, 300, 512, 700},
                                  kv_lens = {1, 2, 127, 128, 129, 255, 257, 512, 900, 1024, 1300};
  const std::vector<std::int64_t> sizes = {1, 7, 16, 64, 96, 128};
  const std::vector<std::array<std::int64_t, 3>> heads = {{1, 1, 1}, {2, 2, 2}, {1, 6, 2}};
  std::uint64_t seed = 100;
  for (const auto& row : pairwise({q_lens.size(), kv_lens.size(), sizes.size(), sizes.size(), heads.size(), 3,
                                   3, std::size(input_lies), std::size(output_lies), 2, 3, 3})) {
    Random random(++seed);
    const auto& h = heads[row[4]];
    const AttentionSizes s{h[0], h[1], h[2], q_lens[row[0]], kv_lens[row[1]], sizes[row[2]], sizes[row[3]]};
    const Lie lie = input_lies[row[7]], lie_dst = output_lies[row[8]];
    Attention a = in_shared_shift(
        random_attention(random, s, all_dtypes[row[5]], all_dtypes[row[6]], lie, lie, lie, lie_dst));
    a.causal = row[9] != 0;
    if (row[10] != 0) a.lse = Tensor(DType::f32, {s.batch, s.heads, s.q_len});
    if (row[10] == 2) a.scale = 0.3f;
    a.executor = &executor(static_cast<int>(row[11]));
    const std::int64_t redone = check_attention(a);
    if (a.q.dtype() != DType::f16 && (!a.causal || s.kv_len >= s.q_len))
      check(redone == 0, "flash_attention_shared_shift", describe(a) + ": redone without need");
  }
}

/// Random q and k, q's row i times rows(i), k's row j times keys(j).
template <class Rows, class Keys>
Attention with_sizes(DType dtype, bool causal, const AttentionSizes& s, const Rows& rows, const Keys& keys) {
  Random random(9);
  Attention a = in_shared_shift(random_attention(random, s, dtype, dtype));
  a.causal = causal;
  a.lse = Tensor(DType::f32, {s.batch, s.heads, s.q_len});
  for (std::int64_t i = 0; i < a.q.size(); ++i) a.q.set(i, a.q.at(i) * rows(i / s.d % s.q_len));
  for (std::int64_t i = 0; i < a.k.size(); ++i) a.k.set(i, a.k.at(i) * keys(i / s.d % s.kv_len));
  return a;
}

TEST_CASE("flash_attention_shared_shift: scores that one shift cannot hold are computed again") {
  const AttentionSizes s{1, 2, 1, 600, 700, 32, 32};
  const auto one = [](std::int64_t) { return 1.; };
  for (const bool causal : {false, true}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      // One loud query among quiet ones: its scores are the sample, and the quiet rows vanish.
      Attention loud = with_sizes(
          dtype, causal, s, [](std::int64_t i) { return i == 300 ? 100. : 1.; }, one);
      const std::int64_t redone = check_attention(loud, ", one loud query");
      check(redone > 0 && redone < 6, "flash_attention_shared_shift",
            nk::text("one loud query: ", redone, " blocks computed again"));
      // Loud keys that the sample does not see: overflow.
      Attention late = with_sizes(dtype, causal, s, one, [](std::int64_t j) { return j > 400 ? 60. : 1.; });
      check(check_attention(late, ", loud keys late") > 0, "flash_attention_shared_shift",
            "loud keys late: nothing computed again");
      // All loud.
      check_attention(with_sizes(
                          dtype, causal, s, [](std::int64_t) { return 200.; }, one),
                      ", all loud");
      // Scores near the edges of what holds, either way.
      for (const double size : {3., 6., 10., 15., 20., 30.}) {
        check_attention(with_sizes(
                            dtype, causal, s, [&](std::int64_t i) { return i % 7 == 0 ? size : 0.1; }, one),
                        nk::text(", sizes 0.1 and ", size));
        check_attention(
            with_sizes(dtype, causal, s, one, [&](std::int64_t j) { return j % 5 == 0 ? 0. : size; }),
            nk::text(", keys 0 and ", size));
      }
      // Nothing to tell apart.
      check_attention(with_sizes(
                          dtype, causal, s, [](std::int64_t) { return 0.; }, one),
                      ", all equal");
    }
  }
}

TEST_CASE("flash_attention_shared_shift: a shift that every row of a block is far from is seen in the sums") {
  CHECK(nk::shared_shift_holds(1.f));
  CHECK(nk::shared_shift_holds(0x1p-60f));
  CHECK(nk::shared_shift_holds(0x1p60f));
  for (const float bad : {0.f, 0x1p-61f, 0x1p61f, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), -1.f})
    CHECK_FALSE(nk::shared_shift_holds(bad));
}

TEST_CASE("flash_attention_shared_shift: what it leaves to flash_attention") {
  Random random(3);
  for (const float scale : {0.f, -0.5f}) {
    Attention a =
        in_shared_shift(random_attention(random, {1, 2, 2, 40, 60, 16, 16}, DType::f32, DType::f32));
    a.scale = scale;
    CHECK(check_attention(a) == 2);
  }
  Attention few_keys =
      in_shared_shift(random_attention(random, {1, 1, 1, 60, 40, 16, 16}, DType::f32, DType::f32));
  few_keys.causal = true;
  CHECK(check_attention(few_keys) == 1);
  Attention no_keys =
      in_shared_shift(random_attention(random, {1, 1, 1, 5, 0, 16, 16}, DType::f32, DType::f32));
  check_attention(no_keys);
  Attention biased =
      in_shared_shift(random_attention(random, {1, 1, 1, 5, 6, 16, 16}, DType::f32, DType::f32));
  biased.bias = Tensor::constant(DType::f32, {1, 1, 5, 6}, 0);
  CHECK_THROWS_WITH(biased.run(), contains_text("use flash_attention"));
}

TEST_CASE("flash_attention_shared_shift: bitwise the same for every number of threads") {
  Random random(4);
  Attention a =
      in_shared_shift(random_attention(random, {2, 3, 1, 1111, 1300, 64, 64}, DType::f32, DType::f32));
  a.causal = true;
  const Attention::Result one = a.run();
  for (const int i : {1, 2}) {
    a.executor = &executor(i);
    check(a.run().dst.same_bits(one.dst), "flash_attention_shared_shift", "threads change bits");
  }
}

}  // namespace
}  // namespace test
