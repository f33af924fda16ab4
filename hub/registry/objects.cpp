#include "hub/registry/objects.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "hub/error.hpp"
#include "hub/registry/store_lock.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;

namespace {

/// Makes a file count as new.
void touch(const fs::path& file) {
  if (::utimensat(AT_FDCWD, file.c_str(), nullptr, 0) != 0) storage_error("touch", file, errno);
}

std::vector<fs::path> named_by_digest(const fs::path& below) {
  std::vector<fs::path> found;
  if (!fs::exists(below)) return found;
  for (const auto& file : fs::recursive_directory_iterator(below)) {
    if (is_hex(file.path().filename().string(), 64)) found.push_back(file.path());
  }
  return found;
}

}  // namespace

Objects::Objects(const fs::path& root) : root_(root), objects_(root / "objects"), temporary_(root / "tmp") {
  make_folders(objects_);
  make_folders(temporary_);
}

fs::path Objects::path(const std::string& sha256) const {
  if (!is_hex(sha256, 64))
    throw HubError(ErrorKind::integrity, "'" + sha256.substr(0, 80) + "' is not a SHA-256");
  return objects_ / sha256.substr(0, 2) / sha256;
}

std::optional<std::uint64_t> Objects::size(const std::string& sha256) const {
  std::error_code absent;
  const auto bytes = fs::file_size(path(sha256), absent);
  return absent ? std::nullopt : std::optional<std::uint64_t>(bytes);
}

Objects::Incoming::Incoming(const Objects& objects)
    : objects_(objects), file_(objects.temporary_ / "incoming", 0644) {}

void Objects::Incoming::write(Bytes data) {
  file_.write(data);
  hasher_.add(data);
  size_ += data.size();
}

void Objects::Incoming::append(const fs::path& file) {
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) storage_error("read", file, errno);
  constexpr std::uint64_t piece = 1 << 18;
  const std::uint64_t bytes = fs::file_size(file);
  for (std::uint64_t at = 0; at < bytes; at += piece) {
    write(bytes_of(read_at(in.get(), at, static_cast<std::size_t>(std::min(piece, bytes - at)))));
  }
}

const std::string& Objects::Incoming::finish() {
  if (sha256_.empty()) sha256_ = hasher_.finish_hex();
  return sha256_;
}

void Objects::Incoming::keep_for(const fs::path& folder) {
  const fs::path target = objects_.path(finish());
  sync_file(fd(), path());  // what takes long, before housekeeping has to wait
  const StoreLock lock = StoreLock::shared(objects_.root_);
  if (!fs::exists(folder)) {
    throw HubError(ErrorKind::not_found, "the repository was deleted or moved while the upload went on");
  }
  make_folders(target.parent_path());
  if (objects_.size(sha256_) == size_) {
    touch(target);  // and not replaced: repositories that own it share its bytes by their links
  } else {
    file_.commit(target, Sync::no);
  }
  sync_folder(target.parent_path());  // of a file that is there already, too: its upload may still go on
  sync_folder(objects_.objects_);
  objects_.give(sha256_, folder);
}

void Objects::Incoming::keep_as(const fs::path& target) {
  make_folders(target.parent_path());
  file_.commit(target, Sync::yes);
}

fs::path Objects::owned_path(const std::string& sha256, const fs::path& folder) {
  return folder / "lfs" / "objects" / sha256.substr(0, 2) / sha256.substr(2, 2) / sha256;
}

void Objects::give(const std::string& sha256, const fs::path& folder) const {
  const fs::path link = owned_path(sha256, folder);
  make_folders(link.parent_path());
  if (::link(path(sha256).c_str(), link.c_str()) != 0 && errno != EEXIST) {
    storage_error("link", link, errno);
  }
  for (fs::path at = link.parent_path(); at != folder; at = at.parent_path()) sync_folder(at);
}

bool Objects::owned_by(const std::string& sha256, const fs::path& folder) const {
  return is_hex(sha256, 64) && ::access(owned_path(sha256, folder).c_str(), F_OK) == 0;
}

std::optional<std::uint64_t> Objects::owned_size(const std::string& sha256, const fs::path& folder) const {
  return owned_by(sha256, folder) ? size(sha256) : std::nullopt;
}

std::optional<std::uint64_t> Objects::claim(const std::string& sha256, const fs::path& folder) const {
  const StoreLock lock = StoreLock::shared(root_);
  const auto bytes = owned_size(sha256, folder);
  if (bytes) {
    touch(path(sha256));
    touch(owned_path(sha256, folder));
  }
  return bytes;
}

std::vector<fs::path> Objects::all() const { return named_by_digest(objects_); }

std::vector<fs::path> Objects::owned_links(const fs::path& folder) {
  return named_by_digest(folder / "lfs" / "objects");
}

}  // namespace neuron_kernels::hub::registry
