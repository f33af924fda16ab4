// allocate and schedule: every tile of a kernel has a place, none of two that are alive together overlap, and what a
// Program computes is the same.
#include "neuron_kernels/record/schedule.hpp"

#include "neuron_kernels/kernels/flash_attention_shared_shift.hpp"
#include "neuron_kernels/kernels/fused_mlp.hpp"
#include "neuron_kernels/kernels/rmsnorm.hpp"
#include "placed_memory.hpp"
#include "replaying.hpp"

namespace test {
namespace {

using nk::Limits;
using nk::TileError;

struct Kernel {
  std::string name;
  Program program;
};

std::vector<Kernel> kernels(const Limits& l) {
  const DType d = DType::bf16;
  std::vector<Kernel> all;
  const Size sizes[] = {{256, 1024, 256}, {133, 517, 130}, {1, 1, 1}};
  for (const Size& s : sizes) {
    const auto blocking = nk::MatmulBlocking::default_for(l, {s.m, s.n, s.k});
    all.push_back(
        {nk::text("matmul ", s.m),
         recorded(l, matmul_arguments(d, s), matmul_body(blocking, 0.f, true, false, Act::gelu, true))});
  }
  for (const std::int64_t n : {512, 700}) {
    Recorder nc(l);
    nk::SharedShiftArgs<Recorder> a{.q = nc.hbm("q", d, {1, 2, n, 64}),
                                    .k = nc.hbm("k", d, {1, 1, n, 64}),
                                    .v = nc.hbm("v", d, {1, 1, n, 64}),
                                    .dst = nc.hbm("dst", d, {1, 2, n, 64}),
                                    .sums = nc.hbm("sums", DType::f32, {1, 2, n, 1})};
    a.causal = true;
    shared_shift_attention_kernel(nc, a, {});
    all.push_back({nk::text("shared_shift_attention ", n), nc.program()});
  }
  for (const std::int64_t n : {256, 300}) {
    Recorder nc(l);
    nk::MlpArgs<Recorder> a;
    a.x = nc.hbm("x", d, {n, 256}), a.dst = nc.hbm("y", d, {n, 256}), a.gate = nc.hbm("g", d, {384, 256}),
    a.up = nc.hbm("u", d, {384, 256}), a.down = nc.hbm("d", d, {256, 384});
    mlp_kernel(nc, a, nk::MlpBlocking::default_for(l, {n, 256, 384, 256}));
    all.push_back({nk::text("fused_mlp ", n), nc.program()});
  }
  Recorder nc(l);
  nk::RmsnormArgs<Recorder> a;
  a.src = nc.hbm("x", d, {300, 1000}), a.dst = nc.hbm("y", d, {300, 1000}),
  a.weight = nc.hbm("w", d, {1, 1000});
  rmsnorm_kernel(nc, a, nk::NormBlocking::default_for(l, 300, 1000));
  all.push_back({"rmsnorm", nc.program()});
  return all;
}

TEST_CASE("allocate: whatever is alive has its bytes to itself") {
  for (const Limits* l : {&nk::trn1, &nk::trn2, &nk::trn3}) {
    for (const Kernel& k : kernels(*l)) {
      for (const int fixed : {0, 1, 2}) {
        INFO(l->chip << " " << k.name << " fixed " << fixed);
        Program placed;
        try {
          placed = allocate(k.program, *l, {.fixed_buffers = fixed});
        } catch (const TileError&) {
          CHECK(fixed == 2);  // too many for this chip
          continue;
        }
        CHECK(PlacedMemory(placed, *l).check() == "");
        CHECK(placed == k.program);
        CHECK(PlacedMemory(schedule(k.program, *l), *l).check() == "");
      }
    }
  }
}

TEST_CASE("allocate: the check sees an overlap") {
  Program placed = allocate(kernels(nk::trn2).front().program, nk::trn2);
  for (auto& t : placed.tiles) t.placed.offset = 0;
  CHECK(PlacedMemory(placed, nk::trn2).check() != "");
}

TEST_CASE("allocate: more buffers as far as they fit and help") {
  const auto buffers = [](std::int64_t rows, int f) {
    Recorder nc(nk::trn2);
    const auto x = nc.hbm("x", DType::f32, {rows, f}), y = nc.hbm("y", DType::f32, {rows, f});
    const auto once = nc.load("once", x.rows(0, 128));
    for (auto t : nc.tiles(rows, 128)) {
      auto out = nc.sbuf("out", 128, f, DType::f32);
      nc.tensor_tensor(out, nc.load("in", x.rows(t.begin, 128)), Alu::add, once);
      nc.store(y.rows(t.begin, 128), out);
    }
    const Program p = allocate(nc.program(), nk::trn2);
    return std::vector<int>{p.tiles[0].placed.buffers, p.tiles[2].placed.buffers,
                            p.tiles[1].placed.buffers};  // once, in, out
  };
  CHECK(buffers(128, 64) == std::vector{1, 1, 1});
  CHECK(buffers(256, 64) == std::vector{1, 2, 2});
  CHECK(buffers(128 * 1000, 64) == std::vector{1, 72, 4});
  const std::vector<int> tight = buffers(128 * 1000, 8000);  // 32000 bytes each of 212,728
  CHECK((tight[0] == 1 && tight[1] >= 2 && tight[2] >= 2 && tight[1] + tight[2] == 5));
}

TEST_CASE("allocate: what does not fit is said with the tiles that are to blame") {
  Recorder nc(nk::trn2);
  const auto x = nc.hbm("x", DType::f32, {128, 60000});
  (void)nc.load("wide", x);
  try {
    (void)allocate(nc.program(), nk::trn2);
    FAIL("it fits?");
  } catch (const TileError& e) {
    CHECK_THAT(e.what(),
               contains_text("SBUF: 240000 bytes per partition are needed at once; trn2 has 212728"));
    CHECK_THAT(e.what(), contains_text("wide [128, 60000] f32: 240000 bytes, test_allocate.cpp:"));
  }
  Recorder banks(nk::trn2);
  std::vector<Recorder::Tile> tiles;
  for (int i = 0; i < 9; ++i) tiles.push_back(banks.psum("bank", 128, 512));
  for (const auto& t : tiles) banks.fill(t, 0.f);
  try {
    (void)allocate(banks.program(), nk::trn2);
    FAIL("it fits?");
  } catch (const TileError& e) {
    CHECK_THAT(e.what(), contains_text("PSUM: 9 banks of 2048 bytes are needed at once; trn2 has 8"));
  }
}

TEST_CASE("schedule: the same bits, descriptors ready, copies shared between engines") {
  const Size s{256, 1024, 256};
  const auto arguments = matmul_arguments(DType::f32, s);
  const auto body = matmul_body(nk::MatmulBlocking::default_for(nk::trn2, {s.m, s.n, s.k}), 0.f, true, false,
                                Act::gelu, true);
  const Program program = recorded(nk::trn2, arguments, body), scheduled = schedule(program, nk::trn2);
  for (const auto& op : scheduled.ops) CHECK((!nk::record::is_transfer(op.code) || op.dge == nk::Dge::none));
  std::vector<Tensor> direct = filled(arguments), replayed = direct;
  nk::host::launch(&executor(0), 1, [&](nk::Host& nc) { body(nc, hbms(direct, arguments)); });
  const auto tensors = hbms(replayed, arguments);
  nk::host::launch(&executor(0), 1,
                   [&](nk::Host& nc) { nk::replay(scheduled, nc, std::span<const nk::Host::Hbm>(tensors)); });
  for (std::size_t i = 0; i < arguments.size(); ++i)
    check(replayed[i].same_bits(direct[i]), "schedule", nk::text("differs in ", arguments[i].name));

  Recorder nc(nk::trn2);
  auto a = nc.sbuf("a", 128, 512, DType::f32), b = nc.sbuf("b", 128, 512, DType::f32);
  nc.fill(a, 0.f);
  nc.tensor_tensor(b, a, Alu::add, a);
  nc.copy(a, b);
  const Program balanced = schedule(nc.program(), nk::trn2);
  CHECK(balanced.ops.back().engine == nk::Engine::vector);  // 512 each: a draw
  nc.tensor_tensor(b, a, Alu::add, a);
  CHECK(schedule(nc.program(), nk::trn2).ops[4].engine == nk::Engine::scalar);
}

}  // namespace
}  // namespace test
