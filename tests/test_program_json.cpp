// Programs as JSON: the document reads as the Program that it was written from; any other text is an error in words.
#include "neuron_kernels/record/json.hpp"

#include <fstream>
#include <set>

#include "neuron_kernels/kernels/flash_attention.hpp"
#include "neuron_kernels/record/schedule.hpp"
#include "recording.hpp"

namespace test {
namespace {

using nk::ProgramError;
using Json = nk::record::Json;

Program every_op_program(const nk::Limits& limits = nk::trn2) {
  return recorded(limits, {{"x", DType::bf16, {2, 16, 8}}, {"y", DType::f32, {2, 16, 8}, true}},
                  [](auto& nc, const auto& h) { every_op(nc, h[0], h[1]); });
}

Program attention_program(std::int64_t q_len, std::int64_t kv_len) {
  const std::int64_t d = 64;
  return recorded(
      nk::trn2,
      {{"q", DType::bf16, {1, 4, q_len, d}},
       {"k", DType::bf16, {1, 2, kv_len, d}},
       {"v", DType::bf16, {1, 2, kv_len, d}},
       {"dst", DType::bf16, {1, 4, q_len, d}, true}},
      [&](auto& nc, const auto& h) {
        nk::AttentionArgs<TargetOf<decltype(nc)>> a;
        a.q = h[0], a.k = h[1], a.v = h[2], a.dst = h[3];
        a.scale = 0.1f, a.causal = true;
        attention_kernel(nc, a, nk::AttentionBlocking::default_for(nk::trn2, {1, 4, 2, q_len, kv_len, d, d}));
      });
}

/// Equal, and so is what Program's == leaves out.
void check_round_trip(const Program& program) {
  const std::string document = to_json(program);
  const Program read = nk::program_from_json(document);
  CHECK(read == program);
  CHECK(read.files == program.files);
  CHECK(to_json(read) == document);
  REQUIRE(read.tiles.size() == program.tiles.size());
  for (std::size_t i = 0; i < read.tiles.size(); ++i) {
    CHECK(read.tiles[i].where.line == program.tiles[i].where.line);
    CHECK(read.tiles[i].placed.buffers == program.tiles[i].placed.buffers);
    CHECK(read.tiles[i].placed.offset == program.tiles[i].placed.offset);
    CHECK(read.tiles[i].placed.stride == program.tiles[i].placed.stride);
  }
  REQUIRE(read.ops.size() == program.ops.size());
  for (std::size_t i = 0; i < read.ops.size(); ++i) {
    CHECK(read.ops[i].where.file == program.ops[i].where.file);
    CHECK(read.ops[i].where.line == program.ops[i].where.line);
  }
  CHECK(printed(read) == printed(program));
}

TEST_CASE("program json: every op, and kernels with ragged tails, read as they were written") {
  for (const nk::Limits* l : {&nk::trn1, &nk::trn2, &nk::trn3, &nk::host_limits}) {
    check_round_trip(every_op_program(*l));
    for (const Size& s : {Size{128, 512, 128}, {133, 517, 130}, {3, 2, 0}}) {
      check_round_trip(recorded(*l, matmul_arguments(DType::bf16, s),
                                matmul_body(nk::MatmulBlocking::default_for(*l, {s.m, s.n, s.k}), 1.f, true,
                                            false, Act::gelu, true)));
    }
  }
  check_round_trip(attention_program(512, 1024));
  check_round_trip(attention_program(200, 1111));
  check_round_trip(recorded(nk::trn2, {}, [](auto&, const auto&) {}));
}

TEST_CASE("program json: placements, engines and descriptors of a schedule") {
  const Program scheduled = nk::schedule(attention_program(512, 1024), nk::trn2);
  CHECK(std::any_of(scheduled.tiles.begin(), scheduled.tiles.end(),
                    [](const nk::record::TileDecl& t) { return t.placed.buffers > 1; }));
  check_round_trip(scheduled);
}

/// Names of all fields at and below `json`.
void collect(const Json& json, std::set<std::string>& names) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) names.insert(key);
    if (value.is_structured()) collect(value, names);
  }
}

