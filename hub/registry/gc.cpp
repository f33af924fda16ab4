#include "hub/registry/gc.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <optional>
#include <unordered_set>

#include "hub/error.hpp"
#include "hub/registry/git_packs.hpp"
#include "hub/registry/housekeeping.hpp"
#include "hub/registry/libgit2.hpp"
#include "hub/registry/objects.hpp"
#include "hub/registry/reachable.hpp"
#include "hub/registry/repositories.hpp"
#include "hub/registry/service.hpp"
#include "hub/registry/store_lock.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;
using namespace libgit2;

namespace {

// Xet clients remember for three weeks which chunks they sent, and then name them without sending them.
constexpr std::int64_t xorb_grace_s = 30 * 24 * 3600;
// A repository with that many is packed anew, into one.
constexpr int most_packs = 8;
// How many files of the store are removed before uploads get a turn.
constexpr std::size_t removed_at_once = 500;

/// Of the files right in a folder.
std::int64_t bytes_in(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder)) bytes += file.file_size();
  return static_cast<std::int64_t>(bytes);
}

class Collector {
 public:
  Collector(const fs::path& root, const GcOptions& options)
      : root_(root), grace_s_(options.grace_s), dry_run_(options.dry_run), objects_(root) {}

  Collected run() {
    for (const auto& [key, folder] : repositories_below(root_)) {
      try {
        clean_repository(folder);
      } catch (const std::exception& error) {
        if (fs::exists(folder)) done_.problems.push_back(folder.string() + ": " + error.what());
      }  // else it was deleted or moved just now
    }
    drop_objects();
    drop_xorbs();
    drop_temporary_files();
    done_.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(freed_, 0));
    return std::move(done_);
  }

 private:
  std::optional<StoreLock> alone() const {
    return dry_run_ ? std::nullopt : std::optional(StoreLock::exclusive(root_));
  }

  /// The state of a file that nothing made, named or sent again for so long.
  std::optional<struct stat> old(const fs::path& file, std::int64_t age_s) const {
    struct stat status {};
    const bool is_old = ::lstat(file.c_str(), &status) == 0 && now_ - status.st_mtime >= age_s;
    return is_old ? std::optional(status) : std::nullopt;
  }

  void remove(const fs::path& file) const {
    if (!dry_run_ && ::unlink(file.c_str()) != 0 && errno != ENOENT) storage_error("remove", file, errno);
  }

  bool drop_old(const fs::path& file, std::size_t& count) {
    const auto status = old(file, grace_s_);
    if (!status) return false;
    remove(file);
    ++count;
    freed_ += status->st_size;
    return true;
  }

  void clean_repository(const fs::path& folder) {
    const Repository repository = open_repository(folder);
    Reachable reachable;
    try {
      reachable.extend(repository.get());
    } catch (const fs::filesystem_error&) {  // folders of references go and come; below nobody changes them
    }
    const auto links = Objects::owned_links(folder);
    const auto loose = loose_objects(folder);
    const auto before = packs(folder);
    const bool anew = std::count_if(before.begin(), before.end(), [&](const Pack& one) {
                        return old(one.pack, grace_s_).has_value();
                      }) >= most_packs;
    const OidSet packed = pack(repository.get(), folder, reachable, loose, before, anew);

    const auto lock = alone();
    reachable.extend(repository.get());
    for (const LooseObject& object : loose) {
      if (!reachable.objects().contains(object.id)) drop_old(object.file, done_.git_objects);
    }
    if (anew) {
      for (const Pack& one : before) drop_pack(one, packed, reachable);
    }
    drop_links(links, reachable);
    for (const fs::path& file : unfinished_files(folder)) drop_old(file, done_.leftovers);
  }

  /// Packs what has a file of its own (everything, if `anew`), and removes these files; what the new pack has.
  /// No lock: everything stays readable all the time.
  OidSet pack(git_repository* repository, const fs::path& folder, const Reachable& reachable,
              const std::vector<LooseObject>& loose, const std::vector<Pack>& before, bool anew) {
    OidSet wanted;
    if (anew) wanted = reachable.objects();
    for (const LooseObject& object : loose) {
      if (!reachable.objects().contains(object.id)) continue;
      ++done_.packed;
      const bool there = std::any_of(before.begin(), before.end(),
                                     [&](const Pack& one) { return one.objects.contains(object.id); });
      if (!there) wanted.insert(object.id);
    }
    if (dry_run_) return wanted;
    if (!wanted.empty()) {
      const fs::path pack_folder = folder / "objects" / "pack";
      freed_ += bytes_in(pack_folder);
      write_pack(repository, {wanted.begin(), wanted.end()});
      freed_ -= bytes_in(pack_folder);
    }
    for (const LooseObject& object : loose) {
      if (!reachable.objects().contains(object.id)) continue;
      freed_ += static_cast<std::int64_t>(fs::file_size(object.file));
      remove(object.file);
    }
    return wanted;
  }

  /// Unless it has something that is reachable only since the new pack was begun.
  void drop_pack(const Pack& one, const OidSet& packed, const Reachable& reachable) {
    std::size_t unreachable = 0;
    for (const git_oid& id : one.objects) {
      if (!reachable.objects().contains(id)) {
        ++unreachable;
      } else if (!packed.contains(id)) {
        return;
      }
    }
    if (!drop_old(one.pack, done_.packs)) return;  // first: an index alone is passed over
    done_.git_objects += unreachable;
    freed_ += static_cast<std::int64_t>(fs::file_size(one.index));
    remove(one.index);
  }

  /// The repository's share of objects that none of its commits names. The bytes are the object's.
  void drop_links(const std::vector<fs::path>& links, const Reachable& reachable) {
    for (const fs::path& link : links) {
      if (reachable.named().contains(link.filename().string()) || !old(link, grace_s_)) continue;
      remove(link);
      if (dry_run_) given_up_.insert(link.string());
    }
  }

  std::unordered_set<std::string> owned() const {
    // Shared: no repository may move while they are listed; uploads may go on, since what they own is new.
    const auto lock = dry_run_ ? std::nullopt : std::optional(StoreLock::shared(root_));
    std::unordered_set<std::string> names;
    for (const auto& [key, folder] : repositories_below(root_)) {
      for (const fs::path& link : Objects::owned_links(folder)) {
        if (!given_up_.contains(link.string())) names.insert(link.filename().string());
      }
    }
    return names;
  }

  void drop_objects() {
    std::vector<fs::path> unowned = objects_.all();
    const auto names = owned();
    std::erase_if(unowned, [&](const fs::path& file) {
      return names.contains(file.filename().string()) || !old(file, grace_s_);
    });
    for (std::size_t begin = 0; begin < unowned.size(); begin += removed_at_once) {
      const auto lock = alone();
      const std::size_t end = std::min(begin + removed_at_once, unowned.size());
      for (std::size_t i = begin; i < end; ++i) drop_old(unowned[i], done_.objects);
    }
  }

  void drop_xorbs() {
    if (!fs::exists(root_ / "xorbs")) return;
    for (const auto& file : fs::recursive_directory_iterator(root_ / "xorbs")) {
      if (file.is_regular_file() && old(file.path(), std::max(grace_s_, xorb_grace_s))) {
        drop_old(file.path(), done_.xorbs);
      }
    }
  }

  /// Uploads that were given up, and what killed processes left beside the files of the root.
  void drop_temporary_files() {
    for (const auto& file : fs::directory_iterator(root_)) {
      if (file.path().extension() == ".incomplete") drop_old(file.path(), done_.leftovers);
    }
    for (const auto& entry : fs::directory_iterator(root_ / "tmp")) {
      if (!old(entry.path(), grace_s_)) continue;  // of a folder: nothing came into it lately
      if (entry.is_directory()) {
        drop_folder(entry.path());
      } else {
        drop_old(entry.path(), done_.leftovers);
      }
    }
  }

  void drop_folder(const fs::path& folder) {
    for (const auto& file : fs::recursive_directory_iterator(folder)) {
      if (file.is_regular_file()) freed_ += static_cast<std::int64_t>(file.file_size());
    }
    ++done_.leftovers;
    if (!dry_run_) fs::remove_all(folder);
  }

  const fs::path& root_;
  std::int64_t grace_s_;
  bool dry_run_;
  Objects objects_;
  std::int64_t now_ = std::time(nullptr);
  std::int64_t freed_ = 0;
  std::unordered_set<std::string> given_up_;  // links that a dry run leaves where they are
  Collected done_;
};

}  // namespace

Collected collect_garbage(const fs::path& root, const GcOptions& options) {
  const int tickets_s = ServiceLimits{}.ticket_seconds;
  if (options.grace_s <= tickets_s) {
    throw HubError(ErrorKind::usage,
                   "a grace period of " + std::to_string(options.grace_s / 3600) +
                       " h is too short: addresses for uploads live for " + std::to_string(tickets_s / 3600) +
                       " h, so " + std::to_string(tickets_s / 3600 + 1) + " h and more are allowed",
                   "24 h are usual");
  }
  require_registry(root);
  const Descriptor alone = options.dry_run ? Descriptor() : begin_housekeeping(root);
  return Collector(root, options).run();
}

}  // namespace neuron_kernels::hub::registry
