#include "hub/registry/git_packs.hpp"

#include <string>

#include "hub/digest.hpp"
#include "hub/files.hpp"
#include "hub/registry/libgit2.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;
using namespace libgit2;

namespace {

OidSet objects_of(const fs::path& index) {
  git_odb* raw = nullptr;
  check(git_odb_new(&raw), "make an object database");
  const Odb odb(raw);
  git_odb_backend* backend = nullptr;
  check(git_odb_backend_one_pack(&backend, index.c_str()), "open a pack");
  check(git_odb_add_backend(odb.get(), backend, 1), "open a pack");  // the database frees it
  OidSet objects;
  const auto add = [](const git_oid* id, void* set) {
    static_cast<OidSet*>(set)->insert(*id);
    return 0;
  };
  check(git_odb_foreach(odb.get(), add, &objects), "read a pack");
  return objects;
}

// By the names that git, libgit2 and TemporaryFile give; a reference may be named like the latter two.
bool is_lock(const fs::path& file) { return file.extension() == ".lock"; }
bool is_temporary(const fs::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".incomplete") || name.starts_with("tmp_") || name.find("_git2_") != name.npos;
}

bool is_half_of_a_pack(const fs::path& file) {
  fs::path other = file;
  if (file.extension() == ".pack") return !fs::exists(other.replace_extension(".idx"));
  return file.extension() == ".idx" && !fs::exists(other.replace_extension(".pack"));
}

}  // namespace

std::vector<LooseObject> loose_objects(const fs::path& repository) {
  std::vector<LooseObject> found;
  for (const auto& folder : fs::directory_iterator(repository / "objects")) {
    const std::string first = folder.path().filename().string();
    if (!is_hex(first, 2)) continue;  // pack, info
    for (const auto& file : fs::directory_iterator(folder.path())) {
      LooseObject object{{}, file.path()};
      const std::string id = first + file.path().filename().string();
      if (is_hex(id, 40) && git_oid_fromstr(&object.id, id.c_str()) == 0) found.push_back(std::move(object));
    }
  }
  return found;
}

std::vector<Pack> packs(const fs::path& repository) {
  std::vector<Pack> found;
  for (const auto& file : fs::directory_iterator(repository / "objects" / "pack")) {
    fs::path pack = file.path(), keep = file.path();
    if (file.path().extension() != ".idx" || !fs::exists(pack.replace_extension(".pack")) ||
        fs::exists(keep.replace_extension(".keep"))) {
      continue;
    }
    found.push_back({pack, file.path(), objects_of(file.path())});
  }
  return found;
}

void write_pack(git_repository* repository, const std::vector<git_oid>& objects) {
  const auto builder = made<PackBuilder>(
      "pack its objects", [&](git_packbuilder** b) { return git_packbuilder_new(b, repository); });
  for (const git_oid& id : objects) {
    check(git_packbuilder_insert(builder.get(), &id, nullptr), "pack an object");
  }
  check(git_packbuilder_write(builder.get(), nullptr, 0, nullptr, nullptr), "write a pack");
  sync_folder(fs::path(git_repository_path(repository)) / "objects" / "pack");
}

std::vector<fs::path> unfinished_files(const fs::path& repository) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(repository)) {
    if (is_lock(entry.path()) || is_temporary(entry.path())) found.push_back(entry.path());
  }
  for (const auto& entry : fs::recursive_directory_iterator(repository / "refs")) {
    if (is_lock(entry.path())) found.push_back(entry.path());
  }
  for (const auto& entry : fs::recursive_directory_iterator(repository / "objects")) {
    if (is_temporary(entry.path()) || is_half_of_a_pack(entry.path())) found.push_back(entry.path());
  }
  return found;
}

}  // namespace neuron_kernels::hub::registry