TEST_CASE(
    "program json: the example of docs/program.md is a Program with every field, and every op is described") {
  std::ifstream file(NEURON_KERNELS_SOURCE_DIR "/docs/program.md");
  std::ostringstream page;
  page << file.rdbuf();
  const std::string text = page.str(), fence = "```json\n";
  const std::size_t begin = text.find(fence) + fence.size();
  REQUIRE(begin > fence.size());
  const std::string example = text.substr(begin, text.find("```", begin) - begin);
  const Program program = nk::program_from_json(example);
  CHECK(Json::parse(to_json(program)) == Json::parse(example));
  std::set<std::string> shown, all;
  collect(Json::parse(example), shown);
  collect(Json::parse(to_json(nk::schedule(every_op_program(), nk::trn2))), all);
  collect(Json::parse(to_json(nk::schedule(attention_program(200, 1111), nk::trn2))), all);
  CHECK(shown == all);
  for (const std::string_view op : nk::record::spelled<nk::record::OpCode>) {
    INFO(op);
    CHECK(text.find("`" + std::string(op) + "`") != text.npos);
  }
}

TEST_CASE("program json: every float") {
  const float inf = std::numeric_limits<float>::infinity();
  for (const float value :
       {0.1f, -0.f, 1e-45f, 3.4028235e38f, 1.f / 3, -inf, inf, 16777217.f, std::nanf("")}) {
    Program program = every_op_program();
    for (nk::record::Op& op : program.ops) {
      if (nk::record::has(op.code, nk::record::field_value)) op.k0.value = value;
    }
    CHECK(nk::program_from_json(to_json(program)) == program);
  }
}

/// The position of the n-th op of a kind in the document.
std::size_t nth_op(const Json& document, const std::string& name, int n = 0) {
  const Json& ops = document["ops"];
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i]["op"] == name && n-- == 0) return i;
  }
  FAIL("no op " << name);
  return 0;
}

/// `change` makes an error whose text has all of `parts`.
template <class Change>
void check_refused(const Change& change, const std::vector<std::string>& parts) {
  Json document = Json::parse(to_json(every_op_program()));
  change(document);
  try {
    nk::program_from_json(document.dump());
    FAIL("was taken; expected an error with: " << parts.front());
  } catch (const ProgramError& error) {
    const std::string what = error.what();
    for (const std::string& part : parts) {
      INFO(what);
      CHECK(what.find(part) != what.npos);
    }
    CHECK(what.find('\n') == what.npos);
    CHECK((error.field.empty() || what.find(error.field) != what.npos));
  }
}

TEST_CASE("program json: a document of another form is refused with field, given and allowed") {
  check_refused([](Json& d) { d["schema"] = 2; }, {"schema is 2", "reads 1"});
  check_refused([](Json& d) { d.erase("ops"); }, {"has no \"ops\""});
  check_refused([](Json& d) { d["note"] = 1; }, {"unknown field \"note\"", "allowed are schema"});
  check_refused([](Json& d) { d["chip"] = "trn9"; }, {"chip \"trn9\"", "trn1, inf2, trn2, trn3 and host"});
  check_refused([](Json& d) { d["tensors"][0]["dtype"] = "f8"; },
                {"tensors[0].dtype is \"f8\"", "one of f32, bf16, f16"});
  check_refused([](Json& d) { d["tensors"][0]["dtype"] = 1; }, {"tensors[0].dtype is 1"});
  check_refused([](Json& d) { d["tensors"][0]["shape"] = Json::array(); }, {"tensors[0].shape", "1 to 4"});
  check_refused([](Json& d) { d["tensors"][0]["shape"][1] = -1; }, {"tensors[0].shape[1] is -1"});
  check_refused([](Json& d) { d["tensors"][1]["name"] = "x"; }, {"tensors[1].name is x", "its own"});
  check_refused([](Json& d) { d["tiles"][0]["name"] = "a\nb"; }, {"tiles[0].name"});
  check_refused([](Json& d) { d["tiles"][0]["shape"] = "4"; }, {"tiles[0].shape is \"4\"", "list of 2"});
  check_refused([](Json& d) { d["tiles"][0]["shape"][0] = 0; }, {"tiles[0].shape[0] is 0", "1 to"});
  check_refused([](Json& d) { d["tiles"][1]["count"] = 1 << 20; },
                {"tiles[1].count is 1048576", "0 to 65536"});
  check_refused(
      [](Json& d) {
        d["tiles"][0]["at"] = {7, 1};
      },
      {"tiles[0].at[0] is 7", "files, of which there are 1"});
  check_refused([](Json& d) { d["ops"][1]["op"] = "multiply"; },
                {"ops[1].op is \"multiply\"", "one of loop, end"});
  check_refused([](Json& d) { d["ops"][1]["dst"] = 3; }, {"ops[1] has an unknown field \"dst\""});
  check_refused([](Json& d) { d["ops"][nth_op(d, "fill")]["value"] = "much"; },
                {".value is \"much\"", "\"inf\""});
  check_refused([](Json& d) { d = Json::array(); }, {"is a list; allowed is an object"});
}

