// What the fuzz programs share: any input gives a value or a HubError, nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hub/error.hpp"

namespace fuzz {

/// Calls read(text); a HubError is an answer, any other exception ends the program as a finding.
template <class Read>
int any_answer(const std::uint8_t* data, std::size_t size, const Read& read) {
  try {
    read(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const neuron_kernels::hub::HubError&) {
  }
  return 0;
}

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
