// kernel.lock: any text is a lock or an error; a lock that was read writes a text that reads as the same lock.
#include <cstdlib>

#include "hub/lock.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::any_answer(data, size, [](std::string_view text) {
    using neuron_kernels::hub::Lock;
    const std::string written = Lock::parse(text).text();
    if (Lock::parse(written).text() != written) std::abort();
  });
}
