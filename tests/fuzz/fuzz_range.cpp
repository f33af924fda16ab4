// Version ranges: any text is a range or an error; the text of a range reads as a range of the same text.
#include <cstdlib>

#include "hub/version.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::any_answer(data, size, [](std::string_view text) {
    using neuron_kernels::hub::Range;
    const std::string written = Range::parse(text).text();
    if (Range::parse(written).text() != written) std::abort();
  });
}
