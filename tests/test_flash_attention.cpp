// flash_attention against its meaning in double:
// shapes, layouts, dtypes, masks, grouped heads, and extreme scores.
#include "attention.hpp"

namespace test {
namespace {

void give_bias(Attention& a, Random& random, DType dtype, std::size_t kind) {
  const std::int64_t batch = a.q.dim(0), heads = a.q.dim(1), q_len = a.q.dim(2), kv_len = a.k.dim(2);
  const Shape shapes[] = {
      {batch, heads, q_len, kv_len}, {1, 1, q_len, kv_len}, {batch, 1, 1, kv_len}, {1, heads, q_len, kv_len}};
  a.bias = Tensor::of(dtype, shapes[kind % 4], kind == 1 ? strides_for(shapes[1], Lie::padded) : Shape{},
                      [&](std::int64_t) { return random.uniform() < 0.25 ? minus_inf : random.normal(); });
}

TEST_CASE("flash_attention: shapes with layouts and dtypes and masks") {
  const std::vector<std::int64_t> q_lens = {1, 2, 3, 15, 16, 17, 33, 126, 127, 131},
                                  kv_lens = {1, 2, 7, 16, 31, 64, 65, 129, 255, 256, 257, 513};
  const std::vector<std::int64_t> sizes = {1, 2, 7, 8, 16, 20, 31, 64, 65, 96, 128, 256};
  const std::vector<std::array<std::int64_t, 3>> heads = {
      {1, 1, 1}, {2, 2, 2}, {1, 6, 2}, {3, 4, 1}, {1, 9, 3}};  // batch, heads, kv heads
  enum Mask { none, causal, biased, both, masks };
  std::uint64_t seed = 1;
  for (const auto& row :
       pairwise({q_lens.size(), kv_lens.size(), sizes.size(), sizes.size(), heads.size(), 3, 3,
                 std::size(input_lies), std::size(input_lies), std::size(output_lies), masks, 4, 3})) {
    Random random(++seed);
    const auto& h = heads[row[4]];
    const AttentionSizes s{h[0], h[1], h[2], q_lens[row[0]], kv_lens[row[1]], sizes[row[2]], sizes[row[3]]};
    const Lie lie_k = input_lies[row[7]], lie_v = input_lies[row[8]], lie_dst = output_lies[row[9]];
    Attention a =
        random_attention(random, s, all_dtypes[row[5]], all_dtypes[row[6]], lie_k, lie_k, lie_v, lie_dst);
    a.causal = row[10] == causal || row[10] == both;
    if (row[10] >= biased) give_bias(a, random, all_dtypes[row[6]], row[11]);
    if (row[11] % 2 == 0) a.lse = Tensor(DType::f32, {s.batch, s.heads, s.q_len});
    if (row[11] == 1) a.scale = 0.3f;
    a.executor = &executor(static_cast<int>(row[12]));
    check_attention(a, nk::text(", lies ", name_of(lie_k), "/", name_of(lie_v), "/", name_of(lie_dst)));
  }
}

TEST_CASE("flash_attention: prefill and decode of SmolLM2-135M") {
  using namespace smollm2;
  std::uint64_t seed = 500;
  for (const auto& sizes :
       {std::pair<std::int64_t, std::int64_t>{37, 37}, {300, 300}, {1, 1}, {1, 300}, {1, 1031}, {5, 2050}}) {
    const std::int64_t q_len = sizes.first, kv_len = sizes.second;
    for (const DType dtype : all_dtypes) {
      Random random(++seed);
      Attention a =
          random_attention(random, {1, heads, kv_heads, q_len, kv_len, d, d}, dtype, dtype, Lie::packed);
      a.causal = true, a.executor = nullptr;
      a.lse = Tensor(DType::f32, {1, heads, q_len});
      check_attention(a);
    }
  }
}

TEST_CASE("flash_attention: heads side by side in one buffer") {  // q, k, v as [batch, tokens, 3, heads, d]
  Random random(600);
  for (const DType dtype : all_dtypes) {
    const std::int64_t batch = 2, tokens = 19, heads = 3, d = 20;
    Attention a = random_attention(random, {batch, heads, heads, tokens, tokens, d, d}, dtype, dtype);
    Tensor packed = Tensor::normal(random, dtype, {batch * tokens, 3 * heads * d});
    Tensor* const parts[] = {&a.q, &a.k, &a.v};
    nk::ConstView views[3];
    for (std::int64_t part = 0; part < 3; ++part) {
      for (std::int64_t i = 0; i < a.q.size(); ++i) {
        const std::int64_t e = i % d, token = i / d % tokens, head = i / (d * tokens) % heads,
                           b = i / (d * tokens * heads);
        parts[part]->set(i, packed.at(((b * tokens + token) * 3 + part) * heads * d + head * d + e));
      }
      const std::int64_t row = 3 * heads * d;
      const Shape shape = {batch, heads, tokens, d}, strides = {tokens * row, d, row, 1};
      views[part] = {static_cast<const char*>(packed.view().data) + part * heads * d * nk::size_of(dtype),
                     dtype, nk::Layout(shape, strides)};
    }
    a.causal = true;
    on_each_page([&] {
      const Tensor want = a.run().dst;
      Tensor dst(dtype, {batch, heads, tokens, d},
                 {tokens * heads * d, d, heads * d, 1});  // [batch, tokens, heads, d]
      nk::flash_attention(dst.view(), views[0], views[1], views[2], {.causal = true, .executor = a.executor});
      for (std::int64_t i = 0; i < batch * heads; ++i) {
        check_near("flash_attention", "views of packed qkv, " + describe(a), dst, i,
                   reference::attention(a.head(i / heads, i % heads), dtype).dst);
        check_near("flash_attention", describe(a), want, i,
                   reference::attention(a.head(i / heads, i % heads), dtype).dst);
      }
    });
  }
}

/// q = k = 0 and v = identity: dst shows which keys each query sees.
Attention who_sees_whom(std::int64_t q_len, std::int64_t kv_len, bool causal) {
  Attention a;
  a.q = Tensor::constant(DType::f32, {1, 1, q_len, 4}, 0),
  a.k = Tensor::constant(DType::f32, {1, 1, kv_len, 4}, 0);
  a.v = Tensor::of(DType::f32, {1, 1, kv_len, kv_len}, {},
                   [&](std::int64_t i) { return i / kv_len == i % kv_len ? 1.0 : 0.0; });
  a.dst = Tensor(DType::f32, {1, 1, q_len, kv_len}), a.lse = Tensor(DType::f32, {1, 1, q_len});
  a.causal = causal;
  return a;
}

TEST_CASE("flash_attention: causal is aligned bottom-right") {
  for (const auto& sizes : {std::pair<std::int64_t, std::int64_t>{2, 5},
                            {1, 5},
                            {5, 5},
                            {5, 2},
                            {3, 1},
                            {40, 33},
                            {130, 140},
                            {17, 256},
                            {256, 17}}) {
    const std::int64_t q_len = sizes.first, kv_len = sizes.second;
    const Attention a = who_sees_whom(q_len, kv_len, true);
    on_each_page([&] {
      const Attention::Result got = a.run();
      for (std::int64_t i = 0; i < q_len; ++i) {
        const std::int64_t seen = std::max<std::int64_t>(0, i + kv_len - q_len + 1);
        for (std::int64_t j = 0; j < kv_len; ++j) {
          const double y = got.dst.at(i * kv_len + j), share = 1 / static_cast<double>(seen);
          check(j < seen ? std::abs(y - share) <= 4 * reference::u * share : y == 0, "flash_attention",
                nk::text(describe(a), ": query ", i, " gives key ", j, " the weight ", y, " but sees ", seen,
                         " keys"));
        }
        const double lse = got.lse.at(i);
        check(seen == 0 ? lse == minus_inf : std::abs(lse - std::log(static_cast<double>(seen))) <= 1e-6,
              "flash_attention",
              nk::text("lse ", lse, " of a query that sees ", seen, " keys, ", describe(a)));
      }
    });
  }
}

TEST_CASE("flash_attention: causal with more queries than keys") {  // the first rows see nothing: 0 and -inf
  std::uint64_t seed = 700;
  for (const auto& sizes :
       {std::pair<std::int64_t, std::int64_t>{5, 2}, {130, 1}, {260, 7}, {300, 270}, {16, 3}}) {
    const std::int64_t q_len = sizes.first, kv_len = sizes.second;
    for (const DType dtype : all_dtypes) {
      Random random(++seed);
      Attention a = random_attention(random, {2, 2, 1, q_len, kv_len, 16, 8}, dtype, dtype);
      a.causal = true, a.lse = Tensor(DType::f32, {2, 2, q_len});
      check_attention(a);
    }
  }
}

TEST_CASE("flash_attention: rows with nothing to see and runs of masked keys") {
  for (const std::int64_t q_len : {1, 6, 40}) {
    // Keys from one end, a whole tile at times.
    for (const std::int64_t masked : {16, 31, 32, 64, 128, 191, 255, 256, 300, 517}) {
      for (const bool left : {true, false}) {
        for (const double mask : {minus_inf, static_cast<double>(std::numeric_limits<float>::lowest())}) {
          Random random(800);
          const std::int64_t kv_len = masked < 192 ? 192 : 517;
          Attention a = random_attention(random, {1, 2, 1, q_len, kv_len, 16, 24}, DType::f32, DType::f32);
          a.lse = Tensor(DType::f32, {1, 2, q_len});
          a.bias = Tensor::of(DType::f32, {1, 2, q_len, kv_len}, {}, [&](std::int64_t i) {
            const std::int64_t j = i % kv_len, row = i / kv_len;
            const bool off = left ? j < masked : j >= kv_len - masked;
            // Row 0: nothing.
            return row == 0 || off ? (masked == kv_len || row == 0 ? minus_inf : mask) : random.normal();
          });
          a.executor = &executor(1);
          check_attention(a, nk::text(", ", masked, left ? " first" : " last", " keys masked with ", mask));
        }
      }
    }
  }
}

TEST_CASE("flash_attention: masks made of the lowest number") {
  const double lowest = static_cast<double>(std::numeric_limits<float>::lowest());
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Random random(900);
    Attention a = random_attention(random, {1, 1, 1, 3, 40, 8, 8}, dtype, dtype);
    const double low = dtype == DType::f32 ? lowest : -0x1.fep127;
    a.bias = Tensor::of(dtype, {1, 1, 3, 40}, {}, [&](std::int64_t i) {
      return i / 40 == 0 ? (i == 7 ? low : minus_inf) : i / 40 == 1 ? minus_inf : low;
    });
    on_each_page([&] {
      const Tensor dst = a.run().dst;
      const Matrix v = a.v.matrix(), got = dst.matrix();
      for (std::int64_t j = 0; j < 8; ++j) {
        check(got(0, j) == v(7, j), "flash_attention",
              nk::text(describe(a), ": one key with the lowest bias among -inf must be seen alone"));
        check(got(1, j) == 0, "flash_attention", nk::text(describe(a), ": a row of -inf must give 0"));
        check(got(2, j) >= v.col(j).minCoeff() && got(2, j) <= v.col(j).maxCoeff(), "flash_attention",
              nk::text(describe(a), ": a row of the lowest number left the hull of v: ", got(2, j)));
      }
    });
  }
}

TEST_CASE("flash_attention: huge finite values behind a mask do not leak") {
  Random random(910);
  Attention a = random_attention(random, {1, 1, 1, 4, 200, 16, 16}, DType::f32, DType::f32);
  a.bias =
      Tensor::of(DType::f32, {1, 1, 1, 200}, {}, [](std::int64_t j) { return j % 3 == 0 ? 0 : minus_inf; });
  for (std::int64_t i = 0; i < a.k.size(); ++i) {
    if (i / 16 % 3 != 0) a.k.set(i, 1e30), a.v.set(i, -1e30);
  }
  check_attention(a);
}

TEST_CASE("flash_attention: scores that overflow 16 bits") {
  // q k is 8.4e6: keys that tie share, others get nothing.
  for (const DType dtype : all_dtypes) {
    for (const auto& sizes : {std::pair<std::int64_t, double>{128, 256}, {64, 576}, {64, 900}}) {
      const std::int64_t d = sizes.first;
      const double size = sizes.second;
      Attention a;
      const auto sign = [](std::int64_t j) { return j == 3 ? -1.0 : 1.0; };
      a.q = Tensor::of(dtype, {1, 1, 2, d}, {}, [&](std::int64_t i) { return i < d ? size : -size; });
      a.k = Tensor::of(dtype, {1, 1, 5, d}, {}, [&](std::int64_t i) { return sign(i / d) * size; });
      a.v = Tensor::of(dtype, {1, 1, 5, 4}, {}, [](std::int64_t i) {
        const std::int64_t key = i / 4;
        return static_cast<double>(key);
      });
      a.dst = Tensor(dtype, {1, 1, 2, 4});
      Matrix want = Matrix::Constant(2, 4, 1.75);  // keys 0, 1, 2, 4 tie
      want.row(1).setConstant(3);
      on_each_page([&] { check_equal("flash_attention", describe(a), a.run().dst, want); });
    }
  }
}

TEST_CASE("flash_attention: equal scores and one key give exact values") {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t kv_len : {1, 4, 64, 512, 2048}) {
      for (const std::int64_t q_len : {1, 3, 20}) {
        Random random(920);
        Attention a = random_attention(random, {1, 2, 2, q_len, kv_len, 24, 40}, dtype, DType::f32);
        for (std::int64_t i = 0; i < a.q.size(); ++i) a.q.set(i, 0);
        for (std::int64_t i = 0; i < a.v.size(); ++i) a.v.set(i, random.integer(8));
        a.executor = &executor(1);
        on_each_page([&] {
          const Tensor dst = a.run().dst;
          for (std::int64_t h = 0; h < 2; ++h) {
            // kv_len is a power of two: exact.
            const Eigen::RowVectorXd mean = a.v.matrix(h).colwise().mean();
            check_equal("flash_attention", describe(a), dst, mean.replicate(q_len, 1), h);
          }
        });
      }
    }
  }
}

