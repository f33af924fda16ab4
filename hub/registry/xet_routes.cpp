// Xet uploads: xorbs are kept until a shard says which files their chunks make; files become plain objects.
#include <fcntl.h>

#include "hub/error.hpp"
#include "hub/registry/service.hpp"
#include "hub/registry/xet.hpp"

namespace neuron_kernels::hub::registry {

using json = nlohmann::ordered_json;

namespace {
constexpr std::size_t most_xorb_bytes = 96u << 20, most_shard_bytes = 64u << 20;  // clients stay below 64 MiB
constexpr int token_seconds = 3600;

// Clients remember by address which xorbs a store has, and send them once. So each repository has an address
// of its own: nobody can name a chunk that was sent for another one.
std::string space_of(const RepositoryKey& key) {
  return sha256_hex(std::string(name_of(key.type)) + "/" + key.id).substr(0, 32);
}

/// A xorb on its way to the disk.
class XorbUpload final : public Exchange {
 public:
  XorbUpload(const Objects& objects, std::filesystem::path file)
      : file_(std::move(file)), incoming_(objects) {}
  void body(Bytes data) override {
    if (incoming_.size() + data.size() > most_xorb_bytes)
      throw HttpError{413, "a xorb of more than 96 MiB", {}, {}};
    incoming_.write(data);
  }
  Reply finish() override {
    parse_xorb_file(incoming_.fd(), incoming_.size());
    const bool there = std::filesystem::exists(file_);
    incoming_.keep_as(file_);
    return Reply::json(json{{"was_inserted", !there}}.dump());
  }

 private:
  std::filesystem::path file_;
  Objects::Incoming incoming_;
};
}  // namespace

std::unique_ptr<Exchange> Service::xet_token(const Call& call, const RepositoryKey& key, Right right) {
  require(call, key, right);
  return without_body([this, base = call.head.base_url, key, right] {
    const json what{{"what", right == Right::write ? "xet-write" : "xet-read"},
                    {"type", name_of(key.type)},
                    {"id", key.id}};
    const std::string token = tickets_.issue(what, token_seconds),
                      url = base + "/_xet/" + store_id_ + "-" + space_of(key);
    const std::int64_t until = std::time(nullptr) + token_seconds;
    Reply reply = Reply::json(json{{"casUrl", url}, {"exp", until}, {"accessToken", token}}.dump());
    reply.fields.emplace_back("X-Xet-Cas-Url", url);
    reply.fields.emplace_back("X-Xet-Access-Token", token);
    reply.fields.emplace_back("X-Xet-Token-Expiration", std::to_string(until));
    return reply;
  });
}

std::unique_ptr<Exchange> Service::xet(const Call& call, const Parts& rest) {
  // rest: address of the repository's space, v1, what, ...
  const std::string_view field = call.head.field("Authorization");
  const auto right = field.starts_with("Bearer ") ? tickets_.open(field.substr(7)) : std::nullopt;
  const bool known = rest.size() > 2 && rest[1] == "v1" && (rest[2] == "xorbs" || rest[2] == "shards");
  if (!known || call.head.method != "POST") throw HttpError{404, "Not Found", {}, {}};
  if (!right || right->at("what") != "xet-write")
    throw HttpError{401, "a Xet write token is needed here", {}, {}};
  const RepositoryKey key{*type_named(right->at("type").get<std::string>()),
                          right->at("id").get<std::string>()};
  if (rest[0] != store_id_ + "-" + space_of(key)) throw HttpError{404, "Not Found", {}, {}};
  if (rest[2] == "shards") {
    return with_body(most_shard_bytes,
                     [this, key](const std::string& shard) { return ingest_shard(key, shard); });
  }
  if (rest.size() != 5 || !is_hex(rest[4], 64)) throw HttpError{404, "Not Found", {}, {}};
  const std::filesystem::path file = root_ / "xorbs" / space_of(key) / rest[4];
  return std::make_unique<XorbUpload>(objects_, file);
}

Reply Service::ingest_shard(const RepositoryKey& key, const std::string& shard) {
  const std::filesystem::path xorbs = root_ / "xorbs" / space_of(key);
  std::string open_name;  // the xorb that was read last: segments of a file mostly stay in one
  Descriptor xorb;
  std::vector<XorbChunk> chunks;
  for (const ShardFile& file : parse_shard(shard)) {
    Objects::Incoming incoming(objects_);
    for (const ShardSegment& segment : file.segments) {
      if (segment.xorb != open_name) {
        const std::filesystem::path path = xorbs / segment.xorb;
        xorb = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
        if (!xorb) {
          throw HttpError{
              400, "the shard refers to the xorb " + segment.xorb + ", which was not uploaded", {}, {}};
        }
        chunks = parse_xorb_file(xorb.get(), std::filesystem::file_size(path));
        open_name = segment.xorb;
      }
      if (segment.first_chunk > segment.end_chunk || segment.end_chunk > chunks.size()) {
        throw HttpError{
            400, "the shard refers to chunks that the xorb " + segment.xorb + " does not have", {}, {}};
      }
      for (std::uint32_t i = segment.first_chunk; i < segment.end_chunk; ++i) {
        const std::string packed = read_at(xorb.get(), chunks[i].offset, chunks[i].packed_bytes);
        incoming.write(bytes_of(unpack_chunk(packed, chunks[i])));
      }
    }
    const std::string digest = incoming.finish();
    if (!file.sha256.empty() && digest != file.sha256 && xet_hex(from_hex(digest)) != file.sha256) {
      throw HttpError{
          400,
          "a file of the shard has the SHA-256 " + digest + ", not " + file.sha256 + " as it says",
          {},
          {}};
    }
    incoming.keep_for(repositories_.folder(key));
  }
  return Reply::json(R"({"result":1})");
}

}  // namespace neuron_kernels::hub::registry
