#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/registry/accounts.hpp"
#include "hub/registry/backup.hpp"
#include "hub/registry/objects.hpp"
#include "hub/registry/repositories.hpp"
#include "hub/registry/store_check.hpp"
#include "hub/registry/tar.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;

namespace {

void require_empty(const fs::path& root) {
  if (!fs::exists(root) || (fs::is_directory(root) && fs::is_empty(root))) return;
  throw HubError(
      ErrorKind::conflict,
      root.string() + " is not empty; a backup is restored only to a folder that is absent or empty",
      "name another --root, or move away what is there");
}

/// A folder beside the root that takes its name when it is whole, and goes with all it holds if it never is.
class Building {
 public:
  explicit Building(const fs::path& root) : root_(root), folder_(root.string() + ".restoring") {
    make_folders(folder_);
    lock_ = Descriptor(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!lock_ || ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      throw HubError(ErrorKind::conflict, "another restore works on " + root_.string(), "wait for its end");
    }
    clear();  // of one that was killed
  }
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;
  ~Building() {
    std::error_code ignored;  // the next one clears it
    if (!finished_) fs::remove_all(folder_, ignored);
  }

  const fs::path& folder() const { return folder_; }

  void finish() {
    if (::syncfs(lock_.get()) != 0) storage_error("sync", folder_, errno);
    if (::rename(folder_.c_str(), root_.c_str()) != 0) storage_error("put the registry to", root_, errno);
    finished_ = true;
    sync_folder(root_.parent_path());
  }

 private:
  void clear() const {
    for (const auto& entry : fs::directory_iterator(folder_)) fs::remove_all(entry.path());
  }

  fs::path root_, folder_;
  Descriptor lock_;
  bool finished_ = false;
};

class Unpacking {
 public:
  Unpacking(const fs::path& file, const fs::path& folder) : file_(file), folder_(folder), tar_(file) {}

  /// Content of all files, in bytes.
  std::uint64_t run() {
    while (const auto member = tar_.next()) {
      if (sums_) tar_.damaged("something follows its list of digests");
      if (member->name == backup_sums) {
        sums_ = text();
      } else if (!head_seen_) {
        take_head(*member);
      } else {
        take(*member);
      }
    }
    if (!sums_) tar_.damaged("it ends before its list of digests");
    compare();
    return bytes_;
  }

 private:
  std::string text() {
    std::string content;
    tar_.read([&](Bytes data) { content.append(reinterpret_cast<const char*>(data.data()), data.size()); });
    return content;
  }

  void take_head(const TarMember& member) {
    const auto head =
        member.name == backup_head ? nlohmann::json::parse(text(), nullptr, false) : nlohmann::json();
    if (!head.is_object() || !head.contains("schema")) {
      throw HubError(ErrorKind::integrity,
                     file_.string() + " is not a backup of a registry: it does not begin with " + backup_head,
                     "name a file that `kernels serve backup` wrote");
    }
    if (head["schema"] != backup_schema) {
      throw HubError(ErrorKind::incompatible,
                     file_.string() + " has schema " + head["schema"].dump() +
                         "; this version reads schema " + std::to_string(backup_schema),
                     "restore it with the version of `kernels` that made it, or a later one");
    }
    head_seen_ = true;
  }

  void take(const TarMember& member) {
    require_safe_path(member.name, file_.string());
    const fs::path target = folder_ / member.name;
    make_folders(target.parent_path());
    if (!member.link_target.empty()) {
      const auto known = digests_.find(member.link_target);
      if (known == digests_.end()) tar_.damaged(member.name + " is a link to what is not before it");
      if (::link((folder_ / member.link_target).c_str(), target.c_str()) != 0) {
        storage_error("link", target, errno);
      }
      digests_[member.name] = known->second;
      return;
    }
    const Descriptor out(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, member.mode));
    if (!out) storage_error("create", target, errno);
    Hasher hasher = Hasher::sha256();
    tar_.read([&](Bytes data) {
      hasher.add(data);
      write_all(out.get(), data, target);
      bytes_ += data.size();
    });
    digests_[member.name] = hasher.finish_hex();
    require_right_name(target.filename().string(), member.name);
  }

  void require_right_name(const std::string& last, const std::string& name) const {
    if (!name.starts_with("objects/") || last == digests_.at(name)) return;
    tar_.damaged(name + " has the SHA-256 " + digests_.at(name));
  }

  void compare() const {
    std::string_view listed = *sums_;
    for (const auto& [name, digest] : digests_) {  // in the order of the list
      const std::string line = digest + "  " + name + "\n";
      if (!listed.starts_with(line)) tar_.damaged(name + " is not as its list of digests has it");
      listed.remove_prefix(line.size());
    }
    if (!listed.empty()) tar_.damaged("its list of digests names files that are not in it");
  }

  const fs::path& file_;
  const fs::path& folder_;
  TarReader tar_;
  bool head_seen_ = false;
  std::map<std::string, std::string> digests_;  // by name
  std::optional<std::string> sums_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

BackedUp restore(const fs::path& file, const fs::path& given) {
  const fs::path absolute = fs::absolute(given).lexically_normal();
  const fs::path root = absolute.has_filename() ? absolute : absolute.parent_path();  // "registry/"
  require_empty(root);
  Building building(root);
  BackedUp done;
  done.bytes = Unpacking(file, building.folder()).run();
  make_folders(building.folder() / "repos");
  for (const auto& [key, folder] : repositories_below(building.folder())) {
    for (const char* needed : {"objects/pack", "refs/heads", "refs/tags"}) make_folders(folder / needed);
  }
  done.repositories = check_store(building.folder());
  done.objects = Objects(building.folder()).all().size();
  static_cast<void>(Accounts(building.folder() / "accounts.json").users());  // whether they can be read
  building.finish();
  return done;
}

}  // namespace neuron_kernels::hub::registry
