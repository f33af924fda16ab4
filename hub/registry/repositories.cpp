#include "hub/registry/repositories.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/registry/git_repository.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;
using nlohmann::json;

std::string_view name_of(RepositoryType type) {
  constexpr std::string_view names[] = {"model", "dataset", "space", "kernel"};
  return names[static_cast<std::size_t>(type)];
}
std::string_view plural_of(RepositoryType type) {
  constexpr std::string_view names[] = {"models", "datasets", "spaces", "kernels"};
  return names[static_cast<std::size_t>(type)];
}
std::string path_prefix(RepositoryType type) {
  return type == RepositoryType::model ? std::string() : std::string(plural_of(type)) + "/";
}
std::optional<RepositoryType> type_named(std::string_view name) {
  for (const RepositoryType type : all_types) {
    if (name == name_of(type)) return type;
  }
  return std::nullopt;
}
std::optional<RepositoryType> type_of_plural(std::string_view plural) {
  for (const RepositoryType type : all_types) {
    if (plural == plural_of(type)) return type;
  }
  return std::nullopt;
}

namespace {
constexpr const char* settings_file = "registry.json";

/// What git leaves when its process is killed: locks that nobody holds. Only one server works on a root. On a
/// read-only file system they stay, and hinder nobody.
void drop_git_locks(const fs::path& repository) {
  const auto drop = [](const fs::directory_entry& entry) {
    std::error_code read_only;
    if (entry.path().extension() == ".lock") fs::remove(entry.path(), read_only);
  };
  for (const auto& entry : fs::directory_iterator(repository)) drop(entry);
  for (const auto& entry : fs::recursive_directory_iterator(repository / "refs")) drop(entry);
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return out;
}
}  // namespace

std::vector<RepositoryFolder> repositories_below(const fs::path& root) {
  std::vector<RepositoryFolder> found;
  for (const RepositoryType type : all_types) {
    const fs::path below = root / "repos" / plural_of(type);
    if (!fs::exists(below)) continue;
    for (const auto& owner : fs::directory_iterator(below)) {
      for (const auto& repository : fs::directory_iterator(owner.path())) {
        if (!fs::exists(repository.path() / settings_file)) continue;
        const std::string name = repository.path().stem().string();
        found.push_back({{type, owner.path().filename().string() + "/" + name}, repository.path()});
      }
    }
  }
  return found;
}

Repositories::Repositories(fs::path root) : root_(std::move(root)) {
  make_folders(root_ / "repos");
  for (const auto& [key, folder] : repositories_below(root_)) {
    drop_git_locks(folder);
    const json document = json::parse(read_file(folder / settings_file));
    index_[key] = {document.at("private").get<bool>(), document.at("gated").get<std::string>(),
                   document.at("created").get<std::string>()};
  }
}

fs::path Repositories::folder(const RepositoryKey& key) const {
  return root_ / "repos" / plural_of(key.type) / (key.id + ".git");
}

std::optional<RepositorySettings> Repositories::find(const RepositoryKey& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = index_.find(key);
  return found != index_.end() ? std::optional(found->second) : std::nullopt;
}

std::vector<Repositories::Entry> Repositories::list(RepositoryType type, std::string_view search,
                                                    std::string_view owner) const {
  const std::string wanted = lower(search);
  std::vector<Entry> found;
  const std::scoped_lock lock(mutex_);
  for (auto entry = index_.lower_bound({type, {}}); entry != index_.end(); ++entry) {
    const RepositoryKey& key = entry->first;
    if (key.type != type) break;
    if ((owner.empty() || key.owner() == owner) &&
        (wanted.empty() || lower(key.id).find(wanted) != std::string::npos))
      found.emplace_back(*entry);
  }
  return found;
}

std::size_t Repositories::count() const {
  const std::scoped_lock lock(mutex_);
  return index_.size();
}

void Repositories::write_settings(const fs::path& folder, const RepositorySettings& s) const {
  const json document{{"private", s.is_private}, {"gated", s.gated}, {"created", s.created}};
  write_file(folder / settings_file, document.dump(1) + "\n", 0644, Sync::yes);
}

// A repository is made under a name that no request finds, and renamed when it is whole. The index is changed
// last when it gains an entry and first when it loses one.
bool Repositories::create(const RepositoryKey& key, const RepositorySettings& settings) {
  const Lock one_at_a_time = lock(key);
  if (find(key)) return false;
  const fs::path target = folder(key);
  make_folders(target.parent_path());
  const fs::path building = root_ / "tmp" /
                            ("repository-" + std::to_string(::getpid()) + "-" +
                             std::to_string(reinterpret_cast<std::uintptr_t>(&one_at_a_time)));
  fs::remove_all(building);
  fs::remove_all(target);  // what a creation that was cut off left
  GitRepository::create(building, key.owner());
  write_settings(building, settings);
  fs::rename(building, target);
  sync_folder(target.parent_path());
  sync_folder(target.parent_path().parent_path());
  const std::scoped_lock held(mutex_);
  index_[key] = settings;
  return true;
}

bool Repositories::remove(const RepositoryKey& key) {
  fs::path grave = root_ / "tmp" / ("deleted-" + std::to_string(::getpid()) + "-");
  grave += std::to_string(reinterpret_cast<std::uintptr_t>(&grave));
  {
    const StoreLock nobody_adds = StoreLock::exclusive(root_);
    const std::scoped_lock one_at_a_time(mutex_of(key));
    {
      const std::scoped_lock held(mutex_);
      if (index_.erase(key) == 0) return false;
    }
    fs::last_write_time(folder(key), fs::file_time_type::clock::now());  // no leftover for housekeeping yet
    fs::rename(folder(key), grave);
    sync_folder(folder(key).parent_path());
  }
  fs::remove_all(grave);
  return true;
}

bool Repositories::move(const RepositoryKey& from, const RepositoryKey& to) {
  const StoreLock nobody_adds = StoreLock::exclusive(root_);
  const std::scoped_lock held(mutex_);
  const auto found = index_.find(from);
  if (found == index_.end() || index_.contains(to)) return false;
  make_folders(folder(to).parent_path());
  fs::rename(folder(from), folder(to));
  sync_folder(folder(to).parent_path());
  sync_folder(folder(from).parent_path());
  index_[to] = found->second;
  index_.erase(from);
  return true;
}

void Repositories::change(const RepositoryKey& key, const RepositorySettings& settings) {
  const Lock one_at_a_time = lock(key);
  write_settings(folder(key), settings);
  const std::scoped_lock held(mutex_);
  if (const auto found = index_.find(key); found != index_.end()) found->second = settings;
}

std::mutex& Repositories::mutex_of(const RepositoryKey& key) {
  const std::scoped_lock held(mutex_);
  auto& slot = locks_[key];
  if (slot == nullptr) slot = std::make_unique<std::mutex>();
  return *slot;
}

Repositories::Lock Repositories::lock(const RepositoryKey& key) {
  StoreLock store = StoreLock::shared(root_);
  return {std::move(store), std::unique_lock(mutex_of(key))};
}

}  // namespace neuron_kernels::hub::registry
