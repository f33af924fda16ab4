// pipeline: rotated loops give the same bits, and the engines overlap.
#include "neuron_kernels/record/pipeline.hpp"

#include "neuron_kernels/kernels/flash_attention_shared_shift.hpp"
#include "neuron_kernels/kernels/flash_attention_strip.hpp"
#include "neuron_kernels/kernels/fused_mlp.hpp"
#include "neuron_kernels/kernels/layernorm.hpp"
#include "neuron_kernels/record/schedule.hpp"
#include "neuron_kernels/sim/simulate.hpp"
#include "replaying.hpp"

namespace test {
namespace {

int loops_in(const Program& p) { return static_cast<int>(p.loops.size()); }

/// The kernel for `l`, its pipelined and scheduled Program replayed on Host: the same bits.
template <class Body>
void check_pipelined(const std::string& kernel, const nk::Limits& l, const std::vector<Argument>& arguments,
                     const Body& body, bool rotated) {
  std::string what = l.chip;
  for (const Argument& a : arguments) what += nk::text(" ", a.name, " ", nk::shape_text(nk::Layout(a.shape)));
  const Program program = recorded(l, arguments, body);
  std::vector<Tensor> direct = filled(arguments);
  const std::vector<Tensor> inputs = direct;
  nk::host::launch(&executor(0), 1, [&](nk::Host& nc) { body(nc, hbms(direct, arguments)); });
  for (const int lag : {1, 2, 3}) {
    const Program piped = pipeline(program, {.step_lag = lag, .block_lag = lag});
    if (rotated && lag == 2)
      check(loops_in(piped) > loops_in(program), kernel, what + ": no loop was rotated");
    std::vector<Tensor> replayed = inputs;
    const auto tensors = hbms(replayed, arguments);
    nk::host::launch(&executor(0), 1,
                     [&](nk::Host& nc) { nk::replay(piped, nc, std::span<const nk::Host::Hbm>(tensors)); });
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      check(replayed[i].same_bits(direct[i]) && replayed[i].outside_untouched(), kernel,
            nk::text(what, ", lag ", lag, ": differs in ", arguments[i].name));
    }
  }
}

TEST_CASE("pipeline: attention with a shared shift") {
  for (const nk::Limits* l : {&nk::trn1, &nk::trn2, &nk::trn3}) {
    for (const auto& [q_len, kv_len] : {std::pair<std::int64_t, std::int64_t>{1024, 1024},
                                        {1536, 1536},
                                        {512, 2048},
                                        {700, 900},
                                        {130, 130}}) {
      for (const bool causal : {false, true}) {
        const std::vector<Argument> arguments = {
            {"q", DType::bf16, {1, 4, q_len, 32}},        {"k", DType::bf16, {1, 2, kv_len, 32}},
            {"v", DType::bf16, {1, 2, kv_len, 32}},       {"dst", DType::bf16, {1, 4, q_len, 32}, true},
            {"sums", DType::f32, {1, 4, q_len, 1}, true}, {"lse", DType::f32, {1, 4, q_len, 1}, true}};
        check_pipelined(
            "shared_shift_attention", *l, arguments,
            [&](auto& nc, const auto& h) {
              using T = TargetOf<decltype(nc)>;
              nk::SharedShiftArgs<T> args{
                  .q = h[0], .k = h[1], .v = h[2], .dst = h[3], .sums = h[4], .lse = h[5]};
              args.scale = 0.125f, args.causal = causal;
              shared_shift_attention_kernel(nc, args, {});
            },
            kv_len >= 512);
      }
    }
  }
}

TEST_CASE("pipeline: the other kernels") {
  for (const nk::Limits* l : {&nk::trn1, &nk::trn2, &nk::trn3}) {
    for (const std::int64_t n : {130, 384, 640}) {
      for (const bool causal : {false, true}) {
        const std::vector<Argument> arguments = {{"q", DType::f32, {1, 2, n, 32}},
                                                 {"k", DType::f32, {1, 1, n, 32}},
                                                 {"v", DType::f32, {1, 1, n, 32}},
                                                 {"dst", DType::f32, {1, 2, n, 32}, true}};
        check_pipelined(
            "strip_attention", *l, arguments,
            [&](auto& nc, const auto& h) {
              nk::AttentionArgs<TargetOf<decltype(nc)>> args{.q = h[0], .k = h[1], .v = h[2], .dst = h[3]};
              args.scale = 0.2f, args.causal = causal;
              strip_attention_kernel(nc, args, {});
            },
            false);
        check_pipelined(
            "flash_attention", *l, arguments,
            [&](auto& nc, const auto& h) {
              nk::AttentionArgs<TargetOf<decltype(nc)>> args{.q = h[0], .k = h[1], .v = h[2], .dst = h[3]};
              args.scale = 0.2f, args.causal = causal;
              attention_kernel(nc, args, nk::AttentionBlocking::default_for(*l, {1, 2, 1, n, n, 32, 32}));
            },
            false);
      }
      const std::vector<Argument> mlp = {{"x", DType::f32, {n, 256}},
                                         {"y", DType::f32, {n, 256}, true},
                                         {"gate", DType::f32, {384, 256}},
                                         {"up", DType::f32, {384, 256}},
                                         {"down", DType::f32, {256, 384}}};
      check_pipelined(
          "fused_mlp", *l, mlp,
          [&](auto& nc, const auto& h) {
            nk::MlpArgs<TargetOf<decltype(nc)>> args;
            args.x = h[0], args.dst = h[1], args.gate = h[2], args.up = h[3], args.down = h[4];
            mlp_kernel(nc, args, nk::MlpBlocking::default_for(*l, {n, 256, 384, 256}));
          },
          false);
      const Size s{n, 517, 130};
      check_pipelined("matmul", *l, matmul_arguments(DType::f32, s),
                      matmul_body(nk::MatmulBlocking::default_for(*l, {s.m, s.n, s.k}), 0.f, true, false,
                                  Act::gelu, true),
                      false);
      const std::vector<Argument> norm = {{"src", DType::f32, {n, 300}},
                                          {"dst", DType::f32, {n, 300}, true},
                                          {"weight", DType::f32, {1, 300}},
                                          {"bias", DType::f32, {1, 300}}};
      check_pipelined(
          "layernorm", *l, norm,
          [&](auto& nc, const auto& h) {
            nk::LayernormArgs<TargetOf<decltype(nc)>> args;
            args.src = h[0], args.dst = h[1], args.weight = h[2], args.bias = h[3];
            layernorm_kernel(nc, args, nk::NormBlocking::default_for(*l, n, 300));
          },
          false);
    }
  }
}

/// Rounds of: load x, s = w^T x (tensor), e = exp(s) + carried (other engines), y += w^T e (tensor), store.
template <nk::Target T>
void rounds(T& nc, const typename T::Hbm& x, const typename T::Hbm& y, int blocks, int steps) {
  auto w = nc.sbuf("w", 32, 32, DType::f32);
  nc.copy(w, nc.load("w_in", x.rows(nc.index(0), 32)));
  for (auto b : nc.range(blocks)) {
    auto sum = nc.sbuf("sum", 32, 32, DType::f32), carried = nc.sbuf("carried", 32, 1, DType::f32);
    nc.fill(sum, 0.f);
    nc.fill(carried, 0.5f);
    for (auto j : nc.range(b % 3, b % 3 + steps)) {  // a range that moves with the block
      const auto in = nc.load("in", x.rows((b * 8 + j) % 7 * 32, 32));
      auto s = nc.psum("s", 32, 32), out = nc.psum("out", 32, 32);
      auto e = nc.sbuf("e", 32, 32, DType::f32), top = nc.sbuf("top", 32, 1, DType::f32);
      nc.matmul(s, w, in);
      nc.tensor_scalar(e, s, Alu::multiply, 0.01f);
      nc.activate(e, Act::tanh, e, {.bias = carried});
      nc.reduce(top, Alu::max, e);
      nc.tensor_tensor(carried, carried, Alu::add, top);  // from one step to the next
      nc.matmul(out, w, e);
      nc.tensor_tensor(sum, sum, Alu::add, out);
    }
    nc.store(y.rows(b * 32, 32), sum);
  }
}

TEST_CASE("pipeline: state that is carried, ranges that move, few steps and few blocks") {
  for (const int blocks : {1, 2, 3, 7}) {
    for (const int steps : {1, 2, 3, 4, 9}) {
      const std::vector<Argument> arguments = {{"x", DType::f32, {7 * 32, 32}},
                                               {"y", DType::f32, {blocks * 32, 32}, true}};
      check_pipelined(
          "rounds", nk::trn2, arguments,
          [&](auto& nc, const auto& h) { rounds(nc, h[0], h[1], blocks, steps); }, blocks > 2 && steps > 2);
    }
  }
}

TEST_CASE("pipeline: more overlap, within SBUF and PSUM") {
  Recorder nc(nk::trn2);
  const std::int64_t n = 4096;
  const auto t = [&](const char* name, std::int64_t d, DType type) {
    return nc.hbm(name, type, {1, 4, n, d});
  };
  nk::SharedShiftArgs<Recorder> a{.q = t("q", 128, DType::bf16),
                                  .k = t("k", 128, DType::bf16),
                                  .v = t("v", 128, DType::bf16),
                                  .dst = t("o", 128, DType::bf16),
                                  .sums = t("s", 1, DType::f32)};
  a.scale = 0.088f;
  shared_shift_attention_kernel(nc, a, {});
  const auto mfu = [&](bool rotate) {
    const Program p = schedule(nc.program(), nk::trn2, {.rotate = rotate});
    return nk::sim::simulate(p, nk::sim::parameters_for("trn2")).mfu();
  };
  const double plain = mfu(false), piped = mfu(true);
  INFO(plain << " " << piped);
  CHECK(plain < 0.4);
  CHECK(piped > 0.85);
}

}  // namespace
}  // namespace test
