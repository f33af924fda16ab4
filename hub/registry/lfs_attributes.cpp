#include "hub/registry/lfs_attributes.hpp"

#include <git2/sys/repository.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "hub/registry/libgit2.hpp"

namespace neuron_kernels::hub::registry {

using namespace libgit2;

namespace {

constexpr const char* attributes_name = ".gitattributes";
constexpr std::string_view to_lfs = " filter=lfs diff=lfs merge=lfs -text";
constexpr std::string_view to_git = " !filter !diff !merge !text";

bool is_attributes_file(std::string_view path) {
  return path == attributes_name || path.ends_with("/.gitattributes");
}

/// The pattern that only `path` fits. As git-lfs writes it: a blank would end the pattern.
std::string pattern_of(std::string_view path) {
  std::string pattern = "/";
  for (const char c : path) {
    if (c == ' ') {
      pattern += "[[:space:]]";
      continue;
    }
    if (std::strchr("*?[\\", c) != nullptr) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

std::string root_attributes(git_repository* repository, git_index* index) {
  const git_index_entry* entry = git_index_get_bypath(index, attributes_name, 0);
  const Blob blob = entry != nullptr ? lookup_blob(repository, entry->id) : Blob();
  return blob != nullptr ? content_of(blob.get()) : std::string();
}

void set_root_attributes(git_repository* repository, git_index* index, const std::string& text) {
  if (text.empty()) {
    git_index_remove(index, attributes_name, 0);
    return;
  }
  git_index_entry entry{};
  entry.mode = GIT_FILEMODE_BLOB;
  entry.path = attributes_name;
  check(git_blob_create_from_buffer(&entry.id, repository, text.data(), text.size()), "write a blob");
  check(git_index_add(index, &entry), "add .gitattributes");
}

/// `text` without the lines that were written here for one of `paths`.
std::string without_lines_for(const std::set<std::string>& paths, const std::string& text) {
  std::set<std::string> dropped;
  for (const std::string& path : paths) {
    for (const std::string_view attributes : {to_lfs, to_git})
      dropped.insert(pattern_of(path).append(attributes));
  }
  std::string kept;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (!dropped.contains(line)) kept += line + "\n";
    begin = end + 1;
  }
  return kept;
}

std::vector<std::string> paths_of(git_index* index) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < git_index_entrycount(index); ++i)
    paths.emplace_back(git_index_get_byindex(index, i)->path);
  return paths;
}

}  // namespace

std::set<std::string> attribute_files(git_index* index) {
  std::set<std::string> files;
  for (std::size_t i = 0; i < git_index_entrycount(index); ++i) {
    const git_index_entry* entry = git_index_get_byindex(index, i);
    if (!is_attributes_file(entry->path)) continue;
    files.insert(std::string(entry->path) + " " + text_of(entry->id));
  }
  return files;
}

std::set<std::string> lfs_paths(git_repository* repository, git_index* index,
                                const std::vector<std::string>& paths) {
  // In a bare repository libgit2 looks up attributes in whichever index it is given.
  check(git_repository_set_index(repository, index), "use an index");
  git_attr_options options{};
  options.version = GIT_ATTR_OPTIONS_VERSION;
  options.flags = GIT_ATTR_CHECK_INDEX_ONLY | GIT_ATTR_CHECK_NO_SYSTEM;
  std::set<std::string> found;
  for (const std::string& path : paths) {
    const char* value = nullptr;
    if (git_attr_get_ext(&value, repository, &options, path.c_str(), "filter") == 0 &&
        git_attr_value(value) == GIT_ATTR_VALUE_STRING && std::strcmp(value, "lfs") == 0) {
      found.insert(path);
    }
  }
  return found;
}

void keep_attributes(git_repository* repository, git_index* index, const std::set<std::string>& before,
                     const std::vector<std::string>& changed,
                     const std::function<bool(const git_oid&)>& is_pointer) {
  std::set<std::string> pointers;
  std::vector<std::string> present;
  for (const std::string& path : attribute_files(index) == before ? changed : paths_of(index)) {
    const git_index_entry* entry = git_index_get_bypath(index, path.c_str(), 0);
    if (entry == nullptr || is_attributes_file(path)) continue;
    present.push_back(path);
    if (is_pointer(entry->id)) pointers.insert(path);
  }
  const auto wrong = [&] {
    const std::set<std::string> filtered = lfs_paths(repository, index, present);
    std::set<std::string> differ;
    std::set_symmetric_difference(pointers.begin(), pointers.end(), filtered.begin(), filtered.end(),
                                  std::inserter(differ, differ.end()));
    return differ;
  };
  std::set<std::string> left = wrong();
  if (left.empty()) return;
  const std::string before_text = root_attributes(repository, index);
  std::string text = without_lines_for(left, before_text);
  if (text != before_text) {  // a line of ours was wrong: what do the others make of it?
    set_root_attributes(repository, index, text);
    left = wrong();
  }
  for (const std::string& path : left) {
    text += pattern_of(path).append(pointers.contains(path) ? to_lfs : to_git) + "\n";
  }
  set_root_attributes(repository, index, text);
}

}  // namespace neuron_kernels::hub::registry
