#include "hub/cache.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/partial.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view cache_tag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file marks a cache that can be made again: https://bford.info/cachedir/\n";

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  storage_error("write to the cache:", path, error, Storage::cache);
}

void make_cache_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) cannot_write(path, error.value());
}

fs::path unused_name(const fs::path& folder) { return folder / ("." + process_mark() + ".link"); }

void rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) cannot_write(to, errno);
}

bool is_version_branch(const std::string& name) {
  return name.size() > 1 && name[0] == 'v' && name.find_first_not_of("0123456789", 1) == name.npos;
}

}  // namespace

RepoCache::RepoCache(const Environment& environment, const RepoId& repo)
    : cache_(environment.cache),
      folder_(environment.cache / repo.cache_folder()),
      name_(repo.cache_folder()),
      links_wanted_(environment.symlinks) {}

fs::path RepoCache::lock_path(const std::string& digest) const {
  return cache_ / ".locks" / name_ / (digest + ".lock");
}

std::optional<std::string> RepoCache::ref(const std::string& name) const {
  const fs::path path = folder_ / "refs" / name;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  std::string commit = read_file(path);
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
  if (!is_hex(commit, 40)) return {};
  return commit;
}

Refs RepoCache::refs() const {
  Refs refs;
  std::error_code error;
  const fs::path root = folder_ / "refs";
  for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().lexically_relative(root).string();
    const auto commit = ref(name);
    if (!commit) continue;
    const bool tag = name.find('.') != name.npos && !is_version_branch(name);
    (tag ? refs.tags : refs.branches).push_back({.name = name, .commit = *commit});
  }
  return refs;
}

void RepoCache::write_refs(const std::vector<std::string>& names, const std::string& commit) const {
  for (const std::string& name : names) {
    require_safe_path(name, "the list of refs");
    if (ref(name) == commit) continue;
    try {
      write_file(folder_ / "refs" / name, commit);
    } catch (const HubError& error) {
      if (error.kind != ErrorKind::storage || ::access(folder_.c_str(), W_OK) == 0) throw;
    }
  }
}

void RepoCache::prepare() const {
  for (const fs::path& path :
       {folder_ / "blobs", folder_ / "snapshots", folder_ / "refs", cache_ / ".locks" / name_}) {
    make_cache_folders(path);
  }
  if (::access(blobs().c_str(), W_OK) != 0) cannot_write(blobs(), errno);
  const fs::path tag = cache_ / "CACHEDIR.TAG";
  std::error_code ignored;
  if (!fs::exists(tag, ignored)) write_file(tag, cache_tag);
}

bool RepoCache::has_links() const {
  if (!links_wanted_) return false;
  if (!links_work_) {
    const fs::path probe = unused_name(folder_ / "snapshots");
    ::unlink(probe.c_str());
    links_work_ = ::symlink("../blobs", probe.c_str()) == 0;
    ::unlink(probe.c_str());
  }
  return *links_work_;
}

void RepoCache::link(const std::string& commit, const std::string& path, const std::string& digest) const {
  const fs::path entry = snapshot(commit) / path;
  std::string target = "../../blobs/" + digest;
  for (const char c : path) {
    if (c == '/') target = "../" + target;
  }
  if (::symlink(target.c_str(), entry.c_str()) == 0) return;
  if (errno == ENOENT) {  // the first file of a folder
    make_cache_folders(entry.parent_path());
    if (::symlink(target.c_str(), entry.c_str()) == 0) return;
  }
  if (errno != EEXIST) cannot_write(entry, errno);
  char old[512];
  const ssize_t n = ::readlink(entry.c_str(), old, sizeof old);
  if (n > 0 && std::string_view(old, static_cast<std::size_t>(n)) == target) return;
  const fs::path temporary = unused_name(folder_ / "snapshots");
  ::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0) cannot_write(temporary, errno);
  rename_file(temporary, entry);
}

void RepoCache::copy(const fs::path& source, const std::string& commit, const std::string& path) const {
  const fs::path entry = snapshot(commit) / path;
  make_cache_folders(entry.parent_path());
  TemporaryFile temporary(blobs() / "copy");
  std::error_code error;
  fs::copy_file(source, temporary.path(), fs::copy_options::overwrite_existing, error);
  if (error) cannot_write(entry, error.value());
  temporary.commit(entry, Sync::no);
}

void RepoCache::place_received(const fs::path& received, const std::string& commit, const std::string& path,
                               const std::string& digest) const {
  if (has_links()) {
    rename_file(received, blob(digest));
    return link(commit, path, digest);
  }
  const fs::path entry = snapshot(commit) / path;
  make_cache_folders(entry.parent_path());
  rename_file(received, entry);
}

BlobLock::BlobLock(const fs::path& path) {
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0664));
  if (!file_) file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));  // another user's
  if (!file_) return;
  int result = -1;
  do {
    result = ::flock(file_.get(), LOCK_EX | LOCK_NB);
  } while (result != 0 && errno == EINTR);
  if (result == 0)
    state_ = State::held;
  else if (errno == EWOULDBLOCK)
    state_ = State::busy;
}

}  // namespace neuron_kernels::hub
