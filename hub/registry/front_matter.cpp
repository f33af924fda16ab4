#include "hub/registry/front_matter.hpp"

#include <algorithm>

#include "hub/text.hpp"

namespace neuron_kernels::hub::registry {

namespace {

constexpr std::size_t most_values = 20, most_bytes = 60;  // of a list that is shown as labels, and of each

std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::string_view unquoted(std::string_view text) {
  text = trimmed(text);
  const bool quoted = text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

void add(std::vector<std::string>& values, std::string_view text) {
  const std::string_view value = unquoted(text);
  if (!value.empty() && value.size() <= most_bytes && values.size() < most_values) values.emplace_back(value);
}

/// "a", or "[a, b]"
void add_all(std::vector<std::string>& values, std::string_view text) {
  text = trimmed(text);
  if (!text.starts_with('[') || !text.ends_with(']')) return add(values, text);
  text = text.substr(1, text.size() - 2);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    add(values, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

FrontMatter read(std::string_view yaml) {
  std::vector<std::string> licenses, tags, *current = nullptr;
  while (!yaml.empty()) {
    const std::string_view line = take_line(yaml), item = trimmed(line);
    if (item.starts_with("- ")) {
      if (current != nullptr) add(*current, item.substr(2));
    } else if (!line.empty() && line[0] != ' ' && line[0] != '#') {
      const std::size_t colon = std::min(line.find(':'), line.size());
      const std::string_view key = line.substr(0, colon);
      current = key == "license" ? &licenses : key == "tags" ? &tags : nullptr;
      if (current != nullptr && colon < line.size()) add_all(*current, line.substr(colon + 1));
    }
  }
  FrontMatter found;
  found.license = joined(licenses);
  found.tags = std::move(tags);
  return found;
}

}  // namespace

FrontMatter take_front_matter(std::string_view& card) {
  std::string_view rest = card;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // byte order mark
  if (take_line(rest) != "---") return {};
  const std::string_view yaml = rest;
  while (!rest.empty()) {
    const std::size_t end = yaml.size() - rest.size();
    if (take_line(rest) == "---") {
      card = rest;
      return read(yaml.substr(0, end));
    }
  }
  return {};
}

}  // namespace neuron_kernels::hub::registry
