// What must hold between calls, also where a reference would take too long:
// the same bits for every number of threads, no influence of future keys,
// invariance under shifts and permutations, and sums that agree with themselves.
#include <atomic>
#include <thread>

#include "attention.hpp"
#include "neuron_kernels/fused_mlp.hpp"
#include "neuron_kernels/layernorm.hpp"
#include "neuron_kernels/matmul.hpp"
#include "neuron_kernels/rmsnorm.hpp"
#include "reference/layernorm.hpp"
#include "reference/matmul.hpp"

namespace test {
namespace {

/// run(executor) must give the same bits with one, two and five threads, and when called again.
template <class Run>
void check_threads(const std::string& kernel, const std::string& what, Run&& run) {
  on_each_page([&] {
    const Tensor one = run(executor(0));
    for (const int threads : {1, 2, 2}) {
      check(run(executor(threads)).same_bits(one), kernel,
            what + ": other bits with " + (threads == 1 ? "two" : "five") + " threads than with one");
    }
  });
}

TEST_CASE("matmul: same bits for every number of threads") {
  std::uint64_t seed = 1;
  for (const auto& sizes : {std::array<std::int64_t, 3>{1, 1536, 576},
                            {3, 1153, 300},
                            {513, 520, 65},
                            {1030, 17, 129},
                            {70, 3000, 64}}) {
    const std::int64_t m = sizes[0], n = sizes[1], k = sizes[2];
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const Lie lie : {Lie::packed, Lie::transposed}) {
        Random random(++seed);
        const Tensor a = Tensor::normal(random, dtype, {m, k}),
                     b = Tensor::normal(random, dtype, {k, n}, strides_for({k, n}, lie)),
                     bias = Tensor::normal(random, dtype, {n});
        const nk::PackedMatrix packed = nk::pack_matrix(b.view());
        for (const bool pack : {false, true}) {
          check_threads(
              "matmul",
              nk::text("[", m, ", ", k, "] x [", k, ", ", n, "] ", nk::name_of(dtype), ", b ", name_of(lie),
                       pack ? ", packed" : ""),
              [&](nk::Executor& threads) {
                Tensor dst(DType::f32, {m, n});
                const nk::MatmulOptions options{
                    .bias = bias.view(), .activation = nk::Act::gelu, .residual = {}, .executor = &threads};
                if (pack) nk::matmul(dst.view(), a.view(), packed, options);
                if (!pack) nk::matmul(dst.view(), a.view(), b.view(), options);
                return dst;
              });
        }
      }
    }
  }
}

TEST_CASE("matmul: batches have the same bits for every number of threads") {
  Random random(50);
  const Tensor a = Tensor::normal(random, DType::f32, {5, 7, 33, 64}),
               b = Tensor::normal(random, DType::f32, {5, 1, 64, 47});
  check_threads("matmul", "[5, 7, 33, 64] x [5, 1, 64, 47]", [&](nk::Executor& threads) {
    Tensor dst(DType::f32, {5, 7, 33, 47});
    nk::matmul(dst.view(), a.view(), b.view(), {.bias = {}, .residual = {}, .executor = &threads});
    return dst;
  });
}

TEST_CASE("norms: same bits for every number of threads") {
  for (const Shape& shape : {Shape{1000, 65}, Shape{3, 7, 4099}, Shape{257, 576}}) {
    Random random(60);
    const Tensor src = Tensor::normal(random, DType::f32, shape),
                 residual = Tensor::normal(random, DType::f32, shape),
                 weight = Tensor::normal(random, DType::f32, {shape.back()});
    check_threads("layernorm", nk::shape_text(src.view().layout), [&](nk::Executor& threads) {
      Tensor dst(DType::f32, shape);
      nk::LayernormOptions options;
      options.weight = options.bias = weight.view(), options.residual = residual.view(),
      options.executor = &threads;
      nk::layernorm(dst.view(), src.view(), options);
      return dst;
    });
    check_threads("rmsnorm", nk::shape_text(src.view().layout), [&](nk::Executor& threads) {
      Tensor dst(DType::f32, shape);
      nk::RmsnormOptions options;
      options.weight = weight.view(), options.residual = residual.view(), options.executor = &threads;
      nk::rmsnorm(dst.view(), src.view(), options);
      return dst;
    });
  }
}

TEST_CASE("fused_mlp: same bits for every number of threads") {
  for (const std::int64_t tokens : {1, 7, 33, 450}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Random random(70);
      const std::int64_t hidden = 96, inner = 1300;
      const Tensor x = Tensor::normal(random, dtype, {tokens, hidden}),
                   up = Tensor::normal(random, dtype, {inner, hidden}, {}, 0.1),
                   gate = Tensor::normal(random, dtype, {inner, hidden}, {}, 0.1),
                   down = Tensor::normal(random, dtype, {hidden, inner}, {}, 0.03),
                   bias = Tensor::normal(random, dtype, {hidden});
      for (const bool gated : {false, true}) {
        check_threads(
            "fused_mlp",
            nk::text("x [", tokens, ", 96] ", nk::name_of(dtype), ", inner 1300", gated ? ", gated" : ""),
            [&](nk::Executor& threads) {
              Tensor dst(dtype, {tokens, hidden});
              nk::MlpWeights w;
              w.up = up.view(), w.down = down.view(), w.down_bias = bias.view();
              if (gated) w.gate = gate.view();
              nk::fused_mlp(dst.view(), x.view(), w, {.activation = nk::Act::silu, .executor = &threads});
              return dst;
            });
      }
    }
  }
}

