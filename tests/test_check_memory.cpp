// check(): what fits SBUF and PSUM, placements; reports about the NeuronCore and its compiler (S-NKI cases, issues of
// the public trackers) that a check before compilation answers; NaN in fresh memory.
#include "neuron_kernels/host/poisoned_host.hpp"

#include "checking.hpp"
#include "neuron_kernels/kernels/flash_attention.hpp"
#include "neuron_kernels/record/allocate.hpp"

namespace test {
namespace {

/// n tiles of `bytes` per partition, alive together.
auto together(int n, int bytes, bool psum, int p = 128) {
  return [=](Recorder& nc) {
    std::vector<Recorder::Tile> tiles;
    for (int i = 0; i < n; ++i) {
      tiles.push_back(psum ? nc.psum("t", p, bytes / 4) : nc.sbuf("t", p, bytes / 4, DType::f32));
      nc.fill(tiles.back().free(0, 1), 0.f);
    }
    for (const Recorder::Tile& t : tiles) nc.store(nc.hbm("y", DType::f32, {p, 1}).rows(0, p), t.free(0, 1));
  };
}

TEST_CASE("check: S-NKI-01, tile limits hold before compilation") {
  const auto product = [](int k, int m, int n) {
    return [=](Recorder& nc) {
      auto s = nc.psum("s", m, n);
      nc.matmul(s, filled(nc, "a", k, m), filled(nc, "b", k, n));
      keep(nc, s);
    };
  };
  for (const auto& [k, m, n] :
       {std::tuple{128, 128, 512}, {1, 1, 1}, {128, 1, 512}, {3, 128, 7}, {128, 126, 512}}) {
    for (const nk::Limits* l : chips) CHECK(is_legal(check(program_of(*l, product(k, m, n)), *l)));
  }
  for (const auto& [k, m, n] : {std::tuple{129, 128, 512}, {128, 129, 512}, {256, 256, 256}})
    rule(Rule::matmul_size, all_chips, {" > 128"}, product(1, 1, 1), product(k, m, n));
  rule(Rule::matmul_size, trn1_trn2, {"513 > 512"}, product(1, 1, 1), product(128, 128, 513));
  Program p = program_of(nk::trn2, product(64, 8, 8));
  for (auto& op : p.ops) {
    if (op.code == nk::record::OpCode::matmul) op.a.p = 63;
  }
  CHECK(has(check(p, nk::trn2), Rule::operands));  // K differs
}

TEST_CASE("check: S-NKI-02, memory that nobody wrote is an error, and NaN in a replay") {
  for (const Shape& shape : {Shape{128, 16}, {1, 1}, {37, 513}}) {
    const int p = static_cast<int>(shape[0]), f = static_cast<int>(shape[1]);
    const auto unwritten = [=](auto& nc, const auto& y) { nc.store(y, nc.sbuf("x", p, f, DType::f32)); };
    for (const nk::Limits* l : chips) {
      const Program program =
          recorded(*l, {{"y", DType::f32, {p, f}}}, [&](auto& nc, const auto& h) { unwritten(nc, h[0]); });
      CHECK(has(check(program, *l), Rule::read_before_write));
      Tensor y(DType::f32, {p, f});
      for (std::int64_t i = 0; i < y.size(); ++i) y.set(i, 0.);
      nk::host::ArenaScope scope;
      nk::PoisonedHost host(nk::host::best_page(), scope.arena);
      const std::vector<nk::Host::Hbm> tensors{nk::Host::Hbm(y.view())};
      nk::replay(program, host, std::span<const nk::Host::Hbm>(tensors));
      for (std::int64_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y.at(i)));
    }
  }
}

/// The kernel gives the same bits on Host and, replayed, on PoisonedHost, and none is NaN.
template <class Body>
void reads_nothing_fresh(const std::vector<Argument>& arguments, const Body& body) {
  Random random(5);
  std::vector<Tensor> direct;
  for (const Argument& a : arguments)
    direct.push_back(a.written ? Tensor(a.dtype, a.shape) : Tensor::normal(random, a.dtype, a.shape));
  std::vector<Tensor> replayed = direct;
  const auto hbms = [&](std::vector<Tensor>& tensors) {
    std::vector<nk::Host::Hbm> all;
    for (Tensor& t : tensors) all.push_back(nk::Host::Hbm(t.view()));
    return all;
  };
  nk::host::ArenaScope scope;
  nk::Host host(nk::host::best_page(), scope.arena);
  body(host, hbms(direct));
  nk::PoisonedHost poisoned(nk::host::best_page(), scope.arena);
  const std::vector<nk::Host::Hbm> tensors = hbms(replayed);
  nk::replay(recorded(nk::trn2, arguments, body), poisoned, std::span<const nk::Host::Hbm>(tensors));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    INFO(arguments[i].name);
    CHECK(replayed[i].same_bits(direct[i]));
    CHECK((!arguments[i].written || !replayed[i].still_nan()));
  }
}

