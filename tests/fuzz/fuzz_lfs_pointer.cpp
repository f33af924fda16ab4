// LFS pointers: a text is a pointer only if the pointer's own text is the same.
#include <cstdlib>

#include "hub/registry/git_repository.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::any_answer(data, size, [](std::string_view text) {
    const auto pointer = neuron_kernels::hub::registry::LfsPointer::parse(text);
    if (pointer && pointer->text() != text) std::abort();
  });
}