TEST_CASE("flash_attention: same bits for every number of threads also when the cache is split") {
  struct Case {
    AttentionSizes sizes;
    bool causal;
  };
  const Case cases[] = {{{1, 9, 3, 1, 5000, 64, 64}, true},   {{1, 2, 1, 1, 1025, 40, 24}, false},
                        {{2, 4, 2, 7, 3001, 64, 64}, true},   {{1, 3, 3, 513, 513, 32, 32}, true},
                        {{2, 4, 1, 130, 300, 65, 17}, false}, {{1, 1, 1, 16, 4096, 128, 128}, true}};
  std::uint64_t seed = 80;
  for (const auto& [sizes, causal] : cases) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Random random(++seed);
      Attention a = random_attention(random, sizes, dtype, DType::f32);
      a.causal = causal, a.lse = Tensor(DType::f32, {sizes.batch, sizes.heads, sizes.q_len});
      for (const bool lse : {false, true}) {
        check_threads("flash_attention", (lse ? "lse of " : "") + describe(a), [&](nk::Executor& threads) {
          a.executor = &threads;
          Attention::Result r = a.run();
          return lse ? r.lse : r.dst;
        });
      }
    }
  }
}

TEST_CASE("calls from several threads at once on one pool give the same bits") {
  Random random(90);
  const Tensor a = Tensor::normal(random, DType::f32, {130, 96}),
               b = Tensor::normal(random, DType::f32, {96, 300});
  Attention attention = random_attention(random, {1, 4, 2, 33, 700, 32, 32}, DType::f32, DType::f32);
  attention.executor = &executor(2);
  const auto product = [&] {
    Tensor dst(DType::f32, {130, 300});
    nk::MatmulOptions options;
    options.executor = &executor(2);
    nk::matmul(dst.view(), a.view(), b.view(), options);
    return dst;
  };
  on_each_page([&] {
    const Tensor want_product = product(), want_attention = attention.run().dst;
    std::atomic<int> different = 0;
    {
      std::vector<std::jthread> callers;
      callers.reserve(4);
      for (int i = 0; i < 4; ++i) {
        // A copy each: copying a Tensor lifts the poison of its guards for a moment.
        callers.emplace_back([&, mine = attention] {
          for (int repeat = 0; repeat < 10; ++repeat) {
            if (!product().same_bits(want_product)) ++different;
            if (!mine.run().dst.same_bits(want_attention)) ++different;
          }
        });
      }
    }
    check(different == 0, "matmul and flash_attention",
          nk::text(different.load(), " of 80 calls from four threads gave other bits"));
  });
}

TEST_CASE("matmul: C t = A (B t) for sizes too large for a reference") {
  // Small integers: both sides are exact, so one wrong element of C shows
  // (Freivalds 1977, "Probabilistic machines").
  const std::int64_t m = 700, n = 900, k = 1100;
  for (const DType dtype : all_dtypes) {
    Random random(100);
    const auto draw = [&](std::int64_t) { return random.integer(4); };
    const Tensor a = Tensor::of(dtype, {m, k}, {}, draw), b = Tensor::of(dtype, {k, n}, {}, draw);
    const Matrix t = Tensor::of(DType::f32, {n, 2}, {}, draw).matrix();
    const Matrix want = a.matrix() * (b.matrix() * t);
    on_each_page([&] {
      Tensor c(DType::f32, {m, n});
      nk::matmul(c.view(), a.view(), b.view());
      check_near("matmul", nk::text("C t against A (B t), [700, 1100] x [1100, 900] ", nk::name_of(dtype)), c,
                 c.matrix() * t, reference::exact(want));
    });
  }
}

TEST_CASE("matmul: one row alone is as exact as among many") {
  // A product of one row takes another path; both must stay within the bound, and so near each other.
  Random random(110);
  const Tensor a = Tensor::normal(random, DType::bf16, {64, 4096}),
               b = Tensor::normal(random, DType::bf16, {4096, 48});
  const auto want = reference::matmul_bound(a.matrix(), b.matrix());
  on_each_page([&] {
    Tensor dst(DType::bf16, {64, 48});
    for (std::int64_t i = 0; i < 64; ++i) {
      const auto row = [&](auto v, std::int64_t cols) {
        v.data = static_cast<const char*>(v.data) + i * cols * nk::size_of(v.dtype);
        v.layout.shape[0] = 1;
        return v;
      };
      nk::matmul(row(dst.view(), 48), row(a.view(), 4096), b.view());
    }
    check_near("matmul", "64 products of one row, [1, 4096] x [4096, 48] bf16", dst, 0, want);
  });
}

