// The two errors of the library:
// TileError (a kernel broke a tile rule) and ShapeError (a caller's tensors do not fit).
//
// Texts read "where: what was given, what is allowed; what to do" and always hold actual and expected values.
#pragma once

#include <concepts>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

#include "neuron_kernels/core/abi.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// Where in a kernel an op stands; the last, defaulted parameter of every tile op.
/// (clang 14 cannot read the std::source_location of libstdc++ 12.)
class Where {
 public:
  static constexpr Where current(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
  constexpr const char* file_name() const { return file_; }
  constexpr int line() const { return line_; }

 private:
  constexpr Where(const char* file, int line) : file_(file), line_(line) {}

  const char* file_;
  int line_;
};

/// A kernel author broke a tile rule; what() starts with file:line of the op.
class TileError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// A caller's tensors do not fit together or are not supported; what() names call and argument.
class ShapeError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Appends one part of a message.
// Not by way of std::ostringstream, which costs a user a second of compile time, and not by std::to_string:
// libstdc++ 14 keeps its body in each unit, where the linker may pick that of another -march.
inline void append(std::string& s, std::string_view part) { s.append(part.data(), part.size()); }
inline void append(std::string& s, std::integral auto part) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(part));
  s += digits;
}
inline void append(std::string& s, std::floating_point auto part) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%g", static_cast<double>(part));
  s += digits;
}

/// Concatenates the parts: text("f ", 3, " > ", 2) is "f 3 > 2".
template <class... Part>
[[gnu::noinline, gnu::cold]] std::string text(const Part&... parts) {
  std::string s;
  (append(s, parts), ...);
  return s;
}

/// Throws TileError "flash_attention.hpp:31 matmul: ...".
[[noreturn]] inline void tile_error(const Where& where, std::string_view op, std::string_view message) {
  std::string_view file = where.file_name();
  if (const auto slash = file.find_last_of('/'); slash != file.npos) file.remove_prefix(slash + 1);
  throw TileError(text(file, ":", where.line(), " ", op, ": ", message));
}

/// Throws ShapeError "flash_attention: argument k: ...".
[[noreturn]] inline void shape_error(std::string_view call, std::string_view argument,
                                     std::string_view message) {
  throw ShapeError(text(call, ": argument ", argument, ": ", message));
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