TEST_CASE("flash_attention: query heads read the kv head of their group") {
  Random random(930);
  Attention a = random_attention(random, {2, 6, 2, 5, 40, 8, 8}, DType::bf16, DType::f32);
  for (std::int64_t i = 0; i < a.v.size(); ++i) a.v.set(i, i / (8 * 40) % 2 == 0 ? 0 : 1);
  on_each_page([&] {
    const Tensor dst = a.run().dst;
    for (std::int64_t h = 0; h < 12; ++h) {
      check_near("flash_attention", describe(a), dst, h,
                 {Matrix::Constant(5, 8, h % 6 < 3 ? 0 : 1), Matrix::Constant(5, 8, h % 6 < 3 ? 0 : 0x1p-8)});
    }
  });
}

TEST_CASE("flash_attention: scales of either sign and zero") {
  for (const float scale : {0.f, -0.5f, 1.f, 1e-3f}) {
    for (const bool causal : {false, true}) {
      Random random(940);
      Attention a = random_attention(random, {1, 2, 1, 37, 70, 16, 16}, DType::f32, DType::f32);
      a.scale = scale, a.causal = causal, a.lse = Tensor(DType::f32, {1, 2, 37});
      check_attention(a);
    }
  }
}

TEST_CASE("flash_attention: empty sizes") {
  for (const AttentionSizes& s : {AttentionSizes{0, 2, 2, 3, 3, 8, 8},
                                  {2, 0, 0, 3, 3, 8, 8},
                                  {1, 2, 1, 0, 3, 8, 8},
                                  {1, 2, 2, 3, 0, 8, 8},
                                  {1, 2, 2, 0, 0, 8, 8}}) {
    for (const bool causal : {false, true}) {
      Random random(950);
      Attention a = random_attention(random, s, DType::f32, DType::f32);
      a.causal = causal, a.lse = Tensor(DType::f32, {s.batch, s.heads, s.q_len});
      on_each_page([&] {
        const Attention::Result got = a.run();
        bool zero = got.dst.outside_untouched() && got.lse.outside_untouched();
        for (std::int64_t i = 0; i < got.dst.size(); ++i) zero = zero && got.dst.at(i) == 0;
        for (std::int64_t i = 0; i < got.lse.size(); ++i) zero = zero && got.lse.at(i) == minus_inf;
        check(
            zero, "flash_attention",
            describe(a) + ": queries without keys must give 0 and lse -inf, and nothing else may be written");
      });
    }
  }
}

