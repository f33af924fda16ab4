// Lines of Python as a formatter would leave them: calls that are too long are broken at their arguments.
#pragma once

#include <string>
#include <vector>

#include "neuron_kernels/core/error.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace nki {

inline constexpr std::size_t line_length = 120;

class Lines {
 public:
  void indent() { margin_ += 4; }
  void dedent() { margin_ -= 4; }
  const std::string& text_so_far() const { return out_; }

  void line(const std::string& s) { out_ += s.empty() ? "\n" : std::string(margin_, ' ') + s + "\n"; }

  /// `head(arguments)end`, with the comment behind it or, where there is no room, on a line of its own before it.
  void call(const std::string& head, const std::vector<std::string>& arguments,
            const std::string& comment = "", const std::string& end = "") {
    std::string joined;
    for (const std::string& a : arguments) joined += (joined.empty() ? "" : ", ") + a;
    const std::string whole = head + "(" + joined + ")" + end;
    const std::string note = comment.empty() ? "" : "# " + comment;
    const bool fits = margin_ + whole.size() <= line_length;
    if (fits && (note.empty() || margin_ + whole.size() + 2 + note.size() <= line_length))
      return line(note.empty() ? whole : whole + "  " + note);
    if (!note.empty()) line(note);
    if (fits) return line(whole);
    line(head + "(");
    indent();
    if (margin_ + joined.size() <= line_length) {
      line(joined);
    } else {
      for (const std::string& a : arguments) line(a + ",");
    }
    dedent();
    line(")" + end);
  }

 private:
  std::string out_;
  std::size_t margin_ = 0;
};

}  // namespace nki
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