TEST_CASE("program json: what is not there, does not nest or has ended is refused") {
  check_refused([](Json& d) { d["ops"].erase(d["ops"].size() - 1); }, {"ops end within loops[0]"});
  check_refused([](Json& d) { d["ops"].push_back({{"op", "end"}}); }, {"ends a loop, but none is open"});
  check_refused([](Json& d) { d["ops"][nth_op(d, "loop", 1)]["loop"] = 0; },
                {".loop is 0", "a loop that an op before"});
  check_refused([](Json& d) { d["ops"][0]["loop"] = 99; },
                {"ops[0].loop is 99", "loops, of which there are 3"});
  check_refused([](Json& d) { d["loops"].push_back(d["loops"][0]); }, {"loops[3] is opened by no op"});
  check_refused([](Json& d) { d["tiles"].push_back(d["tiles"][0]); }, {"tiles[13] is made by no op"});
  check_refused([](Json& d) { d["exprs"][6]["a"] = 6; }, {"exprs[6].a is 6", "positions in exprs before 6"});
  check_refused([](Json& d) { d["exprs"][17]["b"] = 2; }, {"exprs[17].b is not a positive constant"});
  check_refused([](Json& d) { d["exprs"][2]["loop"] = 1; }, {"uses the index of loops[1] outside its body"});
  check_refused([](Json& d) { d["loops"][0]["begin"] = 1000; }, {"loops[0].begin is 1000"});
  check_refused([](Json& d) { d["ops"].insert(d["ops"].begin(), d["ops"][nth_op(d, "reciprocal")]); },
                {"ops[0].dst.tile is 3 (column)", "no op has made yet"});
  check_refused([](Json& d) { d["ops"].push_back(d["ops"][nth_op(d, "reciprocal")]); },
                {"iteration that has ended"});
  check_refused([](Json& d) { d["ops"][nth_op(d, "psum")]["makes"] = 0; },
                {"is 0, a tile that an op before makes"});
  check_refused([](Json& d) { d["tiles"][7]["space"] = "sbuf"; }, {"psum makes a tile in PSUM"});
  check_refused([](Json& d) { d["ops"][nth_op(d, "fill")]["dst"].erase("element"); },
                {".dst.element is missing"});
  check_refused([](Json& d) { d["ops"][nth_op(d, "norm_stats")]["dst"]["element"] = 0; },
                {"that is no array"});
  check_refused([](Json& d) { d["ops"][nth_op(d, "load")]["hbm"]["tensor"] = -1; }, {".hbm.tensor is -1"});
  check_refused([](Json& d) { d["ops"][nth_op(d, "load")]["hbm"]["begin"] = {0}; }, {".hbm.begin[1] is -1"});
}

