// Reads a TOML document strictly: every key is asked for, and an error names file, line, key, and what is
// allowed.
#pragma once

#include <toml++/toml.h>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neuron_kernels::hub {

/// Parses a whole document. Errors: HubError usage "FILE:LINE: ..." for what TOML 1.0.0 does not allow.
toml::table parse_toml(std::string_view text, const std::string& file);

/// One table of a document and its place there.
class TableReader {
 public:
  /// place: dotted name for messages, empty for the top. Errors: a key outside `keys`.
  TableReader(const toml::table& table, std::string file, std::string place,
              std::span<const std::string_view> keys);
  TableReader(const toml::table& table, std::string file, std::string place,
              std::initializer_list<std::string_view> keys)
      : TableReader(table, std::move(file), std::move(place), std::span(keys.begin(), keys.size())) {}

  bool has(std::string_view key) const { return table_.contains(key); }
  std::string text(std::string_view key) const;                // required, not empty
  std::string optional_text(std::string_view key) const;       // absent: ""
  std::vector<std::string> texts(std::string_view key) const;  // required, not empty
  std::vector<std::string> optional_texts(std::string_view key) const;
  const toml::table* table(std::string_view key) const;   // absent: nullptr
  const toml::array* tables(std::string_view key) const;  // absent: nullptr
  std::int64_t integer(std::string_view key) const;       // required
  std::string place(std::string_view key) const;          // "package.name"
  const std::string& file() const { return file_; }

  /// Throws "FILE:LINE: KEY is GIVEN; allowed ALLOWED".
  [[noreturn]] void refuse(std::string_view key, std::string_view given, std::string_view allowed,
                           std::string_view hint = {}) const;
  /// The same about the value as it is written in the document.
  [[noreturn]] void refuse_value(std::string_view key, std::string_view allowed) const;

 private:
  const toml::node& required(std::string_view key, std::string_view type) const;

  const toml::table& table_;
  std::string file_, place_;
};

}  // namespace neuron_kernels::hub
