// Programs as JSON: any text is a Program or a ProgramError; one that was read prints, is written as it was, is
// replayed, checked, timed and emitted, or refused by an error of the library.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <random>
#include <sstream>

#include "neuron_kernels/nki/emit.hpp"
#include "neuron_kernels/record/check.hpp"
#include "neuron_kernels/record/json.hpp"
#include "neuron_kernels/record/print.hpp"
#include "neuron_kernels/record/recorder.hpp"
#include "neuron_kernels/record/replay.hpp"
#include "neuron_kernels/record/schedule.hpp"
#include "neuron_kernels/sim/report.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace nk = neuron_kernels;

namespace {

/// f(), which may say that the Program breaks a rule.
template <class F>
void may_refuse(const F& f) {
  try {
    f();
  } catch (const nk::TileError&) {
  } catch (const nk::ShapeError&) {
  }
}

/// Whatever is short enough to time.
void time(const nk::Program& program) {
  const nk::record::Iterations iterations(program);
  double ops = 0;
  for (std::size_t i = 0; i < program.ops.size(); ++i) ops += iterations.of(i);
  if (ops < 1e5)
    nk::sim::to_json(nk::sim::simulate(program), program, nk::sim::parameters_for(program.chip).limits);
}

void use(const nk::Program& program) {
  if (!(nk::program_from_json(to_json(program)) == program)) std::abort();
  std::ostringstream out;
  print(program, out);
  if (program.chip != "host") {
    const nk::Limits limits = nk::sim::parameters_for(program.chip).limits;
    may_refuse([&] { nk::check(program, limits); });
    may_refuse([&] { nk::emit(program); });
    may_refuse([&] {
      const nk::Program scheduled = nk::schedule(program, limits);
      nk::validate(scheduled);
      time(scheduled);
      nk::emit(scheduled);
    });
    may_refuse([&] { time(program); });
  }
  may_refuse([&] {
    nk::Recorder nc(nk::trn2);
    std::vector<nk::Recorder::Hbm> tensors;
    for (const nk::record::Tensor& t : program.tensors)
      tensors.push_back(nc.hbm(t.name, t.dtype, std::span(t.shape).first(static_cast<std::size_t>(t.rank))));
    nk::replay(program, nc, std::span<const nk::Recorder::Hbm>(tensors));
  });
}

using Json = nk::record::Json;

/// All numbers, lists and objects below `json`.
void collect(Json& json, std::vector<Json*>& nodes) {
  nodes.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& child : json) collect(child, nodes);
}

/// One change that leaves a document of Program's form, more often than changed bytes would.
void change(Json& document, std::mt19937& random) {
  std::vector<Json*> nodes;
  collect(document, nodes);
  const auto any = [&] { return nodes[random() % nodes.size()]; };
  Json& one = *any();
  if (one.is_number_integer()) {
    const std::int64_t values[] = {0, 1, 2, -1, 128, std::int64_t{1} << 31, std::int64_t{1} << 40};
    const auto step = static_cast<std::int64_t>(random() % 9) - 4;
    one = random() % 4 == 0 ? values[random() % std::size(values)]
                            : (one.get<std::int64_t>() & 0xffffffff) + step;
  } else if (one.is_array() && !one.empty()) {
    const Json copy = one[random() % one.size()];
    if (random() % 2 == 0) one.erase(random() % one.size());
    if (random() % 2 == 0) one.push_back(copy);
  } else if (const Json copy = *any(); copy.type() == one.type()) {
    one = copy;
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  std::mt19937 random(seed);
  Json document = Json::parse(data, data + size, nullptr, false);
  if (document.is_discarded() || random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  for (unsigned i = 0; i <= random() % 4; ++i) change(document, random);
  const std::string text = document.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::any_answer(data, size, [](std::string_view text) {
    try {
      use(nk::program_from_json(text));
    } catch (const nk::ProgramError&) {
    }
  });
}