TEST_CASE("program json: what is out of range or breaks a tile rule is refused") {
  check_refused(
      [](Json& d) {
        d["exprs"].push_back({{"op", "constant"}, {"value", 4000}});
        d["ops"][nth_op(d, "load")]["hbm"]["begin"][1] = d["exprs"].size() - 1;
      },
      {".hbm.begin[1] takes 4 from 4000", "within [0, 16)"});
  check_refused(
      [](Json& d) {
        d["ops"][nth_op(d, "norm_stats")]["a"]["shape"] = {4, 9};
      },
      {".a.free takes 9 from 0", "within [0, 8)"});
  check_refused([](Json& d) { d["ops"][nth_op(d, "copy")]["a"]["step"] = 0; }, {".a.step is 0"});
  check_refused([](Json& d) { d["ops"][nth_op(d, "reduce")]["blocks"] = 0; }, {".blocks is 0"});
  check_refused([](Json& d) { d["ops"][nth_op(d, "activate")]["blocks"] = 7; }, {"interleave 7 of"});
  check_refused([](Json& d) { d["ops"][nth_op(d, "reduce")]["op0"] = "multiply"; }, {"add, max and min"});
  check_refused(
      [](Json& d) {
        d["ops"][nth_op(d, "matmul")]["b"]["shape"] = {4, 3};
      },
      {"stationary^T moving is [4, 3]"});
  check_refused([](Json& d) { d["tiles"][0]["dtype"] = "f16"; },
                {"breaks a tile rule", "must be [4, 8] bf16"});
  check_refused(
      [](Json& d) {
        d["exprs"].insert(d["exprs"].end(), {{{"op", "constant"}, {"value", 1LL << 40}},
                                             {{"op", "multiply"}, {"a", 23}, {"b", 23}}});
      },
      {"exprs[24] has values beyond 2^40"});
}

TEST_CASE("program json: what grows or nests without end is refused before it costs anything") {
  check_refused(
      [](Json& d) {  // 2^40 terms, written out
        for (int i = 0; i < 40; ++i) {
          const auto last = d["exprs"].size() - 1;
          d["exprs"].push_back({{"op", "max"}, {"a", last}, {"b", last}});
        }
      },
      {"parts", "allowed are 1000"});
  check_refused(
      [](Json& d) {
        for (int i = 0; i < 100; ++i) {
          d["loops"].push_back({{"begin", 0}, {"end", 1}});
          d["ops"].push_back({{"op", "loop"}, {"loop", 3 + i}});
        }
      },
      {"nested too deeply", "64"});
  const std::string deep = std::string(1 << 20, '[');
  CHECK_THROWS_WITH(nk::program_from_json(deep), contains_text("nested more than 8 deep"));
  for (const char* text :
       {"", "{", "nonsense", "{\"schema\": 1e999}", "\xff", "{\"schema\": 123456789012345678901}"})
    CHECK_THROWS_AS(nk::program_from_json(text), ProgramError);
}

TEST_CASE("program json: spans need the loop over their rest, and nothing else") {
  const Program program = recorded(nk::trn2, {{"x", DType::f32, {300, 8}}}, [](auto& nc, const auto& h) {
    for (auto t : nc.programs(300, 128)) nc.load("x", h[0].rows(t.begin, t.size));
  });
  const auto refused = [&](const auto& change, const std::string& part) {
    Program other = program;
    change(other);
    CHECK_THROWS_WITH(nk::validate(other), contains_text(part));
  };
  CHECK_NOTHROW(nk::validate(program));
  refused([](Program& p) { p.loops[1].kind = nk::record::LoopKind::tiles; }, "leaves a rest of 44");
  refused([](Program& p) { p.loops[0].step = 100; }, "covers 300 in steps of 100");
  refused([](Program& p) { p.loops[0].step = 0; }, "loops[0].step is 0");
  refused([](Program& p) { p.loops[0].first = 0; }, "loops[0].first is 0");
  refused([](Program& p) { p.loops[0].last = 1; }, "loops[0]");
}

}  // namespace
}  // namespace test
