// replay: on Recorder the same Program comes out, on Host the same bits as when Host runs the kernel.
#include "neuron_kernels/record/replay.hpp"

#include "neuron_kernels/kernels/attention_merge.hpp"
#include "neuron_kernels/kernels/flash_attention.hpp"
#include "neuron_kernels/kernels/fused_mlp.hpp"
#include "neuron_kernels/kernels/matmul.hpp"
#include "norm_body.hpp"
#include "replaying.hpp"

namespace test {
namespace {

TEST_CASE("replay: matmul") {
  on_each_chip([](const nk::Limits& l) {
    for (const Size& s : {Size{128, 512, 128}, {133, 517, 130}, {300, 7, 5}, {1, 1, 1}, {3, 2, 0}}) {
      auto blocking = nk::MatmulBlocking::default_for(l, {s.m, s.n, s.k});
      for (const DType dtype : {DType::f32, DType::bf16}) {
        check_replay("matmul", l, matmul_arguments(dtype, s),
                     matmul_body(blocking, 0.f, true, false, Act::gelu, true));
        blocking.program_m = blocking.m;  // so that there are several programs
        blocking.program_n = blocking.n;
        check_replay("matmul", l, matmul_arguments(dtype, s),
                     matmul_body(blocking, 0.f, false, true, Act::identity, false));
      }
    }
  });
}

template <bool layernorm>
void check_norm_replay(const char* name) {
  on_each_chip([&](const nk::Limits& l) {
    for (const auto& [rows, n] : {std::pair{256, 64}, {133, 67}, {1, 1}, {3, 1030}}) {
      auto blocking = nk::NormBlocking::default_for(l, rows, n);
      blocking.program_rows = 2 * blocking.rows;
      for (const int given : {0, 1, 2, 3}) {  // as norm_body has it
        const std::vector<Argument> arguments = {
            {"src", DType::f32, {rows, n}},      {"dst", DType::f32, {rows, n}, true},
            {"weight", DType::bf16, {1, n}},     {"bias", DType::f32, {1, n}},
            {"residual", DType::f32, {rows, n}}, {"sum", DType::f32, {rows, n}, (given & 2) != 0}};
        check_replay(name, l, arguments, norm_body<layernorm>(given, blocking));
      }
    }
  });
}

TEST_CASE("replay: layernorm") { check_norm_replay<true>("layernorm"); }
TEST_CASE("replay: rmsnorm") { check_norm_replay<false>("rmsnorm"); }

TEST_CASE("replay: fused_mlp") {
  on_each_chip([](const nk::Limits& l) {
    for (const nk::MlpShape& s :
         {nk::MlpShape{512, 128, 256, 128}, {37, 130, 300, 67}, {600, 5, 7, 3}, {1, 1, 1, 1}}) {
      for (const bool gated : {true, false}) {
        auto blocking = nk::MlpBlocking::default_for(l, s);
        for (const int split : {nk::no_limit, blocking.inner}) {
          blocking.program_inner = split;
          const int splits = blocking.splits(s);
          const std::vector<Argument> arguments = {
              {"x", DType::f32, {s.tokens, s.hidden}},
              {"up", DType::f32, {s.inner, s.hidden}},
              {"gate", DType::f32, {s.inner, s.hidden}},
              {"down", DType::f32, {s.hidden_dst, s.inner}},
              {"up_bias", DType::f32, {s.inner, 1}},
              {"down_bias", DType::f32, {s.hidden_dst, 1}},
              {"dst", DType::f32, {s.tokens, s.hidden_dst}, splits == 1},
              {"partial", DType::f32, {splits, s.tokens, s.hidden_dst}, splits != 1}};
          check_replay("fused_mlp", l, arguments, [&](auto& nc, const auto& h) {
            nk::MlpArgs<TargetOf<decltype(nc)>> a;
            a.x = h[0], a.up = h[1], a.down = h[3], a.dst = h[6], a.partial = h[7];
            if (gated) a.gate = h[2];
            a.up_bias = h[4];
            if (splits == 1) a.down_bias = h[5];
            mlp_kernel(nc, a, blocking);
          });
        }
      }
    }
  });
  for (const std::int64_t tokens : {1, 67}) {
    check_replay("mlp_sum", nk::trn2,
                 {{"partial", DType::f32, {3, tokens, 9}},
                  {"dst", DType::bf16, {tokens, 9}, true},
                  {"down_bias", DType::f32, {1, 9}}},
                 [](auto& nc, const auto& h) {
                   nk::MlpSumArgs<TargetOf<decltype(nc)>> a;
                   a.partial = h[0], a.dst = h[1], a.down_bias = h[2];
                   mlp_sum_kernel(nc, a);
                 });
  }
}

TEST_CASE("replay: flash_attention") {
  on_each_chip([](const nk::Limits& l) {
    // batch, heads, kv_heads, q_len, kv_len, d, dv
    for (const nk::AttentionShape& s : {nk::AttentionShape{1, 2, 1, 256, 512, 64, 64},
                                        {2, 2, 2, 133, 150, 17, 9},
                                        {1, 4, 2, 1, 67, 8, 8},
                                        {1, 1, 1, 300, 200, 8, 8},
                                        {1, 1, 1, 1, 1, 1, 1},
                                        {1, 1, 1, 2, 1100, 8, 5}}) {
      for (const bool causal : {false, true}) {
        for (const bool biased : {false, true}) {
          auto blocking = nk::AttentionBlocking::default_for(l, s);
          if (s.kv_len > 1000) blocking.program_kv = blocking.kv;
          const std::int64_t splits = blocking.splits(s);
          const std::vector<Argument> arguments = {
              {"q", DType::f32, {s.batch, s.heads, s.q_len, s.d}},
              {"k", DType::f32, {s.batch, s.kv_heads, s.kv_len, s.d}},
              {"v", DType::f32, {s.batch, s.kv_heads, s.kv_len, s.dv}},
              {"dst", DType::f32, {splits * s.batch, s.heads, s.q_len, s.dv}, true},
              {"lse", DType::f32, {splits * s.batch, s.heads, s.q_len, 1}, true},
              {"bias", DType::f32, {s.batch, s.heads, s.q_len, s.kv_len}}};
          check_replay("flash_attention", l, arguments, [&](auto& nc, const auto& h) {
            nk::AttentionArgs<TargetOf<decltype(nc)>> a;
            a.q = h[0], a.k = h[1], a.v = h[2], a.dst = h[3], a.lse = h[4];
            if (biased) a.bias = h[5];
            a.scale = 0.125f, a.causal = causal;
            attention_kernel(nc, a, blocking);
          });
        }
      }
    }
    check_replay(
        "attention_merge", l,
        {{"partial", DType::f32, {3 * 2, 2, 130, 8}},
         {"partial_lse", DType::f32, {3 * 2, 2, 130, 1}},
         {"dst", DType::f32, {2, 2, 130, 8}, true}},
        [&](auto& nc, const auto& h) {
          nk::AttentionMergeArgs<TargetOf<decltype(nc)>> a;
          a.partial = h[0], a.partial_lse = h[1], a.dst = h[2];
          attention_merge_kernel(nc, a, nk::AttentionBlocking::default_for(l, {2, 2, 2, 130, 100, 8, 8}));
        });
  });
}

TEST_CASE("replay: every op on Host") {
  on_each_page([] {
    check_replay("every_op", nk::host_limits,
                 {{"x", DType::f32, {2, 12, 8}}, {"y", DType::f32, {2, 12, 8}, true}},
                 [](auto& nc, const auto& h) { every_op(nc, h[0], h[1]); });
    check_replay("small_kernel", nk::trn1,
                 {{"x", DType::bf16, {2, 300, 200}},
                  {"w", DType::bf16, {200, 64}},
                  {"y", DType::f32, {300, 64}, true}},
                 [](auto& nc, const auto& h) { small_kernel(nc, h[0], h[1], h[2]); });
  });
}

TEST_CASE("replay: an error names the line of the kernel") {
  const std::vector<Argument> arguments = {{"x", DType::f32, {2, 12, 8}}, {"y", DType::f32, {2, 12, 8}}};
  const Program program =
      recorded(nk::trn2, arguments, [](auto& nc, const auto& h) { every_op(nc, h[0], h[1]); });
  std::vector<Tensor> tensors = filled(arguments);  // y is not `written`: Host takes it as an input
  const std::vector<nk::Host::Hbm> inputs = hbms(tensors, arguments);
  const auto run = [&] {
    nk::host::launch(&executor(0), 1,
                     [&](nk::Host& nc) { nk::replay(program, nc, std::span<const nk::Host::Hbm>(inputs)); });
  };
  CHECK_THROWS_WITH(run(), contains_text("recording.hpp:") && contains_text(" store, replayed: ") &&
                               contains_text("an input of the kernel"));
}

TEST_CASE("replay: tensors of another number, shape or dtype are refused") {
  const Program program = recorded(nk::trn2, {{"x", DType::f32, {2, 12, 8}}, {"y", DType::f32, {2, 12, 8}}},
                                   [](auto& nc, const auto& h) { every_op(nc, h[0], h[1]); });
  const auto replay_with = [&](const std::vector<Argument>& arguments) {
    recorded(nk::trn2, arguments,
             [&](auto& nc, const auto& h) { nk::replay(program, nc, std::span<const Recorder::Hbm>(h)); });
  };
  const Argument x{"x", DType::f32, {2, 12, 8}};
  CHECK_NOTHROW(replay_with({x, x}));
  CHECK_THROWS_WITH(replay_with({x}), contains_text("1 given; the program has 2"));
  CHECK_THROWS_WITH(replay_with({x, {"y", DType::bf16, {2, 12, 8}}}),
                    contains_text("argument y: is not the f32 [2, 12, 8]"));
  CHECK_THROWS_WITH(replay_with({x, {"y", DType::f32, {2, 12, 9}}}),
                    contains_text("argument y: is not the f32 [2, 12, 8]"));
  CHECK_THROWS_WITH(replay_with({x, {"y", DType::f32, {24, 8}}}),
                    contains_text("argument y: is not the f32 [2, 12, 8]"));
}

}  // namespace
}  // namespace test
