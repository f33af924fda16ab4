// The body of a commit: any bytes are lines or an error, the same ones in whichever pieces they come.
#include <cstdlib>

#include "hub/registry/ndjson.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace {

std::string read(std::string_view text, std::size_t step) {
  std::string seen;
  neuron_kernels::hub::registry::NdjsonReader reader(
      {[&](neuron_kernels::hub::Bytes piece) {
         seen.append(reinterpret_cast<const char*>(piece.data()), piece.size());
       },
       [&](const std::string& line, bool had_content) { seen += line + (had_content ? "\n+" : "\n-"); }});
  for (std::size_t i = 0; i < text.size(); i += step) {
    reader.add(neuron_kernels::hub::bytes_of(text.substr(i, step)));
  }
  reader.finish();
  return seen;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::any_answer(data, size, [](std::string_view text) {
    if (read(text, 1) != read(text, text.size() + 1)) std::abort();
  });
}