TEST_CASE("flash_attention: future keys change no earlier row") {
  std::uint64_t seed = 200;
  for (const AttentionSizes& s : {AttentionSizes{1, 2, 1, 40, 40, 16, 24},
                                  {1, 1, 1, 300, 300, 64, 64},
                                  {2, 2, 2, 130, 517, 33, 20},
                                  {1, 3, 3, 17, 2049, 8, 8},
                                  {1, 1, 1, 260, 7, 16, 16}}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      Random random(++seed);
      Attention a = random_attention(random, s, dtype, DType::f32);
      a.causal = true, a.executor = &executor(1);
      for (const std::int64_t future :
           {s.kv_len - 1, s.kv_len / 2, std::max<std::int64_t>(1, s.kv_len - s.q_len)}) {
        Attention b = a;  // other keys and values from `future` on
        for (std::int64_t i = 0; i < b.k.size(); ++i)
          if (i / s.d % s.kv_len >= future) b.k.set(i, 30 * random.normal());
        for (std::int64_t i = 0; i < b.v.size(); ++i)
          if (i / s.dv % s.kv_len >= future) b.v.set(i, 1e3 * random.normal());
        on_each_page([&] {
          const Tensor x = a.run().dst, y = b.run().dst;
          for (std::int64_t i = 0; i < x.size(); ++i) {
            const std::int64_t query = i / s.dv % s.q_len, last_seen = query + s.kv_len - s.q_len;
            if (last_seen >= future || x.same_bits_at(y, i, i)) continue;
            return check(false, "flash_attention",
                         nk::text(describe(a), ": keys from ", future, " on changed query ", query,
                                  ", which sees keys up to ", last_seen));
          }
          check(true, "flash_attention", "");
        });
      }
    }
  }
}

TEST_CASE("flash_attention: a constant on all scores changes nothing but lse") {
  for (const double constant : {-50.0, 3.0, 200.0}) {
    for (const bool causal : {false, true}) {
      Random random(300);
      Attention a = random_attention(random, {1, 2, 1, 33, 300, 32, 32}, DType::f32, DType::f32);
      a.causal = causal, a.lse = Tensor(DType::f32, {1, 2, 33});
      Attention b = a;
      b.bias = Tensor::constant(DType::f32, {1, 1, 1, 300}, constant);
      check_attention(b, " against its own reference");
      for (std::int64_t h = 0; h < 2; ++h) {  // the reference without the constant, the bound with it
        reference::AttentionResult want = reference::attention(a.head(0, h), DType::f32);
        want.dst.error = reference::attention(b.head(0, h), DType::f32).dst.error;
        on_each_page([&] {
          check_near("flash_attention", nk::text(describe(a), ", scores + ", constant), b.run().dst, h,
                     want.dst);
        });
      }
    }
  }
}

TEST_CASE("flash_attention: the order of the keys does not matter") {
  for (const AttentionSizes& s : {AttentionSizes{1, 2, 2, 20, 517, 24, 24}, {1, 4, 1, 1, 2051, 64, 64}}) {
    for (const DType dtype : all_dtypes) {
      Random random(310);
      const Attention a = random_attention(random, s, dtype, DType::f32);
      Attention b = a;
      for (std::int64_t row = 0; row < s.batch * s.kv_heads; ++row) {
        for (std::int64_t j = 0; j < s.kv_len; ++j) {
          // 101 has no factor in common.
          const std::int64_t to = row * s.kv_len + (j * 101 + 7) % s.kv_len, from = row * s.kv_len + j;
          for (std::int64_t e = 0; e < s.d; ++e) b.k.set(to * s.d + e, a.k.at(from * s.d + e));
          for (std::int64_t e = 0; e < s.dv; ++e) b.v.set(to * s.dv + e, a.v.at(from * s.dv + e));
        }
      }
      for (std::int64_t h = 0; h < s.heads; ++h) {
        const auto want = reference::attention(a.head(0, h), dtype);
        on_each_page([&] {
          check_near("flash_attention", "permuted keys, " + describe(a), b.run().dst, h, want.dst);
        });
      }
    }
  }
}

TEST_CASE("layernorm: a shift of the row changes nothing") {
  for (const std::int64_t n : {7, 64, 577}) {
    for (const double shift : {-8.0, 1024.0}) {  // exact: values are multiples of 2^-10 below 16
      Random random(320);
      const Tensor src =
          Tensor::of(DType::f32, {4, n}, {}, [&](std::int64_t) { return random.integer(8192) * 0x1p-10; });
      const Tensor shifted =
          Tensor::of(DType::f32, {4, n}, {}, [&](std::int64_t i) { return src.at(i) + shift; });
      auto want = reference::layernorm_bound(src.matrix(), {}, {}, 1e-5f);
      want.error += reference::layernorm_bound(shifted.matrix(), {}, {}, 1e-5f).error;
      on_each_page([&] {
        Tensor dst(DType::f32, {4, n});
        nk::layernorm(dst.view(), shifted.view());
        check_near("layernorm", nk::text("[4, ", n, "], row shifted by ", shift), dst, 0, want);
      });
    }
  }
}

}  // namespace
}  // namespace test
