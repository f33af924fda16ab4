// kernel.toml: any text is a manifest or an error that names file and line.
#include "hub/manifest.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::any_answer(data, size, [](std::string_view text) {
    static_cast<void>(neuron_kernels::hub::Manifest::parse(text));
  });
}
