// resolve: the bytes of a file at a revision, whole or in part.
#include <fcntl.h>

#include <cstdio>

#include "hub/digest.hpp"
#include "hub/error.hpp"
#include "hub/registry/service.hpp"
#include "hub/url.hpp"

namespace neuron_kernels::hub::registry {

namespace {

// Of a file in git. An answer waits for as long as its client takes, and there may be hundreds of them.
constexpr std::uint64_t most_bytes_in_memory = 128 << 10;

struct Part {
  std::uint64_t first = 0, bytes = 0;
  bool partial = false;
};

/// What a Range field asks for. One range only; anything else is answered by the whole. Errors: HttpError
/// 416.
Part part_of(std::string_view range, std::uint64_t size) {
  Part whole{0, size, false};
  unsigned long long first = 0, last = 0;
  const std::string text(range);
  if (text.find(',') != text.npos) return whole;
  int used = 0;
  if (std::sscanf(text.c_str(), "bytes=-%llu%n", &last, &used) == 1 &&
      text.size() == static_cast<std::size_t>(used)) {
    if (size == 0 || last == 0) {
      throw HttpError{
          416, "Requested Range Not Satisfiable", {}, {{"Content-Range", "bytes */" + std::to_string(size)}}};
    }
    const std::uint64_t bytes = std::min<std::uint64_t>(last, size);
    return {size - bytes, bytes, true};
  }
  const int fields = std::sscanf(text.c_str(), "bytes=%llu-%llu", &first, &last);
  if (fields < 1 || text.find('-') == text.npos) return whole;
  if (fields == 2 && last < first) return whole;  // not a valid range: as if there were none
  if (first >= size) {
    throw HttpError{
        416, "Requested Range Not Satisfiable", {}, {{"Content-Range", "bytes */" + std::to_string(size)}}};
  }
  const std::uint64_t end = fields == 2 ? std::min<std::uint64_t>(last + 1, size) : size;
  return {first, end - first, true};
}

bool matches(std::string_view if_none_match, const std::string& etag) {
  return if_none_match.find(etag) != std::string_view::npos || if_none_match == "*";
}

Part prepare(const RequestHead& head, Reply& reply, const std::string& etag, std::uint64_t size) {
  const std::string_view if_range = head.field("If-Range");
  const bool ranged = if_range.empty() || if_range.find(etag) != std::string_view::npos;
  const Part part = ranged ? part_of(head.field("Range"), size) : Part{0, size, false};
  if (part.partial) {
    reply.status = 206;
    reply.fields.emplace_back("Content-Range", "bytes " + std::to_string(part.first) + "-" +
                                                   std::to_string(part.first + part.bytes - 1) + "/" +
                                                   std::to_string(size));
  }
  return part;
}

Fields fields_of(const std::string& commit, const std::string& path, const std::string& etag) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return {{"X-Repo-Commit", commit},
          {"ETag", "\"" + etag + "\""},
          {"Accept-Ranges", "bytes"},
          {"Content-Type", "application/octet-stream"},
          {"Content-Disposition", "inline; filename*=UTF-8''" + encode_segment(name)},
          // What a package holds is data, whatever it says: a browser must not run it as this site's.
          {"Content-Security-Policy", "default-src 'none'; sandbox"},
          {"X-Content-Type-Options", "nosniff"}};
}

}  // namespace

Reply Service::file_reply(const RequestHead& head, Fields fields, const std::string& etag,
                          std::string content) const {
  Reply reply;
  reply.fields = std::move(fields);
  if (matches(head.field("If-None-Match"), etag)) {
    reply.status = 304;
    return reply;
  }
  const Part part = prepare(head, reply, etag, content.size());
  if (part.bytes > most_bytes_in_memory && head.method != "HEAD") {
    try {
      const TemporaryFile file(temporary_folder() / "answer");
      write_all(file.fd(), bytes_of(content), file.path());
      reply.file = Descriptor(::fcntl(file.fd(), F_DUPFD_CLOEXEC, 0));
    } catch (const HubError&) {  // a full disk does not keep anyone from reading
    }
  }
  if (reply.file) {
    reply.file_offset = part.first;
    reply.file_bytes = part.bytes;
  } else {
    reply.body = part.partial ? content.substr(part.first, part.bytes) : std::move(content);
  }
  return reply;
}

Reply Service::object_reply(const RequestHead& head, Fields fields, const std::string& etag,
                            const std::string& sha256) const {
  Reply reply;
  reply.fields = std::move(fields);
  if (matches(head.field("If-None-Match"), etag)) {
    reply.status = 304;
    return reply;
  }
  const auto size = objects_.size(sha256);
  if (!size) throw HubError(ErrorKind::not_found, "the object " + sha256 + " is gone");
  const Part part = prepare(head, reply, etag, *size);
  if (part.bytes == 0) return reply;
  reply.file = Descriptor(::open(objects_.path(sha256).c_str(), O_RDONLY | O_CLOEXEC));
  if (!reply.file) throw HubError(ErrorKind::storage, "cannot read the object " + sha256);
  reply.file_offset = part.first;
  reply.file_bytes = part.bytes;
  return reply;
}

std::unique_ptr<Exchange> Service::resolve(const Call& call, const RepositoryKey& key,
                                           const std::string& revision, const std::string& path) {
  require_gate(call, key, require(call, key, Right::read));
  // Fields that the reply depends on; the head itself is not kept beyond the request.
  return without_body([this, head = call.head, key, revision, path] {
    const bool exact = is_hex(revision, 40);
    const auto [known, era] = exact ? known_files_.find({key, revision, path}) : KnownFiles::Found();
    // gc takes from a repository what it names no more, also while this is remembered.
    if (known && objects_.owned_by(known->sha256, repositories_.folder(key)))
      return lfs_reply(head, revision, path, *known);
    const GitRepository repository = open(key);
    const std::string commit = require_revision(repository, revision);
    const auto entry = repository.entry(commit, path);
    if (!entry || entry->folder) {
      throw HttpError{404, "Entry not found", "EntryNotFound", {{"X-Repo-Commit", commit}}};
    }
    if (!entry->lfs) {
      return file_reply(head, fields_of(commit, path, entry->oid), entry->oid, repository.blob(entry->oid));
    }
    if (exact) known_files_.keep({key, commit, path}, *entry->lfs, era);
    return lfs_reply(head, commit, path, *entry->lfs);
  });
}

Reply Service::lfs_reply(const RequestHead& head, const std::string& commit, const std::string& path,
                         const LfsPointer& pointer) const {
  Fields fields = fields_of(commit, path, pointer.sha256);
  fields.emplace_back("X-Linked-ETag", "\"" + pointer.sha256 + "\"");
  fields.emplace_back("X-Linked-Size", std::to_string(pointer.size));
  return object_reply(head, std::move(fields), pointer.sha256, pointer.sha256);
}

}  // namespace neuron_kernels::hub::registry
