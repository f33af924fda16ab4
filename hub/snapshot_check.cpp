#include "hub/snapshot_check.hpp"

#include <filesystem>
#include <map>
#include <set>

#include "hub/error.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

/// "build/torch-cpu/" of a file in a variant; "" of any other.
std::string variant_prefix(const std::string& path) {
  if (!path.starts_with("build/")) return {};
  const std::size_t end = path.find('/', 6);
  return end == path.npos ? std::string() : path.substr(0, end + 1);
}

/// Paths below the folder; a link whose blob is gone counts as missing.
std::set<std::string> files_below(const fs::path& folder) {
  std::set<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code broken;
    if (fs::is_regular_file(entry->path(), broken)) {
      files.insert(entry->path().lexically_relative(folder).generic_string());
    }
  }
  return files;
}

}  // namespace

SnapshotCheck check_snapshot(const RepoCache& cache, const std::string& commit,
                             const SnapshotRecord& record) {
  SnapshotCheck check;
  const fs::path folder = cache.snapshot(commit);
  std::set<std::string> held = files_below(folder), prefixes;
  for (const std::string& path : held) prefixes.insert(variant_prefix(path));
  prefixes.erase("");  // files outside variants are pulled singly
  for (const TreeEntry& entry : record.tree()) {
    if (held.erase(entry.path) == 0) {
      if (prefixes.contains(variant_prefix(entry.path))) check.missing.push_back(entry.path);
      continue;
    }
    ++check.checked;
    check.bytes += entry.size;
    if (fs::file_size(folder / entry.path) != entry.size ||
        digest_of(entry, folder / entry.path) != entry.blob()) {
      check.damaged.push_back(entry.path);
    }
  }
  for (const std::string& path : held) {
    if (path.find("__pycache__/") == path.npos) check.unknown.push_back(path);  // Python's, after an import
  }
  return check;
}

}  // namespace neuron_kernels::hub
