#include "hub/registry/objects.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "hub/error.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;

Objects::Objects(const fs::path& root) : objects_(root / "objects"), temporary_(root / "tmp") {
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

void Objects::Incoming::keep() {
  const fs::path target = objects_.path(finish());
  make_folders(target.parent_path());
  sync_folder(objects_.objects_);
  file_.commit(target, Sync::yes);
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

std::uint64_t Objects::collect(std::int64_t age_s) const {
  std::uint64_t freed = 0;
  const auto drop = [&](const fs::path& file, bool whatever_links) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    // The time of the last change of the links, so that an object just given up is not old.
    if (std::time(nullptr) - std::max(status.st_mtime, status.st_ctime) < age_s) return;
    if (!whatever_links && status.st_nlink > 1) return;
    if (::unlink(file.c_str()) == 0) freed += static_cast<std::uint64_t>(status.st_size);
  };
  for (const auto& entry : fs::recursive_directory_iterator(objects_)) drop(entry.path(), false);
  for (const auto& entry : fs::recursive_directory_iterator(temporary_)) drop(entry.path(), true);
  return freed;
}

}  // namespace neuron_kernels::hub::registry
