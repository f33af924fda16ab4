// git-lfs: which objects are wanted, and uploads in one piece or in parts. Addresses carry tickets.
#include <algorithm>

#include "hub/error.hpp"
#include "hub/registry/service.hpp"

namespace neuron_kernels::hub::registry {

using json = nlohmann::ordered_json;

namespace {

json right_to(const char* what, const RepositoryKey& key, const std::string& oid, std::uint64_t size) {
  return {{"what", what}, {"type", name_of(key.type)}, {"id", key.id}, {"oid", oid}, {"size", size}};
}

RepositoryKey key_of(const nlohmann::json& right) {
  return {*type_named(right.at("type").get<std::string>()), right.at("id").get<std::string>()};
}

}  // namespace

std::unique_ptr<Exchange> Service::lfs_batch(const Call& call, const RepositoryKey& key) {
  const RepositorySettings found = require(call, key, Right::read);
  require_gate(call, key, found);
  return with_body(limits_.json_bytes, [this, call, key](const std::string& text) {
    const json body = json::parse(text);
    const bool upload = body.at("operation").get<std::string>() == "upload";
    if (upload) require(call, key, Right::write);
    const json transfers = body.value("transfers", json::array());
    const bool may_split = std::find(transfers.begin(), transfers.end(), "multipart") != transfers.end();
    const std::filesystem::path folder = repositories_.folder(key);
    const std::string base = call.head.base_url + "/_lfs/";
    std::string transfer = "basic";
    json objects = json::array();
    for (const json& object : body.at("objects")) {
      const std::string oid = object.at("oid").get<std::string>();
      const auto size = object.at("size").get<std::uint64_t>();
      json answer{{"oid", oid}, {"size", size}, {"authenticated", true}};
      const auto stored = upload ? objects_.claim(oid, folder) : objects_.owned_size(oid, folder);
      const auto ticket = [&](const char* what) {
        return tickets_.issue(right_to(what, key, oid, size), limits_.ticket_seconds);
      };
      if (!is_hex(oid, 64)) {
        answer["error"] = {{"code", 422}, {"message", "oid is not a SHA-256"}};
      } else if (!upload && stored) {
        answer["actions"] = {{"download", {{"href", base + "get/" + ticket("get")}}}};
      } else if (!upload) {
        answer["error"] = {{"code", 404}, {"message", "Object does not exist"}};
      } else if (stored != size) {
        json action{{"href", base + "put/" + ticket("put")}};
        if (may_split && size >= limits_.multipart_from_bytes) {
          transfer = "multipart";
          const std::string parts = ticket("parts");
          action = {{"href", base + "complete/" + parts},
                    {"header", {{"chunk_size", std::to_string(limits_.part_bytes)}}}};
          const std::uint64_t count = (size + limits_.part_bytes - 1) / limits_.part_bytes;
          for (std::uint64_t i = 1; i <= count; ++i) {
            action["header"][std::to_string(i)] = base + "part/" + parts + "/" + std::to_string(i);
          }
        }
        answer["actions"] = {{"upload", std::move(action)},
                             {"verify", {{"href", base + "verify/" + ticket("verify")}}}};
      }
      objects.push_back(std::move(answer));
    }
    const json answer{{"transfer", transfer}, {"objects", std::move(objects)}, {"hash_algo", "sha256"}};
    return Reply::of("application/vnd.git-lfs+json", answer.dump());
  });
}

/// The body of one PUT: a whole object, or a part of one.
class ObjectUpload final : public Exchange {
 public:
  ObjectUpload(Service& service, const nlohmann::json& right, std::filesystem::path part)
      : service_(service),
        key_(key_of(right)),
        oid_(right.at("oid").get<std::string>()),
        most_(part.empty() ? right.at("size").get<std::uint64_t>() : service.limits_.part_bytes),
        part_(std::move(part)),
        incoming_(service.objects_) {}

