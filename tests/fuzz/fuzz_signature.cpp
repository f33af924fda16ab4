// Signature documents: any text is refused, as nobody is trusted.
#include <cstdlib>

#include "hub/signature.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::any_answer(data, size, [](std::string_view text) {
    neuron_kernels::hub::verify(text, {"p", "1.0.0", "v", {}}, "owner", {});
    std::abort();
  });
}
