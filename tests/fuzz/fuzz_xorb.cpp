// Xorbs: any bytes are chunks that unpack to what they name, or an error.
#include <cstdlib>

#include "hub/registry/xet.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::any_answer(data, size, [](std::string_view xorb) {
    using namespace neuron_kernels::hub::registry;
    for (const XorbChunk& chunk : parse_xorb(xorb)) {
      if (unpack_chunk(xorb.substr(chunk.offset, chunk.packed_bytes), chunk).size() != chunk.bytes)
        std::abort();
    }
  });
}
