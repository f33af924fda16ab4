#include "hub/registry/tar.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <ctime>
#include <vector>

#include "hub/error.hpp"
#include "hub/storage_error.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 18;

using Entry = std::unique_ptr<archive_entry, void (*)(archive_entry*)>;
Entry new_entry(const std::string& name) {
  Entry entry(archive_entry_new(), &archive_entry_free);
  archive_entry_set_pathname(entry.get(), name.c_str());
  archive_entry_set_filetype(entry.get(), AE_IFREG);
  archive_entry_set_mtime(entry.get(), std::time(nullptr), 0);
  return entry;
}

std::string text_or_nothing(const char* text) { return text != nullptr ? text : ""; }

}  // namespace

void TarWriter::Free::operator()(archive* a) const { archive_write_free(a); }
void TarReader::Free::operator()(archive* a) const { archive_read_free(a); }

TarWriter::TarWriter(int fd, fs::path path) : path_(std::move(path)), archive_(archive_write_new()) {
  check(archive_write_set_format_pax_restricted(archive_.get()));
  // Names are bytes, as in the file system, whatever the locale says.
  check(archive_write_set_options(archive_.get(), "hdrcharset=BINARY"));
  check(archive_write_set_bytes_per_block(archive_.get(), static_cast<int>(piece_bytes)));
  check(archive_write_open_fd(archive_.get(), fd));
}

void TarWriter::check(long result) const {
  if (result == ARCHIVE_OK) return;
  const int error = archive_errno(archive_.get());
  storage_error("write", path_, error > 0 ? error : EIO);
}

void TarWriter::begin(const std::string& name, unsigned mode, std::uint64_t bytes) {
  const Entry entry = new_entry(name);
  archive_entry_set_perm(entry.get(), mode);
  archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes));
  check(archive_write_header(archive_.get(), entry.get()));
}

void TarWriter::write(Bytes data) {
  const la_ssize_t written = archive_write_data(archive_.get(), data.data(), data.size());
  if (written != static_cast<la_ssize_t>(data.size())) check(ARCHIVE_FATAL);
}

std::string TarWriter::add_file(const std::string& name, const fs::path& source) {
  const Descriptor file(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file || ::fstat(file.get(), &status) != 0) storage_error("read", source, errno);
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  begin(name, status.st_mode & 0777, bytes);
  Hasher hasher = Hasher::sha256();
  for (std::uint64_t at = 0; at < bytes; at += piece_bytes) {
    const std::string piece =
        read_at(file.get(), at, static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, bytes - at)));
    hasher.add(piece);
    write(bytes_of(piece));
  }
  return hasher.finish_hex();
}

void TarWriter::add_text(const std::string& name, const std::string& content) {
  begin(name, 0644, content.size());
  write(bytes_of(content));
}

void TarWriter::add_link(const std::string& name, const std::string& target) {
  const Entry entry = new_entry(name);
  archive_entry_set_perm(entry.get(), 0644);
  archive_entry_set_size(entry.get(), 0);
  archive_entry_set_hardlink(entry.get(), target.c_str());
  check(archive_write_header(archive_.get(), entry.get()));
}

void TarWriter::finish() { check(archive_write_close(archive_.get())); }

TarReader::TarReader(fs::path path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)),
      archive_(archive_read_new()) {
  if (!file_) storage_error("read", path_, errno);
  check(archive_read_support_format_tar(archive_.get()));
  check(archive_read_open_fd(archive_.get(), file_.get(), piece_bytes));
}

void TarReader::damaged(const std::string& reason) const {
  throw HubError(ErrorKind::integrity, path_.string() + " is not a whole backup: " + reason,
                 "use another one; this one was cut off or changed after it was made");
}

void TarReader::check(long result) const {
  if (result >= 0) return;
  damaged(text_or_nothing(archive_error_string(archive_.get())));
}

std::optional<TarMember> TarReader::next() {
  archive_entry* entry = nullptr;
  const int result = archive_read_next_header(archive_.get(), &entry);
  if (result == ARCHIVE_EOF) return std::nullopt;
  check(result);
  TarMember member{text_or_nothing(archive_entry_pathname(entry)),
                   text_or_nothing(archive_entry_hardlink(entry)), archive_entry_perm(entry) & 0777};
  if (member.link_target.empty() && archive_entry_filetype(entry) != AE_IFREG) {
    damaged("'" + member.name + "' is neither a file nor a hard link");
  }
  return member;
}

void TarReader::read(const std::function<void(Bytes)>& take) {
  std::vector<std::byte> piece(piece_bytes);
  while (true) {
    const la_ssize_t n = archive_read_data(archive_.get(), piece.data(), piece.size());
    check(n);
    if (n == 0) return;
    take(Bytes(piece).first(static_cast<std::size_t>(n)));
  }
}

}  // namespace neuron_kernels::hub::registry
