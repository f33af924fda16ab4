#include "hub/toml_reader.hpp"

#include <sstream>

#include "hub/error.hpp"
#include "hub/text.hpp"

namespace neuron_kernels::hub {
namespace {

constexpr std::size_t longest_value = 200;  // of a value that an error repeats

std::string position(const std::string& file, const toml::source_region& where) {
  return file + ":" + std::to_string(where.begin.line) + ": ";
}

std::string written(const toml::node& node) {
  if (node.is_table()) return "a table";
  std::ostringstream stream;
  node.visit([&](const auto& value) {
    if constexpr (!toml::is_table<decltype(value)>) stream << toml::toml_formatter(value);
  });
  std::string text = stream.str();
  if (text.size() > longest_value) text = text.substr(0, longest_value) + "...";
  return text;
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    throw HubError(ErrorKind::usage, position(file, error.source()) + std::string(error.description()),
                   "the file must be TOML 1.0.0 in UTF-8; see toml.io");
  }
}

TableReader::TableReader(const toml::table& table, std::string file, std::string place,
                         std::span<const std::string_view> keys)
    : table_(table), file_(std::move(file)), place_(std::move(place)) {
  for (const auto& [key, value] : table) {
    bool known = false;
    for (const std::string_view allowed : keys) known = known || allowed == key.str();
    if (known) continue;
    throw HubError(ErrorKind::usage,
                   position(file_, key.source()) + "unknown key '" + this->place(key.str()) +
                       "'; allowed are " + joined(keys),
                   "correct its spelling or remove it");
  }
}

std::string TableReader::place(std::string_view key) const {
  return (place_.empty() ? "" : place_ + ".") + std::string(key);
}

void TableReader::refuse(std::string_view key, std::string_view given, std::string_view allowed,
                         std::string_view hint) const {
  const toml::node* node = table_.get(key);
  throw HubError(ErrorKind::usage,
                 position(file_, node != nullptr ? node->source() : table_.source()) + place(key) + " is " +
                     std::string(given) + "; allowed is " + std::string(allowed),
                 std::string(hint));
}

void TableReader::refuse_value(std::string_view key, std::string_view allowed) const {
  const toml::node* node = table_.get(key);
  refuse(key, node != nullptr ? written(*node) : "missing", allowed);
}

const toml::node& TableReader::required(std::string_view key, std::string_view type) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr)
    refuse(key, "missing", type, "add it to " + (place_.empty() ? file_ : "[" + place_ + "]"));
  return *node;
}

std::string TableReader::text(std::string_view key) const {
  constexpr std::string_view type = "a string that is not empty";
  const auto value = required(key, type).value_exact<std::string>();
  if (!value || value->empty()) refuse_value(key, type);
  return *value;
}

std::string TableReader::optional_text(std::string_view key) const { return has(key) ? text(key) : ""; }

std::vector<std::string> TableReader::texts(std::string_view key) const {
  constexpr std::string_view type = "an array of strings that is not empty";
  const toml::array* array = required(key, type).as_array();
  if (array == nullptr || array->empty()) refuse_value(key, type);
  std::vector<std::string> values;
  for (const toml::node& node : *array) {
    const auto value = node.value_exact<std::string>();
    if (!value || value->empty()) refuse_value(key, type);
    values.push_back(*value);
  }
  return values;
}

std::vector<std::string> TableReader::optional_texts(std::string_view key) const {
  return has(key) ? texts(key) : std::vector<std::string>{};
}

const toml::table* TableReader::table(std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (node != nullptr && !node->is_table()) refuse_value(key, "a table, [" + place(key) + "]");
  return node != nullptr ? node->as_table() : nullptr;
}

const toml::array* TableReader::tables(std::string_view key) const {
  const toml::node* node = table_.get(key);
  if (node == nullptr) return nullptr;
  const toml::array* array = node->as_array();
  const std::string type = "an array of tables, [[" + place(key) + "]]";
  if (array == nullptr) refuse_value(key, type);
  for (const toml::node& element : *array) {
    if (!element.is_table()) refuse_value(key, type);
  }
  return array;
}

std::int64_t TableReader::integer(std::string_view key) const {
  constexpr std::string_view type = "an integer";
  const auto value = required(key, type).value_exact<std::int64_t>();
  if (!value) refuse_value(key, type);
  return *value;
}

}  // namespace neuron_kernels::hub
