// The library's kernels as programs by name: each records fast, replays, schedules into what validates, and says what is
// wrong with a shape.
#include "neuron_kernels/programs/bundled.hpp"

#include <chrono>

#include "neuron_kernels/programs/driver.hpp"
#include "neuron_kernels/record/json.hpp"
#include "neuron_kernels/record/schedule.hpp"
#include "recording.hpp"

namespace test {
namespace {

using Words = std::map<std::string, std::string>;
using nk::RequestError;

nk::ProgramFunction named(const std::string& name) {
  for (const nk::programs::Bundled& b : nk::programs::bundled) {
    if (b.name == name) return b.function;
  }
  FAIL("no kernel " << name);
  return nullptr;
}

TEST_CASE("programs: every kernel at model size records in 10 ms, replays and schedules, for every chip") {
  for (const nk::programs::Bundled& kernel : nk::programs::bundled) {
    for (const nk::Limits* limits : nk::sim::chips) {
      INFO(kernel.name << " on " << limits->chip);
      double best_ms = 1e9;
      nk::Answer answer;
      for (int i = 0; i < 5; ++i) {
        const auto start = std::chrono::steady_clock::now();
        answer = nk::answer(kernel.function, *limits, DType::bf16, {});
        best_ms = std::min(
            best_ms,
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
      }
#ifdef __OPTIMIZE__
      CHECK(best_ms < 10);
#endif
      CHECK_FALSE(answer.parameters.empty());
      CHECK(rerecorded(answer.program, *limits) == answer.program);
      const Program scheduled = nk::schedule(answer.program, *limits);
      CHECK_NOTHROW(nk::validate(scheduled));
      CHECK(nk::program_from_json(to_json(scheduled)) == scheduled);
    }
  }
}

TEST_CASE("programs: sizes are taken by name") {
  const nk::Answer answer =
      nk::answer(named("matmul"), nk::trn2, DType::f32, Words{{"m", "5"}, {"n", "7"}, {"k", "3"}});
  CHECK(answer.program.tensors[0].shape == std::array<std::int64_t, 4>{1, 1, 5, 3});
  CHECK(answer.program.tensors[2].shape == std::array<std::int64_t, 4>{1, 1, 5, 7});
  CHECK(answer.program.tensors[0].dtype == DType::f32);
  CHECK(nk::described(answer.parameters) == "m=4096, n=8192, k=8192, batch=1");

  const Words causal{{"q_len", "3"}, {"kv_len", "5"}, {"d", "2"}, {"causal", ""}};
  const nk::Answer attention = nk::answer(named("flash_attention"), nk::trn2, DType::bf16, causal);
  CHECK(attention.useful_flops == 4.0 * 2 * (3 + 4 + 5));  // query i sees i + 3 keys
}

TEST_CASE("programs: a shape that a kernel does not have is an error in words") {
  const auto refused = [](const char* kernel, DType dtype, const Words& words, const std::string& text) {
    CHECK_THROWS_WITH(nk::answer(named(kernel), nk::trn2, dtype, words), contains_text(text));
    CHECK_THROWS_AS(nk::answer(named(kernel), nk::trn2, dtype, words), RequestError);
  };
  refused("matmul", DType::f32, {{"q", "1"}}, "shape 'q' is unknown; this kernel has m=4096, n=8192");
  for (const char* value : {"0", "-1", "", "1.5", "2147483649", "99999999999999999999"})
    refused("matmul", DType::f32, {{"m", value}},
            nk::text("shape m is '", value, "'; allowed are whole numbers"));
  refused("flash_attention", DType::f32, {{"causal", "no"}}, "shape causal has the value 'no'");
  refused("flash_attention", DType::f32, {{"heads", "3"}, {"kv_heads", "2"}}, "a multiple of kv_heads");
  refused("flash_attention", DType::f32, {{"kv_len", "5"}, {"causal", ""}},
          "at least as many keys as queries");
  refused("flash_attention_shared_shift", DType::f16, {}, "dtype is f16");
}

TEST_CASE("programs: an answer as JSON holds its program") {
  const nk::Answer answer = nk::answer(named("flash_attention"), nk::trn2, DType::bf16, {{"causal", ""}});
  const nk::record::Json document = nk::record::parsed(to_json(answer));
  CHECK(nk::record::program_of(document["program"]) == answer.program);
  CHECK(std::abs(document["useful_flops"].get<double>() / answer.useful_flops - 1) < 1e-6);
  CHECK(document["reference"] == answer.reference);
  REQUIRE(document["parameters"].size() == answer.parameters.size());
  CHECK(document["parameters"][0]["name"] == answer.parameters[0].name);
  CHECK(document["parameters"][0]["otherwise"] == answer.parameters[0].otherwise);
}

}  // namespace
}  // namespace test
