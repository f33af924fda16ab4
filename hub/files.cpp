#include "hub/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <system_error>
#include <utility>

#include "hub/error.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub {

namespace fs = std::filesystem;

namespace {

std::string random_suffix() {
  std::random_device source;
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", source());
  return digits;
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Descriptor::release() { return std::exchange(fd_, -1); }

void Descriptor::reset() {
  if (fd_ >= 0) ::close(release());
}

TemporaryFile::TemporaryFile(const fs::path& target, unsigned mode) {
  while (true) {
    path_ = target;
    path_ += "." + random_suffix() + ".incomplete";
    file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file_) return;
    if (errno != EEXIST) {
      const int error = errno;
      storage_error("create", std::exchange(path_, {}), error);
    }
  }
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), file_(std::move(other.file_)) {}

TemporaryFile::~TemporaryFile() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void TemporaryFile::write(Bytes data) { write_all(file_.get(), data, path_); }

void TemporaryFile::commit(const fs::path& target, Sync sync) {
  if (sync == Sync::yes) sync_file(file_.get(), path_);
  if (::rename(path_.c_str(), target.c_str()) != 0) storage_error("write", target, errno);
  path_.clear();
  file_.reset();
  if (sync == Sync::yes) sync_folder(target.parent_path());
}

void write_all(int fd, Bytes data, const fs::path& path) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) storage_error("write", path, errno);
    data = data.subspan(static_cast<std::size_t>(n));
  }
}

std::string read_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) storage_error("read", path, errno);
  std::string content;
  struct stat status {};
  if (::fstat(file.get(), &status) == 0 && status.st_size > 0) {
    content.reserve(static_cast<std::size_t>(status.st_size));
  }
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) storage_error("read", path, errno);
    if (n == 0) return content;
    content.append(buffer, static_cast<std::size_t>(n));
  }
}

std::string read_at(int fd, std::uint64_t offset, std::size_t bytes) {
  std::string content(bytes, '\0');
  std::size_t got = 0;
  while (got < bytes) {
    const ssize_t n = ::pread(fd, content.data() + got, bytes - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) storage_error("read", "an open file", n < 0 ? errno : EIO);
    got += static_cast<std::size_t>(n);
  }
  return content;
}

void write_file(const fs::path& path, std::string_view content, unsigned mode, Sync sync) {
  if (path.has_parent_path()) make_folders(path.parent_path());
  TemporaryFile file(path, mode);
  file.write(bytes_of(content));
  file.commit(path, sync);
}

void make_folders(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) storage_error("create folder", path, error.value());
}

void sync_file(int fd, const fs::path& path) {
  if (::fsync(fd) != 0) storage_error("sync", path, errno);
}

void sync_folder(const fs::path& path) {
  const fs::path folder = path.empty() ? "." : path;
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) storage_error("open", folder, errno);
  sync_file(fd.get(), folder);
}

void require_safe_path(std::string_view path, std::string_view source) {
  const auto refuse = [&](const char* reason) {
    throw HubError(ErrorKind::integrity, std::string(source) + " names the file '" + std::string(path) +
                                             "': " + reason +
                                             "; allowed are relative paths that stay in their folder");
  };
  if (path.empty()) refuse("an empty path");
  if (path.front() == '/') refuse("an absolute path");
  if (path.size() > 1 && path[1] == ':') refuse("a drive letter");
  for (const char c : path) {
    if (c == '\\') refuse("a backslash");
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) refuse("a control character");
  }
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") refuse("an empty, '.' or '..' part");
    begin = end + 1;
  }
}

}  // namespace neuron_kernels::hub
