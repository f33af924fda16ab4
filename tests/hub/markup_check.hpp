// What the markup of a card may hold, whatever the card says: shared by the unit tests and the fuzz program.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace test {

inline bool is_one_of(std::string_view word, std::string_view words) {
  return !word.empty() && word.find_first_of(" <>\"'&") == word.npos &&
         (" " + std::string(words) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

/// href leads to web and mail, src to a file of the repository at /kernels/o/n.
inline bool is_safe_attribute(std::string_view name, std::string_view value) {
  if (value.find_first_of("<>\"") != value.npos) return false;
  if (name == "src") return value.starts_with("/kernels/o/n/resolve/main/");
  if (name != "href") return is_one_of(name, "class tabindex id alt title align start type checked disabled");
  std::string lower(value.substr(0, 7));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower.starts_with("http:") || lower.starts_with("https:") || lower == "mailto:" ||
         lower.starts_with('/') || lower.starts_with('#');
}

/// The first tag of `markup` that is not allowed in a card; empty if there is none.
inline std::string forbidden_tag(std::string_view markup) {
  constexpr std::string_view tags =
      "p h2 h3 h4 h5 h6 a em strong del code pre blockquote ul ol li hr br img table thead tbody tr th td "
      "input div";
  for (std::size_t begin = markup.find('<'); begin != markup.npos; begin = markup.find('<', begin)) {
    const std::size_t end = markup.find('>', begin);
    if (end == markup.npos) return std::string(markup.substr(begin));
    std::string_view tag = markup.substr(begin + 1, end - begin - 1);
    const std::string whole(markup.substr(begin, end + 1 - begin));
    begin = end;
    if (tag.starts_with('/')) tag.remove_prefix(1);
    if (tag.ends_with(" /")) tag.remove_suffix(2);
    const std::size_t name_end = std::min(tag.find(' '), tag.size());
    if (!is_one_of(tag.substr(0, name_end), tags)) return whole;
    tag.remove_prefix(name_end);
    while (!tag.empty()) {  // ' name="value"'
      const std::size_t equals = tag.find("=\"");
      const std::size_t close = equals != tag.npos ? tag.find('"', equals + 2) : tag.npos;
      if (close == tag.npos || tag[0] != ' ') return whole;
      if (!is_safe_attribute(tag.substr(1, equals - 1), tag.substr(equals + 2, close - equals - 2)))
        return whole;
      tag.remove_prefix(close + 1);
    }
  }
  return {};
}

}  // namespace test
