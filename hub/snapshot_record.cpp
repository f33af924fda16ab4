#include "hub/snapshot_record.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr int schema = 1;

std::int64_t modified_ns(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace

SnapshotRecord::SnapshotRecord(const RepoCache& cache, std::string commit)
    : cache_(cache), commit_(std::move(commit)), path_(cache.folder() / ".pulled" / (commit_ + ".json")) {
  std::error_code ignored;
  if (!fs::exists(path_, ignored)) return;
  try {
    load();
    has_tree_ = true;
  } catch (const std::exception&) {  // of another version, or damaged: as if there were none
    tree_.clear();
    checked_.clear();
    variants_.clear();
  }
}

void SnapshotRecord::load() {
  const Json json = Json::parse(read_file(path_));
  if (json.at("schema") != schema) throw HubError(ErrorKind::failed, "unknown schema");
  for (const Json& item : json.at("files")) {
    TreeEntry entry;
    entry.path = item.at("path").get<std::string>();
    require_safe_path(entry.path, path_.string());
    entry.size = item.at("size").get<std::uint64_t>();
    const std::string digest = item.at("digest").get<std::string>();
    (is_hex(digest, 64) ? entry.sha256 : entry.oid) = digest;
    if (const auto time = item.find("checked"); time != item.end())
      checked_[entry.path] = time->get<std::int64_t>();
    tree_.push_back(std::move(entry));
  }
  variants_ = json.at("variants").get<std::vector<std::string>>();
}

void SnapshotRecord::set_tree(const std::vector<TreeEntry>& entries) {
  tree_.clear();
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(tree_),
               [](const TreeEntry& entry) { return !entry.is_folder; });
  has_tree_ = changed_ = true;
}

void SnapshotRecord::set_tree_from_snapshot() {
  tree_.clear();
  const fs::path root = cache_.snapshot(commit_);
  std::error_code error;
  for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code broken;
    if (!fs::is_regular_file(entry->path(), broken)) continue;
    TreeEntry file{.path = entry->path().lexically_relative(root).string(),
                   .is_folder = false,
                   .size = fs::file_size(entry->path(), broken),
                   .oid = {},
                   .sha256 = {}};
    const std::string name = fs::read_symlink(entry->path(), broken).filename().string();
    if (is_hex(name, 64))
      file.sha256 = name;
    else
      file.oid = is_hex(name, 40) ? name : git_blob_sha1_hex_of_file(entry->path());
    tree_.push_back(std::move(file));
  }
  has_tree_ = is_part_ = true;
}

SnapshotRecord::State SnapshotRecord::check(const TreeEntry& file) {
  const fs::path path = cache_.snapshot(commit_) / file.path;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return State::missing;
  if (static_cast<std::uint64_t>(status.st_size) != file.size) return State::corrupt;
  const auto known = checked_.find(file.path);
  if (known != checked_.end() && known->second == modified_ns(status)) return State::ready;
  if (digest_of(file, path) != file.blob()) return State::corrupt;
  mark_checked(file);
  return State::ready;
}

void SnapshotRecord::mark_checked(const TreeEntry& file) {
  struct stat status {};
  if (::stat((cache_.snapshot(commit_) / file.path).c_str(), &status) != 0) return;
  checked_[file.path] = modified_ns(status);
  changed_ = true;
}

bool SnapshotRecord::is_variant_checked(const std::string& variant) const {
  return std::find(variants_.begin(), variants_.end(), variant) != variants_.end();
}

void SnapshotRecord::mark_variant_checked(const std::string& variant) {
  if (is_variant_checked(variant)) return;
  variants_.push_back(variant);
  changed_ = true;
}

void SnapshotRecord::save() {
  if (!changed_ || !has_tree_ || is_part_) return;
  Json files = Json::array();
  for (const TreeEntry& entry : tree_) {
    Json item{{"path", entry.path}, {"size", entry.size}, {"digest", entry.blob()}};
    if (const auto time = checked_.find(entry.path); time != checked_.end()) item["checked"] = time->second;
    files.push_back(std::move(item));
  }
  const Json json{{"schema", schema}, {"files", std::move(files)}, {"variants", variants_}};
  try {
    write_file(path_, json.dump());
    changed_ = false;
  } catch (const HubError& error) {
    if (error.kind != ErrorKind::storage) throw;
  }
}

std::string digest_of(const TreeEntry& entry, const fs::path& file) {
  return entry.sha256.empty() ? git_blob_sha1_hex_of_file(file) : sha256_hex_of_file(file);
}

}  // namespace neuron_kernels::hub
