// version.hpp repeats the version that kernel.toml holds.
#include <fstream>
#include <string>

#include "catch.hpp"
#include "neuron_kernels/version.hpp"

TEST_CASE("version.hpp equals kernel.toml") {
  std::ifstream manifest(NEURON_KERNELS_SOURCE_DIR "/kernel.toml");
  REQUIRE(manifest.is_open());
  const std::string key = "version = ";
  std::string found;
  for (std::string line; std::getline(manifest, line);) {
    if (line.starts_with(key)) found += line.substr(key.size());
  }
  CHECK(found == '"' + std::string(neuron_kernels::version) + '"');
}
