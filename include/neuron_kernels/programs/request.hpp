// Request: what `kernels check|profile|emit KERNEL --shape ... --dtype ...` hands to a kernel's program function.
//
// Such a function says which sizes the kernel has, by asking for them, makes its tensors and calls the kernel:
//     void scale_program(Recorder& nc, Request& request) {
//       const auto rows = request.size("rows", 4096, "rows of src"), n = request.size("n", 2048, "their length"); ...
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "neuron_kernels/record/recorder.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// A shape that a kernel does not have; what() is one sentence.
class RequestError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

class Request {
 public:
  /// What the function asked for.
  struct Parameter {
    std::string name, otherwise, help;  // otherwise: the value if none is given; "" for a flag
  };

  /// given: by name, from --shape; a flag has the value "".
  Request(DType dtype, std::map<std::string, std::string> given) : dtype_(dtype), given_(std::move(given)) {}

  DType dtype() const { return dtype_; }

  /// A size by name. Errors: RequestError unless it is within 1 and `most`.
  std::int64_t size(std::string_view name, std::int64_t otherwise, std::string_view help,
                    std::int64_t most = std::int64_t{1} << 31) {
    parameter(name, text(otherwise), help);
    const auto given = given_.find(std::string(name));
    if (given == given_.end()) return otherwise;
    const std::string& digits = given->second;
    if (digits.empty() || digits.size() > 12 || digits.find_first_not_of("0123456789") != digits.npos ||
        std::stoll(digits) < 1 || std::stoll(digits) > most) {
      throw RequestError(
          text("shape ", name, " is '", digits, "'; allowed are whole numbers from 1 to ", most));
    }
    return std::stoll(digits);
  }
  /// Whether a word is there. Errors: RequestError if it has a value.
  bool flag(std::string_view name, std::string_view help) {
    parameter(name, "", help);
    const auto given = given_.find(std::string(name));
    if (given != given_.end() && !given->second.empty())
      throw RequestError(
          text("shape ", name, " has the value '", given->second, "'; it is a word that is there or not"));
    return given != given_.end();
  }
  /// For MFU: what the result needs, where that is less than what the chip is asked for (a causal mask).
  void useful_flops(double flops) { useful_flops_ = flops; }
  /// For `kernels emit`: NumPy source of `def reference(...)`, which takes what the kernel reads and returns what
  /// it writes; see nki/emit.hpp.
  void reference(std::string source) { reference_ = std::move(source); }

  const std::vector<Parameter>& parameters() const { return parameters_; }
  double useful_flops() const { return useful_flops_; }
  const std::string& reference() const { return reference_; }

 private:
  void parameter(std::string_view name, std::string otherwise, std::string_view help) {
    parameters_.push_back({std::string(name), std::move(otherwise), std::string(help)});
  }

  DType dtype_;
  std::map<std::string, std::string> given_;
  std::vector<Parameter> parameters_;
  double useful_flops_ = 0;
  std::string reference_;
};

using ProgramFunction = void (*)(Recorder& nc, Request& request);

/// What a program function answered.
struct Answer {
  Program program;
  std::vector<Request::Parameter> parameters;
  double useful_flops = 0;
  std::string reference;
};

/// Adds "q_len=4096" or "causal" to what is given.
inline void add_word(std::map<std::string, std::string>& given, std::string_view word) {
  const std::size_t equals = word.find('=');
  const std::string_view value = equals == word.npos ? std::string_view() : word.substr(equals + 1);
  given[std::string(word.substr(0, equals))] = std::string(value);
}

/// "q_len=4096, causal"
inline std::string described(const std::vector<Request::Parameter>& parameters) {
  std::string s;
  for (const Request::Parameter& p : parameters)
    s += (s.empty() ? "" : ", ") + p.name + (p.otherwise.empty() ? "" : "=" + p.otherwise);
  return s.empty() ? "none" : s;
}

/// Records what `function` makes of the shape.
/// errors: RequestError on a name that it does not ask for, or a value that it does not take; what the kernel throws
inline Answer answer(ProgramFunction function, const Limits& limits, DType dtype,
                     const std::map<std::string, std::string>& given) {
  Request request(dtype, given);
  Recorder nc(limits);
  function(nc, request);
  const auto& all = request.parameters();
  for (const auto& word : given) {
    const std::string& name = word.first;
    if (std::none_of(all.begin(), all.end(), [&](const Request::Parameter& p) { return p.name == name; }))
      throw RequestError(text("shape '", name, "' is unknown; this kernel has ", described(all)));
  }
  return {nc.program(), request.parameters(), request.useful_flops(), request.reference()};
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
