#include "hub/local_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub {

LocalFile LocalFile::on_disk(std::string path, const std::filesystem::path& source) {
  LocalFile file{std::move(path), source, {}, 0, {}, {}};
  file.sha256 = sha256_hex_of_file(source);
  file.git_sha1 = git_blob_sha1_hex_of_file(source);
  file.size = std::filesystem::file_size(source);
  return file;
}

LocalFile LocalFile::in_memory(std::string path, std::string content) {
  LocalFile file{std::move(path), {}, std::move(content), 0, {}, {}};
  file.size = file.content.size();
  file.sha256 = sha256_hex(file.content);
  file.git_sha1 = git_blob_sha1_hex(file.content);
  return file;
}

std::string LocalFile::read(std::uint64_t offset, std::uint64_t count) const {
  if (source.empty())
    return content.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
  const Descriptor file(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
  std::string data(static_cast<std::size_t>(std::min(count, size - std::min(offset, size))), '\0');
  std::size_t held = 0;
  while (file && held < data.size()) {
    const ssize_t n =
        ::pread(file.get(), data.data() + held, data.size() - held, static_cast<off_t>(offset + held));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    if (n == 0) throw HubError(ErrorKind::integrity, source.string() + " became shorter while it was sent");
    held += static_cast<std::size_t>(n);
  }
  if (!file || held < data.size()) storage_error("read", source, errno);
  return data;
}

Body LocalFile::body(std::uint64_t offset, std::uint64_t count) const {
  if (!source.empty()) return Body::file(source, offset, count);
  return Body::text(read(offset, count), "application/octet-stream");
}

}  // namespace neuron_kernels::hub
