// The repositories of a registry: folders of bare git repositories with their settings; an index of them in
// memory.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hub/registry/store_lock.hpp"

namespace neuron_kernels::hub::registry {

enum class RepositoryType { model, dataset, space, kernel };
inline constexpr RepositoryType all_types[] = {RepositoryType::model, RepositoryType::dataset,
                                               RepositoryType::space, RepositoryType::kernel};

std::string_view name_of(RepositoryType type);    // "kernel"
std::string_view plural_of(RepositoryType type);  // "kernels"
/// "" for models, "kernels/" and so on for the others: what stands before owner/name in addresses of files.
std::string path_prefix(RepositoryType type);
std::optional<RepositoryType> type_named(std::string_view name);
std::optional<RepositoryType> type_of_plural(std::string_view plural);

struct RepositorySettings {
  bool is_private = false;
  std::string gated;  // "": no; "auto" or "manual"
  std::string created;
};

struct RepositoryKey {
  RepositoryType type = RepositoryType::model;
  std::string id;  // owner/name
  auto operator<=>(const RepositoryKey&) const = default;
  std::string owner() const { return id.substr(0, id.find('/')); }
  std::string name() const { return id.substr(id.find('/') + 1); }
};

struct RepositoryFolder {
  RepositoryKey key;
  std::filesystem::path folder;
};
/// Those that are whole: not what a creation or deletion that was cut off left.
std::vector<RepositoryFolder> repositories_below(const std::filesystem::path& root);

class Repositories {
 public:
  /// Finds what is below root/repos, and clears what a killed server left there. Errors: HubError storage.
  explicit Repositories(std::filesystem::path root);

  std::filesystem::path folder(const RepositoryKey& key) const;
  std::optional<RepositorySettings> find(const RepositoryKey& key) const;
  using Entry = std::pair<RepositoryKey, RepositorySettings>;
  /// Those of a type whose id holds `search` (any case) and whose owner is `owner` ("": any), by id.
  std::vector<Entry> list(RepositoryType type, std::string_view search, std::string_view owner) const;
  std::size_t count() const;  // of all types

  /// False if it exists. On the disk, whole, when it returns.
  bool create(const RepositoryKey& key, const RepositorySettings& settings);
  bool remove(const RepositoryKey& key);
  /// False if the new name is taken.
  bool move(const RepositoryKey& from, const RepositoryKey& to);
  void change(const RepositoryKey& key, const RepositorySettings& settings);

  struct Lock {
    StoreLock store;  // taken first: who waits for housekeeping keeps no request waiting
    std::unique_lock<std::mutex> repository;
  };
  /// Held while a commit checks its parent and moves a branch, and by whatever else adds to a repository.
  Lock lock(const RepositoryKey& key);

 private:
  std::mutex& mutex_of(const RepositoryKey& key);
  void write_settings(const std::filesystem::path& folder, const RepositorySettings& settings) const;

  std::filesystem::path root_;
  mutable std::mutex mutex_;
  std::map<RepositoryKey, RepositorySettings> index_;
  std::map<RepositoryKey, std::unique_ptr<std::mutex>> locks_;
};

}  // namespace neuron_kernels::hub::registry