TEST_CASE("check: the kernels read nothing fresh") {
  const Size s{133, 517, 130};
  reads_nothing_fresh(matmul_arguments(DType::f32, s),
                      matmul_body(nk::MatmulBlocking::default_for(nk::trn2, {s.m, s.n, s.k}), 0.f, true,
                                  false, Act::gelu, true));
  for (const bool causal : {false, true}) {
    const nk::AttentionShape a{1, 2, 1, 133, 550, 17, 9};
    reads_nothing_fresh({{"q", DType::f32, {1, 2, 133, 17}},
                         {"k", DType::f32, {1, 1, 550, 17}},
                         {"v", DType::f32, {1, 1, 550, 9}},
                         {"dst", DType::f32, {1, 2, 133, 9}, true},
                         {"lse", DType::f32, {1, 2, 133, 1}, true}},
                        [&](auto& nc, const auto& h) {
                          nk::AttentionArgs<TargetOf<decltype(nc)>> args;
                          args.q = h[0], args.k = h[1], args.v = h[2], args.dst = h[3], args.lse = h[4];
                          args.causal = causal;
                          attention_kernel(nc, args, nk::AttentionBlocking::default_for(nk::trn2, a));
                        });
  }
}

TEST_CASE("check: S-NKI-03, PSUM's banks, and what a matmul may write") {
  for (const nk::Limits* l : chips)
    CHECK_FALSE(has(check(program_of(*l, together(8, 2048, true)), *l), Rule::psum_capacity));
  rule(Rule::psum_capacity, all_chips, {"18432", "16384", "\"t\" 2048"}, together(8, 2048, true),
       together(9, 2048, true));
  rule(Rule::psum_capacity, all_chips, {"16388"}, together(1, 16384, true), together(1, 16388, true));
  rule(Rule::partitions, all_chips, {"129"}, together(1, 4, true), together(1, 4, true, 129));
  const auto results = [](int n) {  // 1200 bytes each: no two in a bank
    return [=](Recorder& nc) {
      auto s = nc.psum_array("s", n, 8, 300);
      auto a = filled(nc, "a", 8, 8), b = filled(nc, "b", 8, 300);
      for (auto i : nc.range(n)) nc.matmul(s[i], a, b);
      for (auto i : nc.range(n)) keep(nc, s[i]);
    };
  };
  rule(Rule::psum_capacity, trn1_trn2, {"9 banks"}, results(8), results(9));
}

TEST_CASE("check: S-NKI-04, SBUF holds what is alive at the same time") {
  for (const nk::Limits* l : chips) {
    const int cap = l->sbuf_usable_bytes;
    const auto fits = [&](int n, int bytes) {
      return !has(check(program_of(*l, together(n, bytes, false)), *l), Rule::sbuf_capacity);
    };
    CHECK(fits(1, cap / 4 * 4));
    CHECK_FALSE(fits(1, cap / 4 * 4 + 4));
    CHECK_FALSE(fits(1, l->sbuf_partition_bytes + 1416));
    CHECK(fits(2, cap / 8 * 4));
    CHECK_FALSE(fits(3, cap / 8 * 4));
    const auto found = check(program_of(*l, together(3, cap / 8 * 4, false)), *l);
    CHECK(std::any_of(found.begin(), found.end(), [&](const nk::Finding& f) {
      return f.text.find(nk::text(3 * (cap / 8 * 4))) != f.text.npos;
    }));
    const Program one_after_another = program_of(*l, [&](Recorder& nc) {
      for (int i = 0; i < 3; ++i) keep(nc, filled(nc, "t", 128, cap / 16), nk::text("y", i).c_str());
    });
    CHECK_FALSE(has(check(one_after_another, *l), Rule::sbuf_capacity));
  }
  CHECK_THROWS_AS(program_of(nk::trn2, together(1, 4, false, 0)), nk::TileError);
}

TEST_CASE("check: a tile of a loop around is alive in all of the loop") {
  const auto held = [](int f, bool used_later) {
    return [=](Recorder& nc) {
      auto first = filled(nc, "first", 128, f);
      for (auto i : nc.range(2)) {
        (void)i;
        keep(nc, filled(nc, "second", 128, f), "z");
        if (used_later) nc.fill(first.free(0, 1), 0.f);
      }
      keep(nc, used_later ? first.free(0, 8) : filled(nc, "other", 8, 8));
      if (!used_later) nc.fill(first, 0.f);
    };
  };
  const int third = 10000;
  rule(Rule::sbuf_capacity, no_chip, {}, held(third, true), held(third, true));
  rule(Rule::sbuf_capacity, all_chips, {"\"first\"", "\"second\""}, held(third, true), held(3 * third, true));
}

