// Every legal blocking gives a right answer, and an illegal one is refused by name:
// the kernels below the public calls.
#include "attention.hpp"
#include "neuron_kernels/fused_mlp.hpp"
#include "neuron_kernels/layernorm.hpp"
#include "neuron_kernels/matmul.hpp"
#include "neuron_kernels/rmsnorm.hpp"
#include "reference/fused_mlp.hpp"
#include "reference/layernorm.hpp"
#include "reference/matmul.hpp"
#include "reference/rmsnorm.hpp"

namespace test {
namespace {

using nk::Host;

// Far more programs than any of these calls has, so that all threads of the executor take part.
constexpr std::int64_t many = 64;

/// Numbers of steps for sizes up to about 150:
/// one, a few, a vector, what divides nothing, more than there is.
constexpr int steps[] = {1, 3, 16, 42, 100, 1000};

/// Runs kernel(nc) on one and on five threads into a dst made by fresh();
/// both must be `want` and the same bits.
template <class Kernel>
void check_blocked(const std::string& name, const std::string& what, Tensor& dst,
                   const reference::Approx& want, const Kernel& kernel) {
  const Tensor fresh = dst;
  on_each_page([&] {
    dst = fresh;
    nk::host::launch(&executor(0), many, kernel);
    check_near(name, what, dst, dst.rows(), reference::stored(want, dst.dtype()));
    const Tensor one = dst;
    dst = fresh;
    nk::host::launch(&executor(2), many, kernel);
    check(dst.same_bits(one), name, what + ": other bits with five threads");
  });
}

TEST_CASE("matmul: all blockings") {
  const std::int64_t m = 45, n = 101, k = 67;
  Random random(1);
  for (const auto& row : pairwise({6, 6, 6, 6, 6, 3, 3})) {
    const DType dtype = all_dtypes[row[5]];
    const nk::MatmulBlocking blocking{.m = steps[row[0]],
                                      .n = steps[row[1]],
                                      .k = steps[row[2]],
                                      .program_m = steps[row[3]],
                                      .program_n = steps[row[4]]};
    CHECK_NOTHROW(blocking.check(nk::host_limits));
    const Tensor a = Tensor::normal(random, dtype, {1, 1, m, k}),
                 b = Tensor::normal(random, dtype, {1, 1, k, n},
                                    strides_for({1, 1, k, n}, input_lies[row[6]])),
                 bias = Tensor::normal(random, dtype, {1, n});
    Tensor dst(DType::f32, {1, 1, m, n});
    nk::MatmulArgs<Host> args;
    args.a = a.view(), args.b = b.view(), args.dst = dst.view(), args.row_bias = bias.view();
    args.alpha = 0.5f, args.activation = nk::Act::tanh;
    const reference::MatmulTerms terms{
        .alpha = 0.5, .dst = {}, .bias = bias.matrix().row(0), .activation = nk::Act::tanh, .residual = {}};
    check_blocked(
        "matmul",
        nk::text("[45, 67] x [67, 101] ", nk::name_of(dtype), ", blocking m ", blocking.m, " n ", blocking.n,
                 " k ", blocking.k, " program_m ", blocking.program_m, " program_n ", blocking.program_n),
        dst, reference::matmul_bound(a.matrix(), b.matrix(), terms), [&](Host& nc) {
          args.dst = dst.view();
          nk::matmul_kernel(nc, args, blocking);
        });
  }
}

TEST_CASE("norms: all blockings") {
  const std::int64_t row_count = 45, n = 37;
  Random random(2);
  for (const auto& row : pairwise({6, 6, 3})) {
    const DType dtype = all_dtypes[row[2]];
    const nk::NormBlocking blocking{.rows = steps[row[0]], .program_rows = steps[row[1]]};
    CHECK_NOTHROW(blocking.check(nk::host_limits));
    const Tensor x = Tensor::normal(random, dtype, {row_count, n}),
                 weight = Tensor::normal(random, dtype, {1, n}), bias = Tensor::normal(random, dtype, {1, n});
    Tensor dst(DType::f32, {row_count, n});
    const std::string what = nk::text("[45, 37] ", nk::name_of(dtype), ", blocking rows ", blocking.rows,
                                      " program_rows ", blocking.program_rows);
    nk::LayernormArgs<Host> layer;
    layer.src = x.view(), layer.weight = weight.view(), layer.bias = bias.view();
    layer.dst = dst.view();
    check_blocked("layernorm", what, dst,
                  reference::layernorm_bound(x.matrix(), weight.matrix().row(0), bias.matrix().row(0),
                                             static_cast<double>(layer.eps)),
                  [&](Host& nc) { nk::layernorm_kernel(nc, layer, blocking); });
    Tensor rms_dst(DType::f32, {row_count, n});
    nk::RmsnormArgs<Host> rms;
    rms.dst = rms_dst.view(), rms.src = x.view(), rms.weight = weight.view();
    check_blocked("rmsnorm", what, rms_dst,
                  reference::rmsnorm_bound(x.matrix(), weight.matrix().row(0), static_cast<double>(rms.eps)),
                  [&](Host& nc) { nk::rmsnorm_kernel(nc, rms, blocking); });
  }
}

TEST_CASE("fused_mlp: all blockings") {
  const std::int64_t tokens = 19, hidden = 37, inner = 101, hidden_dst = 23;
  Random random(3);
  for (const auto& row : pairwise({6, 6, 6, 6, 3, 2})) {
    const DType dtype = all_dtypes[row[4]];
    const nk::MlpBlocking blocking{.tokens = steps[row[0]],
                                   .hidden = steps[row[1]],
                                   .inner = steps[row[2]],
                                   .program_inner = steps[row[3]]};
    CHECK_NOTHROW(blocking.check(nk::host_limits));
    const Tensor x = Tensor::normal(random, dtype, {tokens, hidden}),
                 up = Tensor::normal(random, dtype, {inner, hidden}, {}, 0.2),
                 gate = Tensor::normal(random, dtype, {inner, hidden}, {}, 0.2),
                 down = Tensor::normal(random, dtype, {hidden_dst, inner}, {}, 0.1),
                 bias = Tensor::normal(random, dtype, {hidden_dst});
    reference::Mlp meaning{up.matrix(), down.matrix(), {}, {}, bias.matrix().row(0), {}};
    const nk::MlpShape shape{tokens, hidden, inner, hidden_dst};
    const int splits = blocking.splits(shape);
    Tensor dst(dtype, {tokens, hidden_dst}), partial(DType::f32, {splits, tokens, hidden_dst});
    nk::MlpArgs<Host> args;
    args.x = x.view(), args.up = up.view(), args.down = down.view(),
    args.down_bias = nk::host::as_column(bias.view());
    if (row[5] != 0) args.gate = gate.view(), meaning.gate = gate.matrix();
    args.dst = dst.view(), args.partial = partial.view();
    const std::string what = nk::text("x [19, 37] ", nk::name_of(dtype), ", inner 101, blocking tokens ",
                                      blocking.tokens, " hidden ", blocking.hidden, " inner ", blocking.inner,
                                      " program_inner ", blocking.program_inner);
    reference::Approx want = reference::fused_mlp_bound(x.matrix(), meaning, dtype);
    if (splits == 1) {
      check_blocked("fused_mlp", what, dst, want, [&](Host& nc) { nk::mlp_kernel(nc, args, blocking); });
      continue;
    }
    nk::MlpSumArgs<Host> sum;
    sum.partial = partial.view(), sum.dst = dst.view(), sum.down_bias = nk::host::as_row(bias.view());
    on_each_page([&] {
      nk::host::launch(&executor(2), many, [&](Host& nc) { nk::mlp_kernel(nc, args, blocking); });
      nk::host::launch(&executor(1), many, [&](Host& nc) { nk::mlp_sum_kernel(nc, sum); });
      check_near("fused_mlp", what, dst, 0, want);
    });
  }
}

TEST_CASE("flash_attention: all blockings") {
  constexpr int pv_steps[] = {1, 5, 16, 64};
  constexpr int kv_factors[] = {1, 2, 7}, program_factors[] = {1, 3, 100};
  Random random(4);
  for (const auto& row : pairwise({6, 4, 3, 6, 4, 3, 2, 3})) {
    const DType dtype = all_dtypes[row[5]];
    nk::AttentionBlocking blocking;
    blocking.q = steps[row[0]], blocking.pv = pv_steps[row[1]],
    blocking.kv = blocking.pv * kv_factors[row[2]];
    blocking.masked = row[7] == 0 ? blocking.pv : row[7] == 1 || blocking.pv % 4 != 0 ? 1 : blocking.pv / 4;
    blocking.program_q = steps[row[3]];
    if (row[4] != 0) blocking.program_kv = blocking.kv * program_factors[row[4] - 1];
    CHECK_NOTHROW(blocking.check(nk::host_limits));
    Attention a = random_attention(random, {1, 2, 1, 29, 53, 16, 8}, dtype, DType::f32);
    a.causal = row[6] != 0, a.lse = Tensor(DType::f32, {1, 2, 29});
    const nk::AttentionShape shape{1, 2, 1, 29, 53, 16, 8};
    const int splits = blocking.splits(shape);
    Tensor partial(DType::f32, {splits, 2, 29, 8}), partial_lse(DType::f32, {splits, 2, 29, 1}),
        dst = a.dst, lse(DType::f32, {1, 2, 29, 1});
    nk::AttentionArgs<Host> args;
    args.q = a.q.view(), args.k = a.k.view(), args.v = a.v.view(), args.scale = 0.25f, args.causal = a.causal;
    args.dst = splits == 1 ? dst.view() : partial.view(),
    args.lse = splits == 1 ? lse.view() : partial_lse.view();
    nk::AttentionMergeArgs<Host> merge;
    merge.partial = partial.view(), merge.partial_lse = partial_lse.view(), merge.dst = dst.view(),
    merge.lse = lse.view();
    const std::string what = nk::text(describe(a), ", blocking q ", blocking.q, " kv ", blocking.kv, " pv ",
                                      blocking.pv, " masked ", blocking.masked, " program_q ",
                                      blocking.program_q, " program_kv ", blocking.program_kv);
    on_each_page([&] {
      nk::host::launch(&executor(2), many, [&](Host& nc) { nk::attention_kernel(nc, args, blocking); });
      if (splits > 1)
        nk::host::launch(&executor(1), many,
                         [&](Host& nc) { nk::attention_merge_kernel(nc, merge, blocking); });
      for (std::int64_t h = 0; h < 2; ++h) {
        const auto want = reference::attention(a.head(0, h), dtype, blocking.masked);
        check_near("flash_attention", what, dst, h, want.dst);
        check_near("flash_attention", "lse, " + what, lse, h, want.lse);
      }
    });
  }
}

/// check() of a blocking must throw a ShapeError naming kernel and field.
template <class Blocking>
void check_illegal(const Blocking& blocking, const nk::Limits& limits, const std::string& kernel,
                   const std::string& field) {
  check_rejects(kernel, field, {}, Tensor(), [&] { blocking.check(limits); });
}

TEST_CASE("blockings that a chip or the arithmetic forbids are refused") {
  check_illegal(nk::MatmulBlocking{.m = 0}, nk::host_limits, "matmul", "blocking.m");
  check_illegal(nk::MatmulBlocking{.program_n = -1}, nk::host_limits, "matmul", "blocking.program_n");
  check_illegal(nk::MatmulBlocking{.m = nk::trn2.partitions + 1}, nk::trn2, "matmul", "blocking.m");
  check_illegal(nk::MatmulBlocking{.n = nk::trn2.gemm_moving_fmax + 1}, nk::trn2, "matmul", "blocking.n");
  check_illegal(nk::MatmulBlocking{.k = nk::trn2.partitions + 1}, nk::trn2, "matmul", "blocking.k");
  check_illegal(nk::NormBlocking{.rows = 0}, nk::host_limits, "norm", "blocking.rows");
  check_illegal(nk::NormBlocking{.rows = nk::trn2.partitions + 1}, nk::trn2, "norm", "blocking.rows");
  check_illegal(nk::MlpBlocking{.tokens = nk::trn2.gemm_moving_fmax + 1}, nk::trn2, "fused_mlp",
                "blocking.tokens");
  check_illegal(nk::MlpBlocking{.hidden = 0}, nk::host_limits, "fused_mlp", "blocking.hidden");
  check_illegal(nk::MlpBlocking{.inner = nk::trn2.partitions + 1}, nk::trn2, "fused_mlp", "blocking.inner");
  check_illegal(nk::AttentionBlocking{.q = 0}, nk::host_limits, "flash_attention", "blocking.q");
  check_illegal(nk::AttentionBlocking{.kv = 96, .pv = 64, .masked = 64}, nk::host_limits, "flash_attention",
                "blocking");
  check_illegal(nk::AttentionBlocking{.kv = 128, .pv = 64, .masked = 64, .program_kv = 192}, nk::host_limits,
                "flash_attention", "blocking");
  check_illegal(nk::AttentionBlocking{.kv = 128, .pv = 64, .masked = 48}, nk::host_limits, "flash_attention",
                "blocking");
  check_illegal(nk::AttentionBlocking{.pv = nk::trn2.partitions + 1}, nk::trn2, "flash_attention",
                "blocking.pv");
}

TEST_CASE("the default blocking is legal on every target") {
  for (const nk::Limits& limits : {nk::host_limits, nk::trn1, nk::trn2, nk::trn3}) {
    for (const std::int64_t n : {1, 7, 128, 1000, 5000}) {
      CHECK_NOTHROW(nk::MatmulBlocking::default_for(limits, {n, 513, 700}).check(limits));
      CHECK_NOTHROW(nk::NormBlocking::default_for(limits, n, 576).check(limits));
      CHECK_NOTHROW(nk::MlpBlocking::default_for(limits, {n, 576, 1536, 576}).check(limits));
      CHECK_NOTHROW(nk::AttentionBlocking::default_for(limits, {1, 9, 3, n, 5000, 64, 64}).check(limits));
    }
  }
}

}  // namespace
}  // namespace test
