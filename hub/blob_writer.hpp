// Receives one file into a partial file and checks its digest; it goes on where an earlier process ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "hub/api.hpp"
#include "hub/files.hpp"
#include "hub/stream_hasher.hpp"

namespace neuron_kernels::hub {

class BlobWriter final : public Sink {
 public:
  /// `partial` may hold the beginning of the content. subject: for messages, "build/x.so of kernel org/name".
  BlobWriter(const TreeEntry& entry, std::filesystem::path partial, std::string subject);
  ~BlobWriter() override;

  std::uint64_t offset() const override { return received_; }
  void begin(std::uint64_t first_byte, const Response& response) override;
  void write(Bytes data) override;

  /// Writes what is left; the file is then closed, at path(). What comes next is digest(), then require().
  void close();
  /// Of the content; on any thread.
  std::string digest();
  /// That all bytes came and have the digest of the listing.
  /// errors: HubError integrity
  void require(const std::string& digest) const;
  /// Removes the partial file.
  void discard();

  const std::filesystem::path& path() const { return path_; }
  /// Bytes that were in the file before; an error of the digest may then be theirs.
  std::uint64_t resumed_from() const { return resumed_from_; }

  /// Called with the bytes of each piece; negative when the server starts anew.
  std::function<void(std::int64_t)> on_bytes;

 private:
  void restart();
  void flush();
  void store(Bytes data, std::uint64_t at) const;
  std::unique_ptr<StreamHasher> new_hasher() const;
  void take_existing();

  const TreeEntry& entry_;
  std::filesystem::path path_;
  std::string subject_;
  Descriptor file_;
  std::unique_ptr<StreamHasher> hasher_;  // of a large file; a small one is read again
  StreamHasher::Buffer buffer_;
  std::uint64_t received_ = 0, resumed_from_ = 0;
};

}  // namespace neuron_kernels::hub
