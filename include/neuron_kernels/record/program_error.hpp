// ProgramError: a Program from outside that is not one, and the text that says so.
#pragma once

#include <stdexcept>
#include <string>

#include "neuron_kernels/core/error.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// what() is one sentence: field, what was given, what is allowed; what to do.
class ProgramError : public std::invalid_argument {
 public:
  ProgramError(std::string at, const std::string& message)
      : std::invalid_argument("program: " + (at.empty() ? "" : at + " ") + message), field(std::move(at)) {}

  std::string field;  // "ops[12].a.element"; empty for the whole
};

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
