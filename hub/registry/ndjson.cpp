#include "hub/registry/ndjson.hpp"

#include "hub/error.hpp"

namespace neuron_kernels::hub::registry {

namespace {
constexpr std::size_t longest_line = 1 << 20, piece = 4 << 14;  // of base64, a multiple of 4
}

void NdjsonReader::add(Bytes data) {
  for (const std::byte b : data) take(static_cast<char>(b));
}

void NdjsonReader::take(char c) {
  switch (state_) {
    case State::content:
      if (c == '"') {
        decode();
        state_ = State::text;
        line_ += '"';
        content_is_next_ = false;
      } else if (c == '\\') {
        throw HubError(ErrorKind::integrity, "the content of a file holds an escape; base64 has none");
      } else {
        base64_ += c;
        if (base64_.size() == piece) decode();
      }
      return;
    case State::escape:
      line_ += c;
      string_ += c;
      state_ = State::string;
      break;
    case State::string:
      line_ += c;
      if (c == '\\') {
        state_ = State::escape;
      } else if (c == '"') {
        end_string();
      } else {
        string_ += c;
      }
      break;
    case State::text:
      if (c == '\n') return end_line();
      line_ += c;
      if (c == '"') {
        if (content_is_next_ && after_colon_) {
          state_ = State::content;
          had_content_ = true;
        } else {
          state_ = State::string;
          string_.clear();
        }
        after_colon_ = false;
      } else if (c == ':') {
        after_colon_ = true;
      } else if (c != ' ' && c != '\t' && c != '\r') {
        after_colon_ = content_is_next_ = false;
      }
      break;
  }
  if (line_.size() > longest_line) {
    throw HubError(ErrorKind::integrity,
                   "a line of the commit is longer than 1 MiB beside the content of its file");
  }
}

void NdjsonReader::end_string() {
  state_ = State::text;
  content_is_next_ = string_ == "content" && !after_colon_;
}

void NdjsonReader::decode() {
  if (!base64_.empty()) {
    const std::string raw = from_base64(base64_);
    if (handler_.content) handler_.content(bytes_of(raw));
  }
  base64_.clear();
}

void NdjsonReader::end_line() {
  const bool blank = line_.find_first_not_of(" \t\r") == line_.npos;
  if (!blank) handler_.line(line_, had_content_);
  line_.clear();
  after_colon_ = content_is_next_ = had_content_ = false;
}

void NdjsonReader::finish() {
  if (state_ != State::text) throw HubError(ErrorKind::integrity, "the commit ends within a line");
  end_line();
}

}  // namespace neuron_kernels::hub::registry
