// A registry with one repository, and what tests do with it; nothing is served.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "hub/registry/gc.hpp"
#include "hub/registry/git_repository.hpp"
#include "hub/registry/objects.hpp"
#include "hub/registry/repositories.hpp"
#include "temporary_folder.hpp"

namespace test {

namespace hub = neuron_kernels::hub;
namespace fs = std::filesystem;
namespace registry = neuron_kernels::hub::registry;

inline const registry::RepositoryKey key{registry::RepositoryType::kernel, "alice/one"};
inline const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1000);

inline void make_old(const fs::path& below) {
  for (const auto& entry : fs::recursive_directory_iterator(below)) {
    fs::last_write_time(entry.path(), long_ago);
  }
}

/// A registry with one repository, nothing served.
struct RegistryFixture {
  RegistryFixture() : repositories(root.path()), objects(root.path()) {
    repositories.create(key, {});
    folder = repositories.folder(key);
  }

  registry::GitRepository open() const {
    return registry::GitRepository(folder, [](const registry::LfsPointer&) { return true; });
  }
  std::string upload(const std::string& content) const { return upload_to(folder, content); }
  std::string upload_to(const fs::path& repository, const std::string& content) const {
    registry::Objects::Incoming incoming(objects);
    incoming.write(hub::bytes_of(content));
    incoming.keep_for(repository);
    return incoming.finish();
  }
  /// A commit on a branch with one more file: text, or a pointer to an object.
  std::string commit(const std::string& path, const std::string& text,
                     const std::string& branch = "main") const {
    registry::GitRepository repository = open();
    const std::string parent = *repository.resolve(branch);
    const registry::Changes changes{{}, {}, {{path, repository.write_blob(text)}}};
    return *repository.commit("refs/heads/" + branch, parent, changes, path, "", "alice", false);
  }
  static std::string pointer(const std::string& content) {
    return registry::LfsPointer{hub::sha256_hex(content), content.size()}.text();
  }
  bool stored(const std::string& content) const {
    return objects.owned_by(hub::sha256_hex(content), folder) &&
           objects.size(hub::sha256_hex(content)) == content.size();
  }
  registry::Collected gc(bool dry_run = false) const {
    return registry::collect_garbage(root.path(), {24 * 3600, dry_run});
  }

  test::TemporaryFolder root;
  registry::Repositories repositories;
  registry::Objects objects;
  fs::path folder;
};

}  // namespace test