TEST_CASE("check: placements") {
  const auto two = [](Recorder& nc) {
    auto a = filled(nc, "a", 8, 64), b = filled(nc, "b", 8, 64);
    keep(nc, a);
    keep(nc, b, "z");
  };
  for (const nk::Limits* l : chips) {
    const Program good = allocate(program_of(*l, two), *l);
    CHECK(is_legal(check(good, *l)));
    Program bad = good;
    bad.tiles[1].placed.offset = bad.tiles[0].placed.offset + 4;
    CHECK(has(check(bad, *l), Rule::placement_overlap));
    bad = good;
    bad.tiles[0].placed.offset = l->sbuf_usable_bytes - 255;
    CHECK(has(check(bad, *l), Rule::placement));
    bad = good;
    bad.tiles[0].placed = {2, good.tiles[0].placed.offset, 100};
    CHECK(has(check(bad, *l), Rule::placement));
    bad = good;
    bad.tiles[0].placed.offset = -4;
    CHECK(has(check(bad, *l), Rule::placement));
  }
}

TEST_CASE("check: a Program from outside is held to what Recorder refuses") {
  const auto copied = [](Recorder& nc) {
    auto x = nc.hbm("x", DType::f32, {64, 512});
    auto t = nc.load("t", x.rows(0, 32));
    auto c = nc.sbuf("c", 32, 512, DType::f32);
    nc.copy(c, t);
    nc.store(nc.hbm("y", DType::f32, {32, 512}), c);
  };
  for (const nk::Limits* l : {&nk::trn1, &nk::trn2, &nk::trn3, &nk::host_limits}) {
    const Program good = program_of(*l, copied);
    CHECK(is_legal(check(good, *l)));
    const auto broken = [&](const auto& edit) {
      Program bad = good;
      edit(bad);
      return check(bad, *l);
    };
    CHECK(has(broken([](Program& p) { p.ops[2].dst.tile = 0; }), Rule::read_only));
    CHECK(has(broken([](Program& p) { p.ops[2].a.p = 31; }), Rule::operands));
    CHECK(has(broken([](Program& p) { p.ops[2].a.f = 513; }), Rule::in_bounds));
    CHECK(has(broken([](Program& p) { p.ops[0].hbm.size[0] = 65; }), Rule::in_bounds));
    CHECK(has(broken([](Program& p) { p.ops[3].hbm.size[1] = 511; }), Rule::operands));
    const auto message = broken([](Program& p) {
      p.exprs.push_back({nk::record::ExprOp::constant, 33});
      p.ops[0].hbm.begin[0] = static_cast<int>(p.exprs.size()) - 1;
    });
    REQUIRE(has(message, Rule::in_bounds));
    CHECK_THAT(message.front().text, contains_text("32 rows from 33; allowed are 1 or more within [0, 64)"));
  }
}

TEST_CASE(
    "check: issue aws-neuron-sdk 1306, an access out of bounds is found in the iteration that makes it") {
  const auto gathered = [](int n) {
    return [=](Recorder& nc) {
      auto x = nc.hbm("x", DType::f32, {64, 512});
      auto y = nc.hbm("y", DType::f32, {64, 512});
      for (auto i : nc.range(8)) {
        for (auto j : nc.range(i, i + 1))
          nc.store(y.rows((i + j) / 2 * n, 8), nc.load("t", x.rows((i + j) / 2 * n, 8)));
      }
    };
  };
  rule(Rule::in_bounds, all_chips, {"\"x\"", "8 rows from 60", "i0 = 6", "[0, 64)"}, gathered(8),
       gathered(10));
}

TEST_CASE("check: issue aws-neuron-sdk 1009, several PSUM banks alive are counted") {
  rule(Rule::psum_capacity, all_chips, {"20480"}, together(4, 4096, true), together(5, 4096, true));
}

TEST_CASE("check: issue aws-neuron-sdk 1054, a result of matmul is rounded on the way to SBUF, not in PSUM") {
  const auto rounded = [](bool in_psum) {
    return [=](Recorder& nc) {
      auto s = nc.psum("s", 8, 8, in_psum ? DType::bf16 : DType::f32);
      auto a = filled(nc, "a", 8, 8, DType::bf16), o = nc.sbuf("o", 8, 8, DType::bf16);
      nc.matmul(s, a, a);
      nc.copy(o, s);
      nc.store(nc.hbm("y", DType::bf16, {8, 8}), o);
    };
  };
  rule(Rule::matmul_dst, trn1_trn2, {"make the PSUM tile f32"}, rounded(false), rounded(true));
}

