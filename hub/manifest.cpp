#include "hub/manifest.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/repository.hpp"
#include "hub/text.hpp"
#include "hub/toml_reader.hpp"

namespace neuron_kernels::hub {
namespace {

constexpr std::string_view lower = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::string_view digits = "0123456789";
constexpr std::array<std::string_view, 3> dtype_names{"f32", "bf16", "f16"};
constexpr std::array<std::string_view, 3> chip_names{"trn1", "trn2", "trn3"};
constexpr std::array<std::string_view, 3> python_packages{"einops", "helion",
                                                          "tvm-ffi"};  // get_kernel's list

bool consists_of(std::string_view text, std::initializer_list<std::string_view> sets) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return std::any_of(sets.begin(), sets.end(),
                       [&](std::string_view set) { return set.find(c) != set.npos; });
  });
}

bool is_identifier(std::string_view text) {
  return !text.empty() && digits.find(text.front()) == digits.npos &&
         consists_of(text, {lower, upper, digits, "_"});
}

bool is_qualified_name(std::string_view text) {  // a::b::c
  while (true) {
    const std::size_t end = text.find("::");
    if (!is_identifier(text.substr(0, end))) return false;
    if (end == text.npos) return true;
    text.remove_prefix(end + 2);
  }
}

std::string in_quotes(std::string_view text) { return "'" + std::string(text.substr(0, 200)) + "'"; }

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (const std::size_t at = upper.find(c); at != upper.npos) c = lower[at];
  }
  return text;
}

std::string checked_path(const TableReader& table, std::string_view key, std::string path) {
  try {
    require_safe_path(path, table.file());
  } catch (const HubError&) {
    table.refuse(key, in_quotes(path), "a relative path with '/' that stays in the package's folder");
  }
  return path;
}

enum class Stars : bool { no, yes };

std::vector<std::string> checked_paths(const TableReader& table, std::string_view key, Stars stars) {
  std::vector<std::string> paths = stars == Stars::yes ? table.texts(key) : table.optional_texts(key);
  for (const std::string& path : paths) {
    checked_path(table, key, path);
    const std::size_t star = path.find('*'), last = path.rfind('/');
    if (star == path.npos) continue;
    if (stars == Stars::no) table.refuse(key, in_quotes(path), "folders without '*'");
    if (last != path.npos && star < last)
      table.refuse(key, in_quotes(path), "'*' in the last part of a path only");
  }
  return paths;
}

std::vector<std::string> checked_names(const TableReader& table, std::string_view key,
                                       std::span<const std::string_view> allowed) {
  std::vector<std::string> names = table.optional_texts(key);
  const std::string list = joined(allowed);
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (std::find(allowed.begin(), allowed.end(), name) == allowed.end()) {
      table.refuse(key, in_quotes(name), "each of " + list);
    }
    if (!seen.insert(name).second) table.refuse(key, in_quotes(name) + " twice", "each of " + list + " once");
  }
  return names;
}

void read_package(const TableReader& top, Manifest& manifest) {
  const toml::table* node = top.table("package");
  if (node == nullptr) top.refuse("package", "missing", "a table, [package], with name, version and license");
  const TableReader package(*node, top.file(), "package",
                            {"name", "version", "license", "description", "repository"});
  manifest.name = package.text("name");
  if (!is_package_name(manifest.name)) {
    package.refuse(
        "name", in_quotes(manifest.name),
        "lower-case letters, digits and '-', from a letter to a letter or digit, 2 to 64 characters");
  }
  const std::string version = package.text("version");
  if (const auto parsed = Version::parse(version)) {
    manifest.version = *parsed;
  } else {
    package.refuse("version", in_quotes(version), "a version MAJOR.MINOR.PATCH (semver.org), such as 1.0.0");
  }
  manifest.license = package.text("license");
  if (!consists_of(manifest.license, {lower, upper, digits, " .+-()"})) {
    package.refuse("license", in_quotes(manifest.license), "an SPDX expression, such as Apache-2.0");
  }
  manifest.description = package.optional_text("description");
  if (manifest.description.find_first_of("\r\n") != std::string::npos) {
    package.refuse("description", "of several lines", "one line");
  }
  manifest.repository = package.optional_text("repository");
  if (!manifest.repository.empty() && !manifest.repository.starts_with("https://")) {
    package.refuse("repository", in_quotes(manifest.repository), "a URL that begins by https://");
  }
}

Manifest::Kernel read_kernel(const toml::table& node, const std::string& file) {
  const TableReader table(node, file, "kernel",
                          {"name", "header", "entry", "dtypes", "chips", "program", "program-header"});
  Manifest::Kernel kernel;
  kernel.name = table.text("name");
  if (!is_identifier(kernel.name)) {
    table.refuse("name", in_quotes(kernel.name), "an identifier: letters, digits and '_', no digit first");
  }
  kernel.header = checked_path(table, "header", table.text("header"));
  kernel.entry = table.text("entry");
  if (!is_qualified_name(kernel.entry)) {
    table.refuse("entry", in_quotes(kernel.entry), "a qualified C++ name, such as my_package::scale");
  }
  kernel.dtypes = checked_names(table, "dtypes", dtype_names);
  kernel.chips = checked_names(table, "chips", chip_names);
  kernel.program = table.optional_text("program");
  if (!kernel.program.empty() && !is_qualified_name(kernel.program)) {
    table.refuse("program", in_quotes(kernel.program),
                 "a qualified C++ name, such as my_package::scale_program");
  }
  kernel.program_header = kernel.header;
  if (table.has("program-header")) {
    if (kernel.program.empty()) table.refuse("program-header", "given without program", "both or none");
    kernel.program_header = checked_path(table, "program-header", table.text("program-header"));
  }
  return kernel;
}

