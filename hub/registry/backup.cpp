#include "hub/registry/backup.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>
#include <vector>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/registry/git_packs.hpp"
#include "hub/registry/git_repository.hpp"
#include "hub/registry/housekeeping.hpp"
#include "hub/registry/objects.hpp"
#include "hub/registry/repositories.hpp"
#include "hub/registry/store_check.hpp"
#include "hub/registry/store_lock.hpp"
#include "hub/registry/tar.hpp"
#include "hub/storage_error.hpp"
#include "neuron_kernels/version.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;

namespace {

/// The store as it was at one moment, as links in a folder of its own.
class Snapshot {
 public:
  explicit Snapshot(const fs::path& root) : root_(root), folder_(housekeeping_folder(root)) {}
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;
  ~Snapshot() {
    std::error_code ignored;  // the next housekeeping clears it
    fs::remove_all(folder_, ignored);
  }

  const fs::path& folder() const { return folder_; }

  void take() const {
    // Alone for what changes: references and accounts are of one moment. What they lead to only grows, so that
    // uploads may go on while it is linked; that no repository goes or moves the shared lock ensures, too.
    StoreLock lock = StoreLock::exclusive(root_);
    for (const char* file : {"accounts.json", "secret"}) link(root_ / file);
    const auto repositories = repositories_below(root_);
    for (const auto& [key, folder] : repositories) {
      for (const char* file : {"HEAD", "config", "packed-refs", "registry.json"}) link(folder / file);
      for (const auto& entry : fs::recursive_directory_iterator(folder / "refs")) {
        if (entry.is_regular_file() && entry.path().extension() != ".lock") link(entry.path());
      }
    }
    lock.share();
    const Objects objects(root_);
    for (const auto& [key, folder] : repositories) {
      for (const LooseObject& object : loose_objects(folder)) link(object.file);
      for (const auto& entry : fs::directory_iterator(folder / "objects" / "pack")) {
        if (entry.path().extension() == ".pack" || entry.path().extension() == ".idx") link(entry.path());
      }
      for (const fs::path& owned : Objects::owned_links(folder)) {
        link(owned);
        link(objects.path(owned.filename().string()));
      }
    }
  }

 private:
  /// Nothing if the file is not there, or linked already.
  void link(const fs::path& file) const {
    const fs::path to = folder_ / file.lexically_relative(root_);
    make_folders(to.parent_path());
    if (::link(file.c_str(), to.c_str()) != 0 && errno != ENOENT && errno != EEXIST) {
      storage_error("link", to, errno);
    }
  }

  const fs::path& root_;
  fs::path folder_;
};

[[noreturn]] void damaged_object(const fs::path& file, const std::string& digest) {
  throw HubError(
      ErrorKind::integrity,
      "the object " + file.filename().string() + " is damaged: its bytes have the SHA-256 " + digest,
      "remove it from objects/ of the registry, and push the file again that it belongs to");
}

class Archive {
 public:
  Archive(int fd, const fs::path& file, const fs::path& snapshot) : tar_(fd, file), snapshot_(snapshot) {}

  BackedUp write(std::size_t repositories) {
    tar_.add_text(backup_head, nlohmann::json{{"schema", backup_schema},
                                              {"version", version},
                                              {"created", iso_date(std::time(nullptr))},
                                              {"repositories", repositories}}
                                       .dump(1) +
                                   "\n");
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(snapshot_)) {
      if (entry.is_regular_file()) names.push_back(entry.path().lexically_relative(snapshot_).string());
    }
    std::sort(names.begin(), names.end());  // objects before repos, whose links lead to them
    std::size_t objects = 0;
    for (const std::string& name : names) {
      const std::string digest = add(name);
      sums_ += digest + "  " + name + "\n";
      objects += name.starts_with("objects/") ? 1 : 0;
    }
    tar_.add_text(backup_sums, sums_);
    tar_.finish();
    return {.repositories = repositories, .objects = objects};
  }

 private:
  std::string add(const std::string& name) {
    const fs::path source = snapshot_ / name;
    const std::string last = source.filename().string();
    if (!is_hex(last, 64)) return tar_.add_file(name, source);
    if (!name.starts_with("objects/")) {
      tar_.add_link(name, "objects/" + last.substr(0, 2) + "/" + last);
      return last;
    }
    const std::string digest = tar_.add_file(name, source);
    if (digest != last) damaged_object(source, digest);
    return digest;
  }

  TarWriter tar_;
  const fs::path& snapshot_;
  std::string sums_;
};

/// What backups to the same name left that were killed.
void remove_unfinished(const fs::path& file) {
  const std::string begin = file.filename().string() + ".";
  std::error_code no_folder;  // the archive will say so
  for (const auto& entry : fs::directory_iterator(file.parent_path(), no_folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(begin) && name.ends_with(".incomplete")) fs::remove(entry.path());
  }
}

}  // namespace

BackedUp back_up(const fs::path& root, const fs::path& given) {
  const fs::path file = fs::absolute(given);
  if (fs::exists(file)) {
    throw HubError(ErrorKind::conflict, given.string() + " exists already; a backup replaces nothing",
                   "name a file that is not there yet");
  }
  const Descriptor alone = begin_housekeeping(root);
  remove_unfinished(file);
  TemporaryFile archive(file, 0600);
  const Snapshot snapshot(root);
  snapshot.take();
  BackedUp done = Archive(archive.fd(), file, snapshot.folder()).write(check_store(snapshot.folder()));
  archive.commit(file, Sync::yes);
  done.bytes = fs::file_size(file);
  return done;
}

}  // namespace neuron_kernels::hub::registry