  void body(Bytes data) override {
    if (incoming_.size() + data.size() > most_) {
      throw HttpError{413, "more bytes than the " + std::to_string(most_) + " that were announced", {}, {}};
    }
    incoming_.write(data);
  }

  Reply finish() override {
    const std::string& digest = incoming_.finish();
    Reply reply;
    reply.fields.emplace_back("ETag", "\"" + digest.substr(0, 32) + "\"");
    if (!part_.empty()) {
      make_folders(part_.parent_path());
      std::filesystem::rename(incoming_.path(), part_);
      return reply;
    }
    if (incoming_.size() != most_ || digest != oid_) {
      throw HttpError{
          400, "the bytes have the SHA-256 " + digest + ", not " + oid_ + " as announced", {}, {}};
    }
    if (!service_.repositories_.find(key_)) throw HttpError{404, "Repository not found", "RepoNotFound", {}};
    incoming_.keep_for(service_.repositories_.folder(key_));
    return reply;
  }

 private:
  Service& service_;
  RepositoryKey key_;
  std::string oid_;
  std::uint64_t most_;
  std::filesystem::path part_;
  Objects::Incoming incoming_;
};

std::unique_ptr<Exchange> Service::lfs_transfer(const Call& call, const Parts& rest) {
  const std::string what = rest.empty() ? "" : rest[0], method = call.head.method;
  const auto right = rest.size() > 1 ? tickets_.open(rest[1]) : std::nullopt;
  if (!right) throw HttpError{403, "this address has expired or was not made by this server", {}, {}};
  const std::string kind = right->at("what").get<std::string>();
  const std::string oid = right->at("oid").get<std::string>();
  const RepositoryKey key = key_of(*right);
  const std::filesystem::path parts = root_ / "tmp" / ("parts-" + sha256_hex(rest[1]));
  if (what == "put" && kind == "put" && method == "PUT")
    return std::make_unique<ObjectUpload>(*this, *right, "");
  if (what == "part" && kind == "parts" && method == "PUT" && rest.size() == 3 &&
      rest[2].find_first_not_of("0123456789") == std::string::npos && rest[2].size() < 6) {
    return std::make_unique<ObjectUpload>(*this, *right, parts / rest[2]);
  }
  if (what == "complete" && kind == "parts" && method == "POST") {
    return with_body(limits_.json_bytes, [this, key, oid, parts,
                                          size = right->at("size").get<std::uint64_t>()](const std::string&) {
      Objects::Incoming whole(objects_);
      const std::uint64_t count = (size + limits_.part_bytes - 1) / limits_.part_bytes;
      for (std::uint64_t i = 1; i <= count; ++i) whole.append(parts / std::to_string(i));
      if (whole.finish() != oid || whole.size() != size) {
        throw HttpError{
            400, "the parts have the SHA-256 " + whole.finish() + ", not " + oid + " as announced", {}, {}};
      }
      whole.keep_for(repositories_.folder(key));
      std::filesystem::remove_all(parts);
      return Reply::json("{}");
    });
  }
  if (what == "verify" && kind == "verify" && method == "POST") {
    return with_body(limits_.json_bytes, [this, key, oid](const std::string& text) {
      const json body = json::parse(text);
      const auto size = objects_.claim(oid, repositories_.folder(key));
      if (!size || body.at("oid") != oid || body.at("size").get<std::uint64_t>() != *size) {
        throw HttpError{404, "object not found or size differs", {}, {}};
      }
      return Reply::json("{}");
    });
  }
  if (what == "get" && kind == "get" && call.head.is_get()) {
    return without_body([this, head = call.head, key, oid] {
      if (!objects_.owned_by(oid, repositories_.folder(key)))
        throw HttpError{404, "object not found", {}, {}};
      return object_reply(head, {{"Content-Type", "application/octet-stream"}, {"ETag", "\"" + oid + "\""}},
                          oid, oid);
    });
  }
  throw HttpError{404, "Not Found", {}, {}};
}

}  // namespace neuron_kernels::hub::registry
