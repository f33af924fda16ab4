// check() on every kernel of the library with its default blocking, for each chip: no errors.
#include <chrono>

#include "checking.hpp"
#include "neuron_kernels/kernels/attention_merge.hpp"
#include "neuron_kernels/kernels/flash_attention.hpp"
#include "neuron_kernels/kernels/flash_attention_shared_shift.hpp"
#include "neuron_kernels/kernels/flash_attention_strip.hpp"
#include "neuron_kernels/kernels/fused_mlp.hpp"
#include "neuron_kernels/kernels/layernorm.hpp"
#include "neuron_kernels/kernels/matmul.hpp"
#include "neuron_kernels/kernels/rmsnorm.hpp"
#include "neuron_kernels/record/schedule.hpp"

namespace test {
namespace {

std::vector<nk::Finding> errors_of(const Program& program, const nk::Limits& l) {
  std::vector<nk::Finding> found = check(program, l);
  std::erase_if(found, [](const nk::Finding& f) { return f.severity != Severity::error; });
  return found;
}

/// The program, and as allocate() and schedule() place it, breaks no rule and is checked in 50 ms.
void legal(const std::string& kernel, const Program& program, const nk::Limits& l) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<nk::Finding> found = errors_of(program, l);
  const double ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  for (const nk::Finding& f : found) UNSCOPED_INFO(kernel << " on " << l.chip << ": " << f.text);
  CHECK(found.empty());
#if defined(NDEBUG) && !defined(NEURON_KERNELS_TEST_ASAN)
  CHECK(ms < 50);
#else
  (void)ms;
#endif
  for (const Program& placed : {allocate(program, l), schedule(program, l)}) {
    for (const nk::Finding& f : errors_of(placed, l)) {
      UNSCOPED_INFO(kernel << " on " << l.chip << ", placed: " << f.text);
      CHECK(f.text.empty());
    }
  }
}

TEST_CASE("check: matmul is legal on every chip") {
  for (const nk::Limits* l : chips) {
    for (const Size& s :
         {Size{128, 512, 128}, {133, 517, 130}, {300, 7, 5}, {1, 1, 1}, {3, 2, 0}, {4096, 8192, 8192}}) {
      for (const DType dtype : {DType::f32, DType::bf16}) {
        for (const bool residual : {false, true}) {
          const auto blocking = nk::MatmulBlocking::default_for(*l, {s.m, s.n, s.k});
          legal(nk::text("matmul ", s.m, " ", s.n, " ", s.k),
                recorded(*l, matmul_arguments(dtype, s),
                         matmul_body(blocking, 0.5f, residual, !residual,
                                     residual ? Act::gelu : Act::identity, residual)),
                *l);
        }
      }
    }
  }
}

TEST_CASE("check: the norms are legal on every chip") {
  for (const nk::Limits* l : chips) {
    for (const auto& [rows, n] : {std::pair{256, 64}, {133, 67}, {1, 1}, {3, 1030}, {4096, 4096}}) {
      const auto blocking = nk::NormBlocking::default_for(*l, rows, n);
      for (const int given : {0, 1, 2, 3}) {
        const std::vector<Argument> arguments = {
            {"src", DType::bf16, {rows, n}},      {"dst", DType::bf16, {rows, n}},
            {"weight", DType::bf16, {1, n}},      {"bias", DType::f32, {1, n}},
            {"residual", DType::bf16, {rows, n}}, {"sum", DType::bf16, {rows, n}}};
        const auto run = [&](auto& nc, const auto& h, auto a) {
          a.src = h[0], a.dst = h[1];
          if (given & 1) a.weight = h[2];
          if (given & 2) a.residual = h[4], a.sum = h[5];
          if constexpr (requires { a.bias; }) {
            if (given & 1) a.bias = h[3];
            layernorm_kernel(nc, a, blocking);
          } else {
            rmsnorm_kernel(nc, a, blocking);
          }
        };
        legal(nk::text("layernorm ", rows, " ", n),
              recorded(*l, arguments,
                       [&](auto& nc, const auto& h) { run(nc, h, nk::LayernormArgs<Recorder>{}); }),
              *l);
        legal(nk::text("rmsnorm ", rows, " ", n),
              recorded(*l, arguments,
                       [&](auto& nc, const auto& h) { run(nc, h, nk::RmsnormArgs<Recorder>{}); }),
              *l);
      }
    }
  }
}

Program mlp(const nk::Limits& l, const nk::MlpShape& s, DType dtype, bool gated, int split = nk::no_limit) {
  auto blocking = nk::MlpBlocking::default_for(l, s);
  blocking.program_inner = split;
  const int splits = blocking.splits(s);
  return recorded(l,
                  {{"x", dtype, {s.tokens, s.hidden}},
                   {"up", dtype, {s.inner, s.hidden}},
                   {"gate", dtype, {s.inner, s.hidden}},
                   {"down", dtype, {s.hidden_dst, s.inner}},
                   {"up_bias", DType::f32, {s.inner, 1}},
                   {"dst", dtype, {s.tokens, s.hidden_dst}},
                   {"partial", DType::f32, {splits, s.tokens, s.hidden_dst}}},
                  [&](auto& nc, const auto& h) {
                    nk::MlpArgs<Recorder> a;
                    a.x = h[0], a.up = h[1], a.down = h[3], a.dst = h[5], a.partial = h[6];
                    if (gated) a.gate = h[2];
                    a.up_bias = h[4];
                    mlp_kernel(nc, a, blocking);
                  });
}

TEST_CASE("check: fused_mlp is legal on every chip") {
  for (const nk::Limits* l : chips) {
    for (const nk::MlpShape& s : {nk::MlpShape{512, 128, 256, 128},
                                  {37, 130, 300, 67},
                                  {600, 5, 7, 3},
                                  {1, 1, 1, 1},
                                  {4096, 2048, 8192, 2048}}) {
      for (const bool gated : {true, false}) {
        legal(nk::text("fused_mlp ", s.tokens, " ", s.hidden), mlp(*l, s, DType::bf16, gated), *l);
        legal("fused_mlp, split", mlp(*l, s, DType::f32, gated, 128), *l);
      }
    }
    legal("mlp_sum",
          recorded(*l,
                   {{"partial", DType::f32, {3, 67, 9}},
                    {"dst", DType::bf16, {67, 9}},
                    {"bias", DType::f32, {1, 9}}},
                   [](auto& nc, const auto& h) {
                     nk::MlpSumArgs<Recorder> a;
                     a.partial = h[0], a.dst = h[1], a.down_bias = h[2];
                     mlp_sum_kernel(nc, a);
                   }),
          *l);
  }
}

Program attention(const nk::Limits& l, const nk::AttentionShape& s, DType dtype, bool causal, bool biased) {
  const auto blocking = nk::AttentionBlocking::default_for(l, s);
  return recorded(l,
                  {{"q", dtype, {s.batch, s.heads, s.q_len, s.d}},
                   {"k", dtype, {s.batch, s.kv_heads, s.kv_len, s.d}},
                   {"v", dtype, {s.batch, s.kv_heads, s.kv_len, s.dv}},
                   {"dst", dtype, {s.batch, s.heads, s.q_len, s.dv}},
                   {"lse", DType::f32, {s.batch, s.heads, s.q_len, 1}},
                   {"bias", DType::f32, {s.batch, s.heads, s.q_len, s.kv_len}}},
                  [&](auto& nc, const auto& h) {
                    nk::AttentionArgs<Recorder> a;
                    a.q = h[0], a.k = h[1], a.v = h[2], a.dst = h[3], a.lse = h[4];
                    if (biased) a.bias = h[5];
                    a.causal = causal, a.scale = 0.125f;
                    attention_kernel(nc, a, blocking);
                  });
}

TEST_CASE("check: flash_attention is legal on every chip") {
  for (const nk::Limits* l : chips) {
    for (const nk::AttentionShape& s : {nk::AttentionShape{1, 2, 1, 256, 512, 64, 64},
                                        {2, 2, 2, 133, 150, 17, 9},
                                        {1, 4, 2, 1, 67, 8, 8},
                                        {1, 1, 1, 300, 200, 8, 8},
                                        {1, 1, 1, 1, 1, 1, 1},
                                        {1, 1, 1, 2, 1100, 8, 5},
                                        {1, 32, 8, 8191, 8191, 128, 128}}) {
      for (const bool causal : {false, true}) {
        for (const bool biased : {false, true})
          legal(nk::text("flash_attention ", s.q_len, " ", s.kv_len, " ", s.d),
                attention(*l, s, DType::bf16, causal, biased), *l);
      }
    }
    legal("attention_merge",
          recorded(*l,
                   {{"partial", DType::f32, {6, 2, 133, 64}},
                    {"partial_lse", DType::f32, {6, 2, 133, 1}},
                    {"dst", DType::bf16, {2, 2, 133, 64}},
                    {"lse", DType::f32, {2, 2, 133, 1}}},
                   [&](auto& nc, const auto& h) {
                     nk::AttentionMergeArgs<Recorder> a;
                     a.partial = h[0], a.partial_lse = h[1], a.dst = h[2], a.lse = h[3];
                     attention_merge_kernel(
                         nc, a, nk::AttentionBlocking::default_for(*l, {2, 2, 2, 133, 1, 64, 64}));
                   }),
          *l);
  }
}

TEST_CASE("check: attention in strips is legal on every chip, with a shared shift on trn3") {
  for (const nk::Limits* l : chips) {
    for (const std::int64_t n : {512, 700, 8192}) {
      for (const bool causal : {false, true}) {
        const std::vector<Argument> arguments = {{"q", DType::bf16, {1, 2, n, 128}},
                                                 {"k", DType::bf16, {1, 1, n, 128}},
                                                 {"v", DType::bf16, {1, 1, n, 128}},
                                                 {"dst", DType::bf16, {1, 2, n, 128}},
                                                 {"sums", DType::f32, {1, 2, n, 1}}};
        const auto run = [&](auto& nc, const auto& h, auto a) {
          a.q = h[0], a.k = h[1], a.v = h[2], a.dst = h[3], a.causal = causal;
          if constexpr (requires { a.sums; }) {
            a.sums = h[4];
            shared_shift_attention_kernel(nc, a, {});
          } else {
            strip_attention_kernel(nc, a, {});
          }
        };
        const Program shared = recorded(
            *l, arguments, [&](auto& nc, const auto& h) { run(nc, h, nk::SharedShiftArgs<Recorder>{}); });
        legal(nk::text("shared_shift_attention ", n), shared, *l);
        legal(nk::text("shared_shift_attention, scheduled, ", n), schedule(shared, *l), *l);
        legal(nk::text("strip_attention ", n),
              recorded(*l, arguments,
                       [&](auto& nc, const auto& h) { run(nc, h, nk::AttentionArgs<Recorder>{}); }),
              *l);
      }
    }
  }
}

TEST_CASE("check: what does not fit SBUF is named with its largest tiles") {
  const auto too_much = [](const Program& program, const nk::Limits& l, const std::string& tile) {
    const std::vector<nk::Finding> found = errors_of(program, l);
    REQUIRE(found.size() == 1);
    CHECK(found[0].rule == Rule::sbuf_capacity);
    CHECK_THAT(found[0].text, contains_text(tile));
  };
  too_much(attention(nk::trn2, {1, 1, 1, 65536, 65536, 128, 128}, DType::bf16, true, false), nk::trn2,
           "\"kT\"");
  too_much(mlp(nk::trn1, {512, 4096, 14336, 4096}, DType::f32, true), nk::trn1, "\"hT\"");
  const Size wide{512, 512, 65536};
  too_much(recorded(nk::trn3, matmul_arguments(DType::f32, wide),
                    matmul_body(nk::MatmulBlocking::default_for(nk::trn3, {wide.m, wide.n, wide.k}), 0.f,
                                false, false, Act::identity, false)),
           nk::trn3, "\"b\"");
}

}  // namespace
}  // namespace test
