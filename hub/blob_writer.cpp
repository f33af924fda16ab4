#include "hub/blob_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "hub/error.hpp"
#include "hub/snapshot_record.hpp"
#include "hub/storage_error.hpp"
#include "hub/url.hpp"

namespace neuron_kernels::hub {

namespace {

// Written and hashed at once; what a kill loses at most. 1 MiB takes three times as long: fresh pages each
// time.
constexpr std::size_t piece_bytes = std::size_t{1} << 18;
// A smaller one is hashed when it is whole, from the page cache: handing it on in pieces costs as much.
constexpr std::uint64_t hash_in_pieces_from_bytes = std::uint64_t{4} << 20;

}  // namespace

BlobWriter::BlobWriter(const TreeEntry& entry, std::filesystem::path partial, std::string subject)
    : entry_(entry), path_(std::move(partial)), subject_(std::move(subject)) {
  file_ = Descriptor(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_) storage_error("create", path_, errno, Storage::cache);
  hasher_ = new_hasher();
  take_existing();
}

BlobWriter::~BlobWriter() {
  if (!file_) return;
  try {
    flush();                   // for the next process
  } catch (const HubError&) {  // it starts earlier then
  }
  if (received_ == 0) discard();
}

std::unique_ptr<StreamHasher> BlobWriter::new_hasher() const {
  if (entry_.size < hash_in_pieces_from_bytes) return nullptr;
  return std::make_unique<StreamHasher>(entry_.sha256.empty() ? Hasher::git_blob(entry_.size)
                                                              : Hasher::sha256());
}

void BlobWriter::take_existing() {
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) storage_error("read", path_, errno, Storage::cache);
  if (static_cast<std::uint64_t>(status.st_size) > entry_.size) {
    restart();
    return;
  }
  if (hasher_ == nullptr) received_ = static_cast<std::uint64_t>(status.st_size);
  while (received_ < static_cast<std::uint64_t>(status.st_size)) {
    StreamHasher::Buffer buffer = hasher_->spare();
    buffer.resize(piece_bytes);
    const ssize_t n = ::pread(file_.get(), buffer.data(), buffer.size(), static_cast<off_t>(received_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) storage_error("read", path_, errno, Storage::cache);
    if (n == 0) break;
    buffer.resize(static_cast<std::size_t>(n));
    received_ += static_cast<std::uint64_t>(n);
    hasher_->add(std::move(buffer));
  }
  resumed_from_ = received_;
}

void BlobWriter::restart() {
  if (on_bytes) on_bytes(-static_cast<std::int64_t>(received_));
  received_ = resumed_from_ = 0;
  buffer_.clear();
  hasher_ = new_hasher();
  if (::ftruncate(file_.get(), 0) != 0) storage_error("write", path_, errno, Storage::cache);
}

void BlobWriter::begin(std::uint64_t first_byte, const Response& response) {
  if (first_byte != received_) restart();
  const std::string length(response.headers.get("Content-Length"));
  if (length.empty()) return;
  const std::uint64_t announced = first_byte + std::strtoull(length.c_str(), nullptr, 10);
  if (announced != entry_.size) {
    throw HubError(ErrorKind::integrity,
                   subject_ + ": the server sends " + std::to_string(announced) +
                       " bytes, the listing says " + std::to_string(entry_.size),
                   "try again; if it stays, the mirror or proxy in between alters files")
        .at(url_without_secrets(response.url), response.status);
  }
}

void BlobWriter::write(Bytes data) {
  if (data.size() > entry_.size - received_) {
    throw HubError(ErrorKind::integrity, subject_ + ": more bytes arrive than the " +
                                             std::to_string(entry_.size) + " of the listing");
  }
  if (on_bytes) on_bytes(static_cast<std::int64_t>(data.size()));
  if (hasher_ == nullptr) {
    store(data, received_);
    received_ += data.size();
    return;
  }
  while (!data.empty()) {
    if (buffer_.capacity() == 0) {
      buffer_ = hasher_->spare();
      buffer_.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, entry_.size)));
    }
    const std::size_t n = std::min(data.size(), buffer_.capacity() - buffer_.size());
    buffer_.insert(buffer_.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(n));
    data = data.subspan(n);
    received_ += n;
    if (buffer_.size() == buffer_.capacity()) flush();
  }
}

void BlobWriter::flush() {
  if (buffer_.empty()) return;
  store(buffer_, received_ - buffer_.size());
  hasher_->add(std::exchange(buffer_, {}));
}

void BlobWriter::store(Bytes data, std::uint64_t at) const {
  while (!data.empty()) {
    const ssize_t n = ::pwrite(file_.get(), data.data(), data.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) storage_error("write", path_, errno, Storage::cache);
    at += static_cast<std::uint64_t>(n);
    data = data.subspan(static_cast<std::size_t>(n));
  }
}

void BlobWriter::close() {
  flush();
  file_.reset();
}

std::string BlobWriter::digest() {
  return hasher_ == nullptr ? digest_of(entry_, path_) : hasher_->finish_hex();
}

void BlobWriter::require(const std::string& digest) const {
  if (received_ != entry_.size || digest != entry_.blob()) {
    const char* algorithm = entry_.sha256.empty() ? "git SHA-1" : "SHA-256";
    throw HubError(ErrorKind::integrity,
                   subject_ + ": checksum mismatch: " + algorithm + " of the " + std::to_string(received_) +
                       " bytes received is " + digest + ", expected " + entry_.blob(),
                   "nothing was stored; try again, and check the mirror or proxy if it stays");
  }
}

void BlobWriter::discard() {
  file_.reset();
  ::unlink(path_.c_str());
}

}  // namespace neuron_kernels::hub
