#include "hub/registry/html.hpp"

#include "hub/registry/utf8.hpp"
#include "hub/url.hpp"

namespace neuron_kernels::hub::registry {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

/// What stands for a character of one byte; empty: itself.
std::string_view entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    case '\n':
    case '\t':
      return {};
    default:
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? replacement : std::string_view();
  }
}

}  // namespace

Address Address::of(std::initializer_list<std::string_view> parts) {
  Address address;
  for (const std::string_view part : parts) address = address / part;
  return address;
}

Address Address::operator/(std::string_view part) const {
  Address longer = *this;
  if (!longer.text_.ends_with('/')) longer.text_ += '/';
  longer.text_ += encode_segment(part);
  return longer;
}

Address Address::below(std::string_view path) const {
  Address longer = *this;
  if (!path.empty()) longer.text_ += "/" + encode_path(path);
  return longer;
}

Address Address::with(Parameters parameters) const {
  Address longer = *this;
  char separator = '?';
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    longer.text_ += separator + encode_segment(name) + "=" + encode_segment(value);
    separator = '&';
  }
  return longer;
}

void FormWriter::to_next_place() {
  const std::size_t place = form_.find("{}");
  markup_ += form_.substr(0, place);
  form_.remove_prefix(place + 2);
}

void FormWriter::put(std::string_view value) {
  to_next_place();
  while (!value.empty()) {
    const std::size_t length = utf8_length(value);
    const std::string_view entity = length == 1 ? entity_of(value[0]) : std::string_view();
    markup_ += length == 0 ? replacement : entity.empty() ? value.substr(0, length) : entity;
    value.remove_prefix(length == 0 ? 1 : length);
  }
}

void FormWriter::put(const Html& value) {
  to_next_place();
  markup_ += value.markup_;
}

Html FormWriter::finish() {
  markup_ += form_;
  return Html(std::move(markup_));
}

}  // namespace neuron_kernels::hub::registry
