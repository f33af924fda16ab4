// check(): each rule, kept and broken, on every chip.
#include <fstream>
#include <sstream>

#include "checking.hpp"

namespace test {
namespace {

using nk::Dge;
using nk::Engine;
using Tile = Recorder::Tile;

/// `part` of a [128, 64] tile is written.
auto on_partitions(int begin, int n) {
  return [=](Recorder& nc) {
    auto t = nc.sbuf("t", 128, 64, DType::f32);
    nc.fill(t.partitions(begin, n), 0.f);
    keep(nc, t.partitions(begin, n));
  };
}

auto product(int k, int m, int n, DType dst = DType::f32, DType dtype = DType::bf16) {
  return [=](Recorder& nc) {
    auto s = nc.psum("s", m, n, dst);
    nc.matmul(s, filled(nc, "a", k, m, dtype), filled(nc, "b", k, n, dtype));
    keep(nc, s);
  };
}

TEST_CASE("check: sizes of tiles, starts of partitions, elements and strides of an access") {
  rule(
      Rule::partitions, all_chips, {"\"t\"", "129 partitions", "1 to 128", "tiles(n, 128)"},
      [](Recorder& nc) { keep(nc, filled(nc, "t", 128, 8)); },
      [](Recorder& nc) { keep(nc, filled(nc, "t", 129, 8)); });
  for (const auto& [begin, n] : {std::pair{0, 128}, {64, 64}, {96, 32}, {32, 1}})
    rule(Rule::start_partition, no_chip, {}, on_partitions(begin, n), on_partitions(begin, n));
  for (const auto& [begin, n] : {std::pair{16, 16}, {32, 33}, {1, 65}})
    rule(Rule::start_partition, all_chips, {nk::text(n), "allowed starts"}, on_partitions(0, n),
         on_partitions(begin, n));
  const auto stepping = [](int by) {
    return [=](Recorder& nc) {
      auto t = filled(nc, "t", 128, 8);
      for (auto i : nc.range(3)) nc.fill(t.partitions(i * by, 32), 0.f);
      keep(nc, t);
    };
  };
  rule(Rule::start_partition, all_chips, {"32 partitions from 16", "i0 = 1", "0, 32, 64 or 96"}, stepping(32),
       stepping(16));
  const auto wide = [](bool psum, int f) {
    return [=](Recorder& nc) {
      auto t = psum ? nc.psum("t", 8, f, DType::bf16) : nc.sbuf("t", 8, f, DType::bf16);
      nc.fill(t, 0.f);
      keep(nc, t.free(0, 8));
    };
  };
  rule(Rule::access_elements, all_chips, {"65537", "65536"}, wide(false, 65536), wide(false, 65537));
  rule(Rule::access_elements, all_chips, {"4097", "4096", "PSUM"}, wide(true, 4096), wide(true, 4097));
  const auto strided = [](int step) {
    return [=](Recorder& nc) { keep(nc, filled(nc, "t", 8, 2 * step).every(step, 0)); };
  };
  rule(Rule::slow_stride, all_chips, {"20 bytes"}, strided(4), strided(5));
  rule(Rule::access_stride, all_chips, {"32768", "32767"}, strided(32767), strided(32768));
}

TEST_CASE("check: matmul's sizes and dtypes") {
  rule(Rule::matmul_size, all_chips, {"129 > 128"}, product(128, 128, 512), product(129, 128, 512));
  rule(Rule::matmul_size, all_chips, {"stationary", "129 > 128"}, product(1, 1, 1), product(128, 129, 512));
  rule(Rule::matmul_size, trn1_trn2, {"moving", "513 > 512"}, product(128, 126, 512), product(128, 128, 513));
  rule(Rule::matmul_size, all_chips, {"4097 > "}, product(3, 128, 7), product(8, 8, 4097));
  rule(Rule::matmul_dst, trn1_trn2, {"bf16", "f32"}, product(8, 8, 8), product(8, 8, 8, DType::bf16));
  rule(Rule::matmul_dst, all_chips, {"f16"}, product(8, 8, 8), product(8, 8, 8, DType::f16));
  const nk::Limits& l = nk::trn3;
  CHECK_FALSE(has(check(program_of(l, product(8, 8, 8192, DType::bf16)), l), Rule::matmul_size));
  CHECK(has(check(program_of(l, product(8, 8, 8193, DType::bf16)), l), Rule::matmul_size));
  for (const nk::Limits* chip : chips) {  // Recorder refuses it; a Program from outside may hold it
    Program p = program_of(*chip, product(8, 8, 8));
    CHECK_FALSE(has(check(p, *chip), Rule::matmul_dtype));
    p.tiles[1].dtype = DType::f32;
    CHECK(has(check(p, *chip), Rule::matmul_dtype));
  }
}

/// Two matmuls into parts of one tile that begin `at` elements apart.
auto parts(int at, int n, int step = 1) {
  return [=](Recorder& nc) {
    auto s = nc.psum("s", 8, 1024);
    nc.fill(s, 0.f);
    auto a = filled(nc, "a", 8, 8), b = filled(nc, "b", 8, n);
    for (auto i : nc.range(2)) {
      const auto part = step == 1 ? s.free(i * at, n) : s.every(step, i);
      nc.matmul(part, a, b);
    }
    keep(nc, s);
  };
}

TEST_CASE("check: a matmul's dst lies in one bank") {
  rule(Rule::psum_bank, trn1_trn2, {"bytes 1600 to 3199", "i0 = 1", "2048"}, parts(512, 512),
       parts(400, 400));
  rule(Rule::psum_bank, trn1_trn2, {"every 2-th"}, parts(512, 400), parts(0, 512, 2));
}

TEST_CASE("check: accumulation begins on a matmul, and goes on without other writers") {
  enum class Between { nothing, scale_in_loop, fill_before };
  const auto sum = [](Between between) {
    return [=](Recorder& nc) {
      auto s = nc.psum("s", 8, 8);
      auto a = filled(nc, "a", 8, 8);
      if (between == Between::fill_before) nc.fill(s, 0.f);
      for (auto k : nc.range(4)) {
        if (between == Between::fill_before) {
          nc.matmul(s, a, a, {.accumulate = true});
        } else {
          nc.matmul(s, a, a, {.accumulate = k > 0});
        }
        if (between == Between::scale_in_loop) nc.tensor_scalar(s, s, Alu::multiply, 2.f);
      }
      keep(nc, s);
    };
  };
  rule(Rule::psum_accumulate, trn1_trn2, {"fill", "allowed is a matmul"}, sum(Between::nothing),
       sum(Between::fill_before));
  rule(Rule::psum_accumulate, trn1_trn2, {"tensor_scalar"}, sum(Between::nothing),
       sum(Between::scale_in_loop));
  const auto restarted = [](Recorder& nc) {  // scaled after the group has ended
    auto s = nc.psum("s", 8, 8);
    auto a = filled(nc, "a", 8, 8);
    for (auto n : nc.range(3)) {
      (void)n;
      for (auto k : nc.range(4)) nc.matmul(s, a, a, {.accumulate = k > 0});
      nc.tensor_scalar(s, s, Alu::multiply, 2.f);
    }
    keep(nc, s);
  };
  rule(Rule::psum_accumulate, no_chip, {}, restarted, restarted);
  const auto onto_nothing = [](Recorder& nc) {
    auto s = nc.psum("s", 8, 8);
    auto a = filled(nc, "a", 8, 8);
    for (auto k : nc.range(4)) nc.matmul(s, a, a, {.accumulate = k < 3});
    keep(nc, s);
  };
  rule(Rule::read_before_write, all_chips, {"adds to", "k.index > 0"}, sum(Between::nothing), onto_nothing);
  const auto groups = [](int n) {
    return [=](Recorder& nc) {
      auto s = nc.psum_array("s", n, 8, 64);
      auto a = filled(nc, "a", 8, 8), b = filled(nc, "b", 8, 64);
      for (auto k : nc.range(4)) {
        for (auto m : nc.range(n)) nc.matmul(s[m], a, b, {.accumulate = k > 0});
      }
      for (auto m : nc.range(n)) keep(nc, s[m]);
    };
  };
  rule(Rule::psum_groups, all_chips, {"9 accumulation groups", "8"}, groups(8), groups(9));
}

TEST_CASE("check: engines and the memories that they reach") {
  const auto copy_on = [](Engine e, bool psum) {
    return [=](Recorder& nc) {
      auto t = psum ? nc.psum("t", 8, 8) : nc.sbuf("t", 8, 8, DType::f32);
      nc.copy(t, filled(nc, "a", 8, 8), {.engine = e});
      keep(nc, t);
    };
  };
  rule(Rule::engine_op, all_chips, {"tensor", "vector, scalar, gpsimd"}, copy_on(Engine::scalar, true),
       copy_on(Engine::tensor, false));
  rule(Rule::engine_memory, all_chips, {"gpsimd", "PSUM"}, copy_on(Engine::gpsimd, false),
       copy_on(Engine::gpsimd, true));
  rule(Rule::engine_memory, all_chips, {"dma", "PSUM"}, copy_on(Engine::dma, false),
       copy_on(Engine::dma, true));
  const auto scaled = [](Alu op) {
    return [=](Recorder& nc) {
      auto t = filled(nc, "t", 8, 8);
      nc.tensor_scalar(t, t, op, 2.f, {.engine = Engine::scalar});
      keep(nc, t);
    };
  };
  rule(Rule::engine_op, trn1_trn2, {"max on scalar"}, scaled(Alu::multiply), scaled(Alu::max));
  const auto stored = [](bool psum) {
    return [=](Recorder& nc) {
      auto t = psum ? nc.psum("t", 8, 8) : nc.sbuf("t", 8, 8, DType::f32);
      nc.fill(t, 0.f);
      nc.store(nc.hbm("y", DType::f32, {8, 8}), t);
    };
  };
  rule(Rule::engine_memory, all_chips, {"src in PSUM on dma"}, stored(false), stored(true));
  const auto added = [](bool both) {
    return [=](Recorder& nc) {
      auto a = nc.psum("a", 8, 8), b = both ? nc.psum("b", 8, 8) : nc.sbuf("b", 8, 8, DType::f32);
      nc.fill(a, 0.f);
      nc.fill(b, 0.f);
      nc.tensor_tensor(a, a, Alu::add, b);
      keep(nc, a);
    };
  };
  rule(Rule::two_in_psum, all_chips, {"\"a\"", "\"b\"", "allowed is one"}, added(false), added(true));
  const auto masked = [](bool psum) {
    return [=](Recorder& nc) {
      auto s = psum ? nc.psum("s", 8, 8) : nc.sbuf("s", 8, 8, DType::f32);
      nc.fill(s, 0.f);
      keep(nc, nc.causal_mask(s, 0, 0, -1.f));
    };
  };
  rule(Rule::mask_in_psum, all_chips, {"\"s\"", "GpSimd"}, masked(false), masked(true));
  const auto biased = [](bool number) {
    return [=](Recorder& nc) {
      auto t = filled(nc, "t", 8, 8), c = filled(nc, "c", 8, 1);
      nc.activate(t, Act::exp, t, {.bias = number ? nk::Operand<Tile>(1.f) : nk::Operand<Tile>(c)});
      keep(nc, t);
      keep(nc, c, "z");
    };
  };
  rule(Rule::bias_column, only_trn1, {"bias is the number 1"}, biased(false), biased(true));
}

TEST_CASE("check: transposes") {
  const auto turned = [](int p, int f, Engine e, DType dtype = DType::f32) {
    return [=](Recorder& nc) {
      auto t = e == Engine::tensor ? nc.psum("t", f, p, dtype) : nc.sbuf("t", f, p, dtype);
      nc.transpose(t, filled(nc, "a", p, f, dtype), {.engine = e});
      keep(nc, t);
    };
  };
  rule(Rule::transpose_size, all_chips, {"[33, 32] on vector"}, turned(32, 32, Engine::vector),
       turned(33, 32, Engine::vector));
  rule(Rule::transpose_size, all_chips, {"[128, 129] on tensor"}, turned(128, 128, Engine::tensor),
       turned(128, 129, Engine::tensor));
  rule(Rule::transpose_dtype, only_trn1, {"bf16", "32 bytes"}, turned(8, 8, Engine::tensor),
       turned(8, 8, Engine::tensor, DType::bf16));
  rule(Rule::engine_memory, all_chips, {"dst in SBUF on tensor"}, turned(8, 8, Engine::tensor),
       [](Recorder& nc) {
         auto t = nc.sbuf("t", 8, 8, DType::f32);
         nc.transpose(t, filled(nc, "a", 8, 8), {.engine = Engine::tensor});
         keep(nc, t);
       });
  const auto onto = [](bool itself) {
    return [=](Recorder& nc) {
      auto a = filled(nc, "a", 8, 8), t = nc.sbuf("t", 8, 8, DType::f32);
      nc.transpose(t, a);
      if (itself) nc.transpose(a, a);
      keep(nc, t);
    };
  };
  rule(Rule::transpose_alias, all_chips, {"dst is src"}, onto(false), onto(true));
  const auto loaded = [](Dge dge, DType dtype, int rows) {
    return [=](Recorder& nc) {
      keep(nc, nc.load_transposed("t", nc.hbm("x", dtype, {rows, 64}), {.dge = dge}));
    };
  };
  rule(Rule::dma_transpose, only_trn1, {"2-byte"}, loaded(Dge::automatic, DType::f32, 64),
       loaded(Dge::automatic, DType::bf16, 64));
  rule(Rule::dma_descriptors, all_chips, {"software"}, loaded(Dge::automatic, DType::bf16, 64),
       loaded(Dge::software, DType::bf16, 64));
  rule(Rule::dma_descriptors, all_chips, {"hardware"}, loaded(Dge::none, DType::bf16, 64),
       loaded(Dge::hardware, DType::bf16, 17));
  rule(Rule::dma_descriptors, only_trn1, {"hardware"}, loaded(Dge::none, DType::bf16, 64),
       loaded(Dge::hardware, DType::bf16, 32));
}

TEST_CASE("check: transfers and tensors") {
  const auto rows_of = [](int n, bool turned = false) {
    return [=](Recorder& nc) {
      auto x = nc.hbm("x", DType::f32, {64, 1024});
      if (turned) return keep(nc, nc.load("t", x.transposed().rows(0, 64)));
      keep(nc, nc.load("t", x.cols(0, n)));
    };
  };
  rule(Rule::dma_row, all_chips, {"\"", "1024 bytes", "41 %"}, rows_of(512), rows_of(256));
  rule(Rule::dma_tiny_row, all_chips, {"bytes", "%"}, rows_of(512), rows_of(127));
  const auto moved = [](int by) {
    return [=](Recorder& nc) {
      auto x = nc.hbm("x", DType::f32, {64, 512});
      nc.store(x.rows(by, 32), nc.load("t", x.rows(0, 32)));
    };
  };
  rule(Rule::hbm_overlap, all_chips, {"\"x\"", "loaded at test_check_rules.cpp:"}, moved(32), moved(16));
  rule(Rule::hbm_overlap, no_chip, {}, moved(0), moved(0));  // in place
  const auto covering = [](int n) {
    return [=](Recorder& nc) {
      auto y = nc.hbm("y", DType::f32, {256, 512});
      auto t = filled(nc, "t", 64, 512);
      for (auto i : nc.range(n)) nc.store(y.rows(i * 64, 64), t);
    };
  };
  rule(Rule::hbm_unwritten, all_chips, {"\"y\"", "never stored"}, covering(4), covering(3));
  rule(Rule::unused_tensor, all_chips, {"\"z\""}, covering(4), [&](Recorder& nc) {
    covering(4)(nc);
    (void)nc.hbm("z", DType::f32, {8, 8});
  });
  rule(Rule::unused_tile, all_chips, {"\"t\"", "never read"}, covering(4),
       [](Recorder& nc) { (void)filled(nc, "t", 8, 8); });
}

TEST_CASE("check: read before write") {
  const auto partly = [](int n) {
    return [=](Recorder& nc) {
      auto t = nc.sbuf("t", 8, 8, DType::f32);
      nc.fill(t.free(0, n), 0.f);
      keep(nc, t);
    };
  };
  rule(Rule::read_before_write, all_chips, {"\"t\"", "part", "fill, load"}, partly(8), partly(7));
  const auto summed = [](bool first) {
    return [=](Recorder& nc) {
      auto acc = nc.sbuf("acc", 8, 8, DType::f32), x = filled(nc, "x", 8, 8);
      if (first) nc.fill(acc, 0.f);
      for (auto i : nc.range(4)) {
        (void)i;
        nc.tensor_tensor(acc, acc, Alu::add, x);
      }
      keep(nc, acc);
    };
  };
  rule(Rule::read_before_write, all_chips, {"\"acc\"", "nothing has written"}, summed(true), summed(false));
  const auto interleaved = [](int both) {
    return [=](Recorder& nc) {
      auto t = nc.sbuf("t", 8, 16, DType::f32);
      for (int i = 0; i < both; ++i) nc.fill(t.every(2, i), 0.f);
      keep(nc, t);
    };
  };
  rule(Rule::read_before_write, all_chips, {"\"t\""}, interleaved(2), interleaved(1));
  const auto elements = [](int n) {
    return [=](Recorder& nc) {
      auto t = nc.sbuf_array("t", 4, 8, 8, DType::f32);
      for (auto i : nc.range(n)) nc.fill(t[i], 0.f);
      for (auto i : nc.range(4)) keep(nc, t[i]);
    };
  };
  rule(Rule::read_before_write, all_chips, {"i1 = 3"}, elements(4), elements(3));
}

TEST_CASE("check: a rotated loop reads what an earlier iteration has written") {
  const auto rotated = [](bool produced) {
    return [=](Recorder& nc) {
      auto x = nc.hbm("x", DType::f32, {512, 512});
      auto y = nc.hbm("y", DType::f32, {512, 512});
      auto t = nc.sbuf_array("t", 2, 128, 512, DType::f32);
      for (auto step : nc.range(5)) {
        for (auto i : nc.range(max(step - 1, nc.index(0)), min(step, nc.index(4))))
          nc.store(y.rows(i * 128, 128), t[i % 2]);
        if (!produced) continue;
        for (auto i : nc.range(step, min(step + 1, nc.index(4))))
          nc.copy(t[i % 2], nc.load("x", x.rows(i * 128, 128)));
      }
      if (!produced) nc.store(x, nc.load("all", x.rows(0, 512)));
    };
  };
  rule(Rule::read_before_write, all_chips, {"\"t\""}, rotated(true), rotated(false));
}

TEST_CASE("check: docs/rules.md has the table of rules, and each rule stands at its place") {
  std::ifstream file(NEURON_KERNELS_SOURCE_DIR "/docs/rules.md");
  std::stringstream text;
  text << file.rdbuf();
  CHECK(text.str().find(nk::record::rules_table()) != std::string::npos);
  for (int r = 0; r < nk::record::rule_count; ++r)
    CHECK(static_cast<int>(nk::record::rules[static_cast<std::size_t>(r)].rule) == r);
}

}  // namespace
}  // namespace test
