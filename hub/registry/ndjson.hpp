// The body of a commit as it streams in: one JSON object per line, of which `content` may be very long.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "hub/digest.hpp"

namespace neuron_kernels::hub::registry {

/// Cuts a stream into lines. A line of a file's content is handed on in pieces, so that a gigabyte takes no
/// memory: the value of the string "content" is decoded from base64 as it comes, and left out of the line's
/// text.
class NdjsonReader {
 public:
  struct Handler {
    /// Bytes of the content of the line that is being read.
    std::function<void(Bytes)> content;
    /// A whole line, its content replaced by "". had_content: whether it held any.
    std::function<void(const std::string& line, bool had_content)> line;
  };

  explicit NdjsonReader(Handler handler) : handler_(std::move(handler)) {}

  /// Errors: HubError integrity for base64 that is none, or a line without its content of more than 1 MiB.
  void add(Bytes data);
  /// The end of the stream: a last line without a newline counts.
  void finish();

 private:
  enum class State { text, string, escape, content };
  void take(char c);
  void end_string();
  void end_line();
  void decode();

  Handler handler_;
  State state_ = State::text;
  std::string line_, string_, base64_;
  bool after_colon_ = false, content_is_next_ = false, had_content_ = false;
};

}  // namespace neuron_kernels::hub::registry