Manifest::TorchVariant read_torch(const toml::table& node, const std::string& file) {
  const TableReader table(node, file, "variants.torch",
                          {"package", "sources", "include", "abi", "python-depends"});
  Manifest::TorchVariant torch;
  torch.package = checked_path(table, "package", table.text("package"));
  torch.sources = checked_paths(table, "sources", Stars::yes);
  torch.include = checked_paths(table, "include", Stars::no);
  torch.python_depends = checked_names(table, "python-depends", python_packages);
  if (table.has("abi")) {
    const std::string abi = table.text("abi");
    const std::string_view minor = std::string_view(abi).substr(std::min<std::size_t>(2, abi.size()));
    if (!abi.starts_with("2.") || minor.empty() || minor.size() > 2 || !consists_of(minor, {digits}) ||
        minor.front() == '0' || std::stoi(std::string(minor)) < 9) {
      table.refuse("abi", in_quotes(abi), "the lowest PyTorch version, from \"2.9\" on, as a string");
    }
    torch.abi_minor = std::stoi(std::string(minor));
  }
  return torch;
}

void read_variants(const TableReader& top, Manifest& manifest) {
  const toml::table* node = top.table("variants");
  if (node == nullptr) return;
  const TableReader variants(*node, top.file(), "variants", {"header", "torch", "c"});
  if (const toml::table* header = variants.table("header")) {
    const TableReader table(*header, top.file(), "variants.header", {"include"});
    manifest.header = Manifest::HeaderVariant{checked_path(table, "include", table.text("include"))};
  }
  if (const toml::table* torch = variants.table("torch")) manifest.torch = read_torch(*torch, top.file());
  if (const toml::table* c = variants.table("c")) {
    const TableReader table(*c, top.file(), "variants.c", {"header", "sources", "include"});
    manifest.c = Manifest::CVariant{checked_path(table, "header", table.text("header")),
                                    checked_paths(table, "sources", Stars::yes),
                                    checked_paths(table, "include", Stars::no)};
  }
}

// An integer N is the branch vN: every version with that major number.
Range read_range(const TableReader& table, std::string_view repository, const toml::node& node) {
  constexpr std::string_view allowed =
      "a version range in quotes, such as \"^1.2\", or a whole number such as 1";
  if (const auto number = node.value_exact<std::int64_t>()) {
    if (*number < 0 || *number > Version::max_number) table.refuse_value(repository, allowed);
    return Range::parse("=" + std::to_string(*number));
  }
  const auto text = node.value_exact<std::string>();
  if (!text) table.refuse_value(repository, allowed);
  try {
    return Range::parse(*text);
  } catch (const HubError& error) {
    table.refuse(repository, in_quotes(*text), allowed, error.hint);
  }
}

void read_dependencies(const TableReader& top, Manifest& manifest) {
  const toml::table* node = top.table("dependencies");
  if (node == nullptr) return;
  std::vector<std::string_view> keys;
  for (const auto& [key, value] : *node) keys.push_back(key.str());
  const TableReader table(*node, top.file(), "dependencies", keys);
  std::set<std::string> seen;
  for (const auto& [key, value] : *node) {
    const std::string repository(key.str());
    if (!is_repository_name(repository)) {
      table.refuse(repository, "not a repository", "\"owner/name\" in quotes",
                   "write: \"owner/name\" = \"^1.0\"");
    }
    if (!seen.insert(lower_case(repository)).second) {
      table.refuse(repository, "named a second time in another case", "each repository once");
    }
    manifest.dependencies.push_back({repository, read_range(table, repository, value)});
  }
}

void require_unique_kernels(const TableReader& top, const Manifest& manifest) {
  std::set<std::string> seen;
  for (const Manifest::Kernel& kernel : manifest.kernels) {
    if (!seen.insert(kernel.name).second) {
      top.refuse("kernel", "given twice with name '" + kernel.name + "'", "each name once");
    }
  }
}

}  // namespace

Manifest Manifest::parse(std::string_view text, const std::string& file) {
  const toml::table document = parse_toml(text, file);
  const TableReader top(document, file, "", {"schema", "package", "kernel", "variants", "dependencies"});
  if (top.integer("schema") != 1) {
    top.refuse("schema", std::to_string(top.integer("schema")), "1",
               "a newer schema needs a newer `kernels`");
  }
  Manifest manifest;
  read_package(top, manifest);
  if (const toml::array* kernels = top.tables("kernel")) {
    for (const toml::node& node : *kernels) manifest.kernels.push_back(read_kernel(*node.as_table(), file));
  }
  require_unique_kernels(top, manifest);
  read_variants(top, manifest);
  read_dependencies(top, manifest);
  return manifest;
}

Manifest Manifest::read(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / file_name;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw HubError(ErrorKind::not_found, "no " + std::string(file_name) + " in '" + folder.string() + "'",
                   "name a package's folder, or make one by: kernels new NAME");
  }
  return parse(read_file(path), path.string());
}

std::string Manifest::identifier() const {
  std::string text = name;
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

bool is_repository_name(std::string_view text) {
  try {
    return parse_repo_id(text).text() == text;
  } catch (const HubError&) {
    return false;
  }
}

bool is_package_name(std::string_view text) {
  return text.size() >= 2 && text.size() <= 64 && lower.find(text.front()) != lower.npos &&
         text.back() != '-' && consists_of(text, {lower, digits, "-"});
}

}  // namespace neuron_kernels::hub