TEST_CASE("check: issue nki-samples 134, outputs that are stored in part are named") {
  const auto stored = [](int rows) {
    return [=](Recorder& nc) {
      nc.store(nc.hbm("y", DType::f32, {64, 512}).rows(0, rows), filled(nc, "t", rows, 512));
    };
  };
  rule(Rule::hbm_unwritten, all_chips, {"\"y\""}, stored(64), stored(63));
}

TEST_CASE("check: random legal programs are legal, and one broken op in them is found") {
  using nk::record::OpCode;
  Random random(11);
  const auto below = [&](int n) { return static_cast<int>(random.uniform() * n); };
  for (int round = 0; round < 300; ++round) {
    const nk::Limits& l = *chips[below(3)];
    const int p = 1 + below(128), f = 2 + below(510), steps = 1 + below(6);
    Recorder nc(l);
    auto x = nc.hbm("x", DType::f32, {std::int64_t{p} * steps, f}),
         y = nc.hbm("y", DType::f32, {std::int64_t{p} * steps, f});
    auto total = filled(nc, "total", p, f);
    for (auto i : nc.range(steps)) {
      const auto in = nc.load("in", x.rows(i * p, p));
      std::vector<Recorder::Tile> tiles{in};
      for (int k = 1 + below(5); k > 0; --k) {
        const auto any = [&] {
          return tiles[static_cast<std::size_t>(below(static_cast<int>(tiles.size())))];
        };
        auto t = nc.sbuf("t", p, f, DType::f32);
        switch (below(5)) {
          case 0:
            nc.activate(t, Act::exp, any());
            break;
          case 1:
            nc.tensor_tensor(t, any(), Alu::add, any());
            break;
          case 2: {
            auto s = nc.psum("s", f < 129 ? f : 1, f);
            const auto a = any();
            nc.matmul(s, f < 129 ? a : a.free(0, 1), a);
            nc.copy(t, any());
            auto c = nc.sbuf("c", s.p(), f, DType::f32);
            nc.copy(c, s);
            if (s.p() == p) nc.tensor_tensor(t, t, Alu::add, c);
            break;
          }
          case 3:
            nc.fill(t.free(0, 1), 0.f);
            nc.copy(t.free(1, f - 1), any().free(0, f - 1));
            break;
          default:
            nc.scalar_tensor_tensor(t, any(), Alu::multiply, 2.f, Alu::add, any());
        }
        tiles.push_back(t);
      }
      nc.tensor_tensor(total, total, Alu::add, tiles.back());
      nc.store(y.rows(i * p, p), total);
    }
    const Program good = nc.program();
    const std::vector<nk::Finding> found = check(good, l);
    for (const nk::Finding& g : found) UNSCOPED_INFO(g.text);
    CHECK(is_legal(found));

    std::vector<int> computing;
    for (int i = 0; i < static_cast<int>(good.ops.size()); ++i) {
      const nk::record::Op& op = nk::record::nth(good.ops, i);
      if (!nk::record::is_structure(op.code) && op.a.given()) computing.push_back(i);
    }
    Program bad = good;
    nk::record::Op& op = nk::record::nth(
        bad.ops, computing[static_cast<std::size_t>(below(static_cast<int>(computing.size())))]);
    Rule expected = Rule::in_bounds;
    const std::string what = name_of(op.code);
    switch (below(4)) {
      case 0:  // past the end
        op.a.f += 513;
        break;
      case 1:  // a tile that nothing writes
        bad.tiles.push_back({.name = "fresh", .p = op.a.p, .f = op.a.f, .dtype = DType::f32});
        op.a = {.tile = static_cast<int>(bad.tiles.size()) - 1, .p = op.a.p, .f = op.a.f};
        op.a.partition = op.a.free = static_cast<int>(bad.exprs.size());
        bad.exprs.push_back({});
        bad.ops.insert(bad.ops.begin(),
                       {.code = OpCode::sbuf, .dst = {.tile = op.a.tile, .p = op.a.p, .f = op.a.f}});
        for (nk::record::Loop& loop : bad.loops) ++loop.first, ++loop.last;
        expected = Rule::read_before_write;
        break;
      case 2:  // another engine
        op.engine = op.code == OpCode::matmul ? nk::Engine::vector : nk::Engine::tensor;
        expected = Rule::engine_op;
        break;
      default:  // too many partitions at once
        op.a.tile = 0, op.a.element = nk::record::none, op.a.p = 129;
        nk::record::nth(bad.tiles, 0).p = 129;
        expected = Rule::partitions;
    }
    INFO(name_of(expected) << ", " << what << "\n" << printed(bad));
    CHECK(has(check(bad, l), expected));
  }
}

}  // namespace
}  // namespace test
