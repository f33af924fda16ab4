// NKI source of single ops, in every form that takes other instructions; of buffers that were placed; and names.
#include "nki_cases.hpp"

namespace test {
namespace {

using nk::Engine;
using reference::Approx;

/// Each op's result goes to a matrix [64, 64] of y of its own. Scalars, columns, memories and engines vary.
template <nk::Target T>
void chip_ops(T& nc, const typename T::Hbm& x, const typename T::Hbm& y) {
  int next = 0;
  const auto keep = [&](const auto& tile) {
    nc.store(y.at(nc.index(next++)).rows(nc.index(0), tile.p()).cols(nc.index(0), tile.f()), tile);
  };
  const DType dtype = x.dtype();
  const auto sbuf = [&](int p, int f) { return nc.sbuf("out", p, f, dtype); };
  const auto a = nc.load("a", x.at(nc.index(0))),
             b = nc.load("b", x.at(nc.index(1)), {.dge = nk::Dge::software});
  const auto row = nc.load_broadcast("row", x.at(nc.index(1)).rows(nc.index(5), 1), 64);
  const auto column_row =
      nc.load_broadcast("column_row", x.at(nc.index(1)).transposed().rows(nc.index(5), 1), 64);
  auto column = nc.sbuf("column", 64, 1, DType::f32), wide = nc.sbuf("wide", 64, 64, DType::f32);
  nc.copy(column, b.free(nc.index(3), 1), {.engine = Engine::scalar});
  nc.copy(wide, a, {.engine = Engine::gpsimd});
  auto bank = nc.psum("bank", 64, 64);
  nc.copy(bank, a, {.engine = Engine::vector});
  const auto result = [&](int p, int f, const auto& op) {
    auto out = sbuf(p, f);
    op(out);
    keep(out);
  };
  const auto square = [&](const auto& op) { result(64, 64, op); };

  square([&](auto& out) { nc.tensor_tensor(out, bank, Alu::subtract, b); });
  square([&](auto& out) { nc.tensor_tensor(out, wide, Alu::min, row, {.engine = Engine::gpsimd}); });
  square([&](auto& out) { nc.tensor_tensor(out, wide, Alu::max, column_row); });
  square([&](auto& out) { nc.tensor_scalar(out, bank, Alu::multiply, 0.3f, {.engine = Engine::scalar}); });
  square([&](auto& out) { nc.tensor_scalar(out, a, Alu::max, column, {.engine = Engine::scalar}); });
  square([&](auto& out) {
    nc.tensor_scalar(out, a, Alu::multiply, column, Alu::add, -1.5f, {.engine = Engine::scalar});
  });
  square([&](auto& out) {
    nc.tensor_scalar(out, a, Alu::subtract, 2.f, Alu::multiply, column, {.engine = Engine::gpsimd});
  });
  square([&](auto& out) { nc.scalar_tensor_tensor(out, bank, Alu::subtract, column, Alu::max, b); });
  square([&](auto& out) { nc.scan(out, wide, Alu::min, column, Alu::add, a); });
  square([&](auto& out) { nc.scan(out, bank, Alu::min, 0.5f, Alu::subtract, b); });
  square([&](auto& out) { nc.fill(out, -0.1f, {.engine = Engine::gpsimd}); });
  for (const Alu op : {Alu::add, Alu::max, Alu::min}) {
    auto reduced = nc.sbuf("reduced", 64, 1, DType::f32);
    square([&](auto& out) { nc.tensor_scalar_reduce(out, a, Alu::multiply, -0.7f, op, reduced); });
    keep(reduced);
    result(64, 1, [&](auto& out) { nc.reduce(out, op, bank); });
    result(64, 16, [&](auto& out) { nc.reduce(out, op, a); });
    result(64, 16, [&](auto& out) { nc.reduce(out, op, b, {.blocks = 4}); });
    result(64, 8, [&](auto& out) { nc.reduce(out, op, wide, {.blocks = 2}); });
    result(64, 8, [&](auto& out) { nc.reduce(out, op, wide.every(2, nc.index(1)), {.blocks = 2}); });
  }
  for (const Act f : {Act::identity, Act::exp, Act::tanh, Act::erf, Act::sigmoid, Act::square, Act::relu,
                      Act::silu, Act::gelu, Act::gelu_tanh})
    square([&](auto& out) { nc.activate(out, f, a, {.scale = 0.8f, .bias = 0.25f}); });
  for (const Act f : {Act::log, Act::rsqrt})
    square([&](auto& out) { nc.activate(out, f, nc.load("a2", x.at(nc.index(2))), {.bias = 7.f}); });
  auto sum = nc.sbuf("sum", 64, 1, DType::f32);
  square([&](auto& out) {
    nc.activate(out, Act::exp, bank, {.scale = column, .bias = column, .row_sum = sum});
  });
  keep(sum);
  square([&](auto& out) {
    nc.tensor_scalar(out, a, Alu::max, 0.1f);
    nc.reciprocal(out, out);
  });
  auto stats = nc.sbuf("stats", 64, 2, DType::f32);
  nc.norm_stats(stats, a.free(nc.index(1), 61));
  keep(stats);

  // Transposes: by either engine, by DMA, of parts, and while loading or storing.
  keep(nc.transposed(a.free(nc.index(8), 40)));
  auto turned = nc.psum("turned", 40, 64, dtype);
  nc.transpose(turned, b.free(nc.index(8), 40));
  result(40, 64, [&](auto& out) { nc.copy(out, turned); });
  result(64, 64, [&](auto& out) { nc.transpose(out, a); });
  result(32, 20, [&](auto& out) {
    nc.transpose(out, a.partitions(nc.index(32), 20).free(nc.index(0), 32), {.engine = Engine::vector});
  });
  result(32, 20, [&](auto& out) {
    nc.transpose(out, a.partitions(nc.index(32), 20).free(nc.index(0), 32), {.engine = Engine::tensor});
  });
  keep(nc.load_transposed("xT", x.at(nc.index(1)).rows(nc.index(0), 48), {.dge = nk::Dge::hardware}));
  keep(nc.load_transposed("plain", x.at(nc.index(1)).transposed().rows(nc.index(3), 30)));
  keep(nc.load("x_turned", x.at(nc.index(1)).transposed().rows(nc.index(3), 30)));
  nc.store_transposed(y.at(nc.index(next++)).rows(nc.index(0), 64).cols(nc.index(2), 50),
                      a.partitions(nc.index(0), 50));
  nc.store_transposed(y.at(nc.index(next++)).transposed().rows(nc.index(0), 64).cols(nc.index(0), 50),
                      b.partitions(nc.index(0), 50), {.dge = nk::Dge::none});
  nc.store(y.at(nc.index(next++)).transposed().rows(nc.index(0), 64).cols(nc.index(0), 64), b);
  keep(bank);
  nc.store_transposed(y.at(nc.index(next++)), bank);
  nc.store_transposed(y.at(nc.index(next++)).rows(nc.index(0), 1).cols(nc.index(0), 50),
                      b.partitions(nc.index(0), 50).free(nc.index(5), 1));
  keep(nc.load_transposed("as_column", x.at(nc.index(1)).rows(nc.index(9), 1)));

  // Masks: keys on either axis, from and to either memory.
  for (auto i : nc.range(2)) {
    const auto q = i * 8 + 3;
    auto scores = nc.psum("scores", 64, 64), more = nc.sbuf("more", 64, 64, DType::f32);
    nc.copy(scores, a);
    nc.copy(more, b);
    const auto masked = nc.causal_mask(scores, q, i * 2, -9.f),
               same = nc.causal_mask(more, q, nc.index(5), 4.f);
    auto out = nc.sbuf("out", 64, 64, DType::f32);
    nc.tensor_tensor(out, masked, Alu::add, same);
    nc.store(y.at(i + next), out);
  }
  next += 2;
  for (const auto keys : {nk::KeyAxis::free, nk::KeyAxis::partition}) {
    square([&](auto& out) { nc.causal_select(out, a, nc.index(4), nc.index(20), 1.f, {.keys = keys}); });
    auto cut = nc.psum("cut", 64, 32);
    nc.causal_select(cut, bank.every(2, nc.index(0)), nc.index(20), nc.index(4), 2.f, {.keys = keys});
    keep(cut);
    result(64, 32,
           [&](auto& out) { nc.causal_select(out, cut, nc.index(9), nc.index(9), 3.f, {.keys = keys}); });
  }

  // Sums of products in arrays, with parts that depend on a loop and a flag that does.
  auto parts = nc.sbuf_array("parts", 4, 64, 64, dtype);
  auto sums = nc.psum_array("sums", 2, 64, 32);
  for (auto i : nc.range(4)) nc.tensor_tensor(parts[i], a, Alu::max, row);
  for (auto i : nc.range(2)) {
    for (auto k : nc.range(4)) {
      nc.matmul(sums[i], parts[(k + i) % 4], b.free(i * 32, 32), {.accumulate = k != 0});
    }
    auto out = nc.sbuf("out", 64, 32, DType::f32);
    nc.copy(out, sums[i]);
    nc.store(y.at(i + next).cols(i * 16, 32), out);
  }
}

constexpr int chip_op_results = 80;

std::vector<Argument> op_arguments(DType dtype) {
  return {{"x", dtype, {3, 64, 64}}, {"y", DType::f32, {chip_op_results, 64, 64}, true}};
}

/// What tensor_scalar and its like may be off by after at most 64 operations on numbers like these.
Approx of_replay(const Tensor& y, DType dtype) {
  Approx want = reference::exact(y.rows());
  for (Eigen::Index i = 0; i < want.value.rows(); ++i) {
    double largest = 0;
    for (Eigen::Index j = 0; j < want.value.cols(); ++j) {
      const double v = std::abs(want.value(i, j));
      if (!std::isnan(v)) largest = std::max(largest, v);
    }
    want.error.row(i).setConstant((reference::function_error + reference::gamma(64 + 64)) *
                                  std::max(largest, 8.));
  }
  return dtype == DType::f32 ? want : reference::stored(want, dtype);
}

TEST_CASE("nki cases: single ops", "[cases]") {
  for (const nk::Limits* l : {&nk::trn1, &nk::trn2, &nk::trn3}) {
    for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
      const auto arguments = op_arguments(dtype);
      const Program program =
          recorded(*l, arguments, [](auto& nc, const auto& h) { chip_ops(nc, h[0], h[1]); });
      std::vector<Tensor> tensors = case_tensors(arguments, 8);
      for (std::int64_t i = 0; i < tensors[0].size(); ++i)
        tensors[0].set(i, std::clamp(tensors[0].at(i), -3., 3.));
      write_case(nk::text("chip_ops-", l->chip, "-", name_of(dtype)), program, {.name = "chip_ops"},
                 arguments, tensors,
                 [&](const std::string&, const std::vector<Tensor>& t) { return of_replay(t[1], dtype); });
    }
  }
}

TEST_CASE("emit: buffers that were placed have addresses, which rotate with the loop around them") {
  Program program = recorded(nk::trn2, {{"x", DType::f32, {300, 8}}, {"y", DType::f32, {300, 8}, true}},
                             [](auto& nc, const auto& h) {
                               auto kept = nc.sbuf_array("kept", 3, 100, 8, DType::f32);
                               for (auto t : nc.tiles(300, 100)) {
                                 auto work = nc.sbuf("work", 100, 8, DType::f32);
                                 nc.copy(work, nc.load("x", h[0].rows(t.begin, t.size)));
                                 nc.copy(kept[t.index], work);
                                 nc.store(h[1].rows(t.begin, t.size), kept[t.index]);
                               }
                             });
  CHECK_THAT(emit(program), !contains_text("address=(0"));
  program.tiles[0].placed = {.buffers = 3, .offset = 0, .stride = 32};
  program.tiles[1].placed = {.buffers = 2, .offset = 96, .stride = 64};
  const std::string source = emit(program, {.name = "copy_rows"});
  CHECK_THAT(source,
             contains_text(
                 "placed_list(3, (100, 8), nl.float32, nl.sbuf, address=0, stride=32, buffers=3, first=0)"));
  CHECK_THAT(source, contains_text("work = nl.ndarray((100, 8), dtype=nl.float32, buffer=nl.sbuf, "
                                   "address=(0, 96 + 64 * (i0 % 2)))"));
  program.tiles[1].placed.buffers = 1;
  CHECK_THAT(emit(program), contains_text("address=(0, 96))"));
}

TEST_CASE("emit: buffers rotate with as many loops as it takes to use them all") {
  Program program = recorded(nk::trn2, {{"y", DType::f32, {4, 8}, true}}, [](auto& nc, const auto& h) {
    for (auto i : nc.range(5)) {
      for (auto j : nc.range(i + 1)) {
        for (auto k : nc.range(2)) {
          for (auto once : nc.tiles(8, 8)) {
            auto t = nc.sbuf("t", 4, once.size, DType::f32);
            nc.fill(t, 1.f);
            nc.store(h[0], t);
            (void)j, (void)k;
          }
        }
      }
    }
  });
  const auto with = [&](int buffers) {
    program.tiles[0].placed = {.buffers = buffers, .offset = 32, .stride = 32};
    return emit(program);
  };
  CHECK_THAT(with(1), contains_text("address=(0, 32))"));
  CHECK_THAT(with(2), contains_text("address=(0, 32 + 32 * (i2 % 2)))"));
  CHECK_THAT(with(3), contains_text("address=(0, 32 + 32 * ((i2 + 2 * i1) % 3)))"));
  CHECK_THAT(with(9), contains_text("address=(0, 32 + 32 * ((i2 + 2 * i1) % 9)))"));  // i1 runs i0 + 1 times
}

TEST_CASE("emit: arrays take the buffers of a ring one after another") {
  Program program = recorded(nk::trn2, {{"x", DType::f32, {12, 8}}, {"y", DType::f32, {12, 8}, true}},
                             [](auto& nc, const auto& h) {
                               for (auto i : nc.range(3)) {
                                 auto in = nc.input_array("in", 2, 2, 8, DType::f32);
                                 for (auto j : nc.range(2)) nc.load(in, j, h[0].rows(i * 4 + j * 2, 2));
                                 for (auto j : nc.range(2)) nc.store(h[1].rows(i * 4 + j * 2, 2), in[j]);
                               }
                             });
  program.tiles[0].placed = {.buffers = 3, .offset = 64, .stride = 32};
  CHECK_THAT(emit(program), contains_text("address=64, stride=32, buffers=3, first=2 * i0)"));
  program.tiles[0].placed.buffers = 2;
  CHECK_THAT(emit(program), contains_text("address=64, stride=32, buffers=2, first=0)"));
}

TEST_CASE("emit: tiles within a bank of PSUM are parts of a tensor that begins where the bank does") {
  Program program = recorded(nk::trn2, {{"y", DType::f32, {4, 8}, true}}, [](auto& nc, const auto& h) {
    auto whole = nc.psum("whole", 4, 8), part = nc.psum("part", 4, 8, DType::bf16);
    auto parts = nc.psum_array("parts", 3, 4, 8);
    for (auto i : nc.range(2)) {
      nc.fill(whole, 1.f);
      nc.fill(part, 2.f);
      nc.fill(parts[i], 3.f);
      nc.tensor_scalar(whole, parts[i], Alu::add, 1.f);
      nc.store(h[0], whole);
    }
  });
  program.tiles[0].placed = {.buffers = 1, .offset = 4096, .stride = 2048};
  program.tiles[1].placed = {.buffers = 1, .offset = 2048 + 64, .stride = 32};
  program.tiles[2].placed = {.buffers = 3, .offset = 2048, .stride = 32};
  const std::string source = emit(program);
  CHECK_THAT(source, contains_text(
                         "whole = nl.ndarray((4, 8), dtype=nl.float32, buffer=nl.psum, address=(0, 4096))"));
  CHECK_THAT(source, contains_text("part = part_of_bank((4, 8), nl.bfloat16, 1024, address=2112)"));
  CHECK_THAT(
      source,
      contains_text(
          "parts = part_list(3, (4, 8), nl.float32, 512, address=2048, stride=32, buffers=3, first=0)"));
}

TEST_CASE("emit: names are identifiers, unique, and none of Python's or of the source's own") {
  const std::vector<Argument> arguments = {{"in", DType::f32, {4, 8}},
                                           {"nl", DType::f32, {4, 8}},
                                           {"2 x", DType::f32, {4, 8}, true},
                                           {"i0", DType::f32, {4, 8}}};
  const Program program = recorded(nk::trn2, arguments, [](auto& nc, const auto& h) {
    for (auto i : nc.range(2)) {
      const auto half = [&](int t) { return h[static_cast<std::size_t>(t)].rows(i * 2, 2); };
      auto y = nc.sbuf("in", 2, 8, DType::f32);
      nc.tensor_tensor(y, nc.load("nl", half(0)), Alu::add, nc.load("transpose", half(1)));
      nc.tensor_tensor(y, y, Alu::add, nc.load("in", half(3)));
      nc.store(half(2), y);
    }
  });
  const std::string source = emit(program, {.name = "lambda"});
  CHECK_THAT(source, contains_text("def lambda_kernel(in_, nl_, i0):"));
  CHECK_THAT(source, contains_text("return t2_x"));
  CHECK_THAT(source, contains_text("for i0_1 in range(2):"));
  CHECK_THAT(source, contains_text("in__1 = nl.ndarray("));
  CHECK_THAT(source, contains_text("in__2 = nl.ndarray("));
  CHECK_THAT(source, contains_text("nl__1 = nl.ndarray("));
  CHECK_THAT(source, contains_text("transpose_ = nl.ndarray("));
  CHECK_THAT(source, contains_text("src=in_[nl.ds(i0_1 * 2, 2), :]"));
}

TEST_CASE("emit: only for chips that NKI knows") {
  const Program program =
      recorded(nk::host_limits, {{"x", DType::f32, {4, 8}}, {"y", DType::f32, {4, 8}, true}},
               [](auto& nc, const auto& h) { nc.store(h[1], nc.load("t", h[0])); });
  CHECK_THROWS_WITH(emit(program),
                    contains_text("recorded for host; NKI source can be written for trn1, trn2"));
}

TEST_CASE("emit: numbers read back as what they are") {
  using nk::nki::number;
  CHECK(number(1.f) == "1.0");
  CHECK(number(-0.125f) == "-0.125");
  CHECK(number(0.1f) == "0.1");
  CHECK(number(-1e30f) == "-1e30");
  CHECK(number(1.f / 3) == "0.33333334");
  CHECK(number(-std::numeric_limits<float>::infinity()) == "-np.inf");
  CHECK(number(std::numeric_limits<float>::quiet_NaN()) == "np.nan");
}

}  // namespace
}  // namespace test
