// Recorder refuses what breaks a rule of tiles, views or lifetimes, and names the op's line.
#include "neuron_kernels/record/recorder.hpp"

#include "recording.hpp"

namespace test {
namespace {

/// body must throw a TileError that starts with this file and `op`, and holds all of `shown`.
template <class Body>
void refuses(const std::string& op, const std::vector<std::string>& shown, const Body& body) {
  Recorder nc(nk::trn2);
  std::string message = "nothing";
  try {
    body(nc);
  } catch (const nk::TileError& error) {
    message = error.what();
  }
  INFO("thrown: " << message);
  CHECK(message.starts_with("test_recorder_errors.cpp:"));
  CHECK(message.find(" " + op + ": ") != message.npos);
  for (const std::string& part : shown) {
    INFO("should hold: " << part);
    CHECK(message.find(part) != message.npos);
  }
}

TEST_CASE("recorder: shapes, memories and dtypes are checked at the op") {
  refuses("sbuf", {"[0, 8]", "at least 1"}, [](Recorder& nc) { (void)nc.sbuf("sbuf", 0, 8, DType::f32); });
  refuses("sbuf_array", {"-1", "0 or more"},
          [](Recorder& nc) { (void)nc.sbuf_array("a", -1, 8, 8, DType::f32); });
  refuses("matmul", {"a [8, 8] f32 in SBUF", "psum()"}, [](Recorder& nc) {
    auto a = nc.sbuf("a", 8, 8, DType::f32);
    nc.matmul(a, a, a);
  });
  refuses("matmul", {"f32 pairs only with f32"}, [](Recorder& nc) {
    nc.matmul(nc.psum("d", 8, 8), nc.sbuf("a", 4, 8, DType::f32), nc.sbuf("b", 4, 8, DType::bf16));
  });
  refuses("fill", {"x [2, 3] f32", "read-only"}, [](Recorder& nc) {
    nc.fill(nc.load("x", nc.hbm("x", DType::f32, {2, 3})), 0.f);
  });
  refuses("activate", {"r [8, 2] f32", "[8, 1] f32"}, [](Recorder& nc) {
    auto a = nc.sbuf("a", 8, 8, DType::f32);
    nc.activate(a, Act::exp, a, {.row_sum = nc.sbuf("r", 8, 2, DType::f32)});
  });
  refuses("tensor_scalar", {"k [8, 1] bf16", "[8, 1] f32"}, [](Recorder& nc) {
    auto a = nc.sbuf("a", 8, 8, DType::f32);
    nc.tensor_scalar(a, a, Alu::add, 1.f, Alu::add, nc.sbuf("k", 8, 1, DType::bf16));
  });
  refuses("transposed", {"p [8, 8] f32 in PSUM", "copy"},
          [](Recorder& nc) { (void)nc.transposed(nc.psum("p", 8, 8)); });
  refuses("store", {"[4, 8]", "t [8, 4]"}, [](Recorder& nc) {
    nc.store(nc.hbm("x", DType::f32, {4, 8}), nc.sbuf("t", 8, 4, DType::f32));
  });
  refuses("load_broadcast", {"[2, 8]", "[1, 8]"}, [](Recorder& nc) {
    (void)nc.load_broadcast("b", nc.hbm("x", DType::f32, {2, 8}), 4);
  });
  refuses("load", {"[5, 8]", "a [4, 8]"}, [](Recorder& nc) {
    nc.load(nc.input_array("a", 2, 4, 8, DType::f32), 0, nc.hbm("x", DType::f32, {5, 8}));
  });
  refuses("load", {"sbuf_array", "input_array"}, [](Recorder& nc) {
    nc.load(nc.sbuf_array("a", 2, 4, 8, DType::f32), 0, nc.hbm("x", DType::f32, {4, 8}));
  });
  refuses("load", {"x [2, 4, 8]", "rank 3"}, [](Recorder& nc) {
    (void)nc.load("t", nc.hbm("x", DType::f32, {2, 4, 8}));
  });
  refuses("tiles", {"tiles(8, 0)"}, [](Recorder& nc) { (void)nc.tiles(8, 0); });
  refuses("programs", {"inside another"}, [](Recorder& nc) {
    for (auto a : nc.programs(8, 4)) (void)a, (void)nc.programs(8, 4);
  });
}

TEST_CASE("recorder: views out of bounds are refused where the bounds are certain") {
  const auto x = [](Recorder& nc) { return nc.hbm("x", DType::f32, {10, 8}); };
  refuses("rows", {"4 from 8", "x [10, 8]", "[0, 10)"}, [&](Recorder& nc) { (void)x(nc).rows(8, 4); });
  refuses("cols", {"1 from -1"}, [&](Recorder& nc) { (void)x(nc).cols(-1, 1); });
  refuses("rows", {"0 from 0"}, [&](Recorder& nc) { (void)x(nc).rows(0, 0); });
  refuses("rows", {"4 from 0 to 8"}, [&](Recorder& nc) {
    for (auto i : nc.range(3)) (void)x(nc).rows(i * 4, 4);
  });
  refuses("at", {"1 from 10"}, [&](Recorder& nc) { (void)x(nc).at(10); });
  refuses("rows", {"3 from 8", "x [8, 10]"},
          [&](Recorder& nc) { (void)x(nc).transposed().rows(6, 2), (void)x(nc).transposed().rows(8, 3); });
  refuses("dim", {"dimension 2"}, [&](Recorder& nc) { (void)x(nc).dim(2); });
  refuses("free", {"3 from 6", "t [4, 8] f32"},
          [](Recorder& nc) { (void)nc.sbuf("t", 4, 8, DType::f32).free(6, 3); });
  refuses("free", {"2 from 3", "[4, 4]"},
          [](Recorder& nc) { (void)nc.sbuf("t", 4, 8, DType::f32).free(4, 4).free(3, 2); });
  refuses("partitions", {"2 from 3"},
          [](Recorder& nc) { (void)nc.sbuf("t", 4, 8, DType::f32).partitions(3, 2); });
  refuses("fill", {"1 from 2", "array a"},
          [](Recorder& nc) { nc.fill(nc.sbuf_array("a", 2, 4, 8, DType::f32)[2], 0.f); });

  Recorder nc(nk::trn2);  // i + j reaches 8 only in the bounds: i and j are not independent
  for (auto i : nc.range(5)) {
    for (auto j : nc.range(0, 5 - i)) CHECK_NOTHROW(x(nc).rows(i + j, 6));
  }
}

TEST_CASE("recorder: array elements have the shape they were loaded with") {
  Recorder nc(nk::trn2);
  auto x = nc.hbm("x", DType::f32, {300, 8});
  auto a = nc.input_array("a", 3, 128, 8, DType::f32);
  for (auto t : nc.tiles(300, 128)) nc.load(a, t.index, x.rows(t.begin, t.size));
  for (auto i : nc.range(2)) CHECK(a[i].p() == 128);
  CHECK(a[2].p() == 44);

  auto odd = nc.input_array("odd", 8, 128, 8, DType::f32);
  for (auto i : nc.range(4))
    nc.load(odd, i * 2, x.rows(i * 10, 10)), nc.load(odd, 1 + 2 * i, x.rows(i * 20, 20));
  for (auto i : nc.range(4)) CHECK((odd[2 * i].p() == 10 && odd[i * 2 + 1].p() == 20));
  refuses("copy", {"a[0 to 2]", "different shapes"}, [](Recorder& rec) {
    auto src = rec.hbm("x", DType::f32, {300, 8});
    auto b = rec.input_array("a", 3, 128, 8, DType::f32);
    for (auto t : rec.tiles(300, 128)) rec.load(b, t.index, src.rows(t.begin, t.size));
    for (auto i : rec.range(3)) rec.copy(rec.sbuf("t", 128, 8, DType::f32), b[i]);
  });
  refuses("copy", {"a[1]", "before it is loaded"}, [](Recorder& rec) {
    auto b = rec.input_array("a", 3, 128, 8, DType::f32);
    rec.copy(rec.sbuf("t", 128, 8, DType::f32), b[1]);
  });
}

TEST_CASE("recorder: tiles and indices end with their loop") {
  refuses("fill", {"t [4, 8] f32", "iteration that has ended"}, [](Recorder& nc) {
    Recorder::Tile kept;
    for (auto i : nc.range(3)) (void)i, kept = nc.sbuf("t", 4, 8, DType::f32);
    nc.fill(kept, 0.f);
  });
  refuses("fill", {"iteration that has ended"}, [](Recorder& nc) {
    Recorder::Tile kept;
    for (auto t : nc.tiles(6, 4)) {  // made by the full spans, used by the rest
      if (t.size == 4) kept = nc.sbuf("t", 4, 8, DType::f32);
      if (t.size == 2) nc.fill(kept, 0.f);
    }
  });
  refuses("rows", {"loop that has ended"}, [](Recorder& nc) {
    Recorder::Index kept = 0;
    for (auto i : nc.range(3)) kept = i;
    (void)nc.hbm("x", DType::f32, {10, 8}).rows(kept, 1);
  });
  refuses("fill", {"a tile that is not given"}, [](Recorder& nc) { nc.fill(Recorder::Tile(), 0.f); });
  refuses("load", {"not given"}, [](Recorder& nc) { (void)nc.load("x", Recorder::Hbm()); });
  refuses("fill", {"another Recorder"}, [](Recorder& nc) {
    Recorder other(nk::trn2);
    nc.fill(other.sbuf("t", 4, 8, DType::f32), 0.f);
  });
  Recorder nc(nk::trn2);
  Recorder::Index kept = 0;
  for (auto i : nc.range(3)) kept = i;
  CHECK_THROWS_AS(kept + 1, nk::TileError);
  CHECK_THROWS_AS(nc.index(7) / 0, nk::TileError);
  for (auto i : nc.range(3)) CHECK_THROWS_AS((i - 2) / 4, nk::TileError);
}

}  // namespace
}  // namespace test
