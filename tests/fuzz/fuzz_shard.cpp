// Shards: any bytes are a list of files or an error.
#include "hub/registry/xet.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::any_answer(data, size, [](std::string_view shard) {
    static_cast<void>(neuron_kernels::hub::registry::parse_shard(shard));
  });
}