TEST_CASE("flash_attention: NaN in a query stays in its row") {
  for (const DType dtype : all_dtypes) {
    for (const std::int64_t q_len : {3, 40}) {
      Random random(960);
      Attention a = random_attention(random, {1, 2, 2, q_len, 70, 33, 16}, dtype, DType::f32);
      a.q.set(33 + 32, std::numeric_limits<double>::quiet_NaN());
      check_attention(a);
      a.causal = true;
      check_attention(a);
    }
  }
}

TEST_CASE("flash_attention: partial results merge by lse") {  // 50 keys as 17 + 1 + 32
  Random random(970);
  Attention whole = random_attention(random, {1, 1, 1, 7, 50, 16, 8}, DType::f32, DType::f32);
  on_each_page([&] {
    Matrix sum = Matrix::Zero(7, 8);
    Eigen::VectorXd weight = Eigen::VectorXd::Zero(7);
    for (const auto& [begin, n] : {std::pair<std::int64_t, std::int64_t>{0, 17}, {17, 1}, {18, 32}}) {
      Attention part = whole;
      part.k = Tensor::of(DType::f32, {1, 1, n, 16}, {},
                          [&, at = begin](std::int64_t i) { return whole.k.at(at * 16 + i); });
      part.v = Tensor::of(DType::f32, {1, 1, n, 8}, {},
                          [&, at = begin](std::int64_t i) { return whole.v.at(at * 8 + i); });
      part.lse = Tensor(DType::f32, {1, 1, 7});
      const Attention::Result got = part.run();
      for (std::int64_t i = 0; i < 7; ++i) {
        const double w = std::exp(got.lse.at(i));
        sum.row(i) += w * got.dst.matrix().row(i);
        weight(i) += w;
      }
    }
    const Matrix merged = sum.array().colwise() / weight.array();
    const reference::AttentionResult want = reference::attention(whole.head(0, 0), DType::f32);
    check((merged - want.dst.value).cwiseAbs().maxCoeff() < 1e-5, "flash_attention",
          "parts of 17, 1 and 32 keys merged by their lse differ from the whole");
  });
}

}  // namespace
}  // namespace test
