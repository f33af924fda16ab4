// The registry's answers to requests: who may do what, and the routes of the Hub protocol by file.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hub/registry/accounts.hpp"
#include "hub/registry/git_repository.hpp"
#include "hub/registry/http_server.hpp"
#include "hub/registry/known_blobs.hpp"
#include "hub/registry/known_files.hpp"
#include "hub/registry/objects.hpp"
#include "hub/registry/rate_limit.hpp"
#include "hub/registry/repositories.hpp"
#include "hub/registry/tickets.hpp"

namespace neuron_kernels::hub::registry {

struct ServiceLimits {
  std::uint64_t lfs_from_bytes = 1 << 20;           // files of this size and above are kept outside git
  std::uint64_t multipart_from_bytes = 256u << 20;  // uploads of this size and above may come in parts
  std::uint64_t part_bytes = 64u << 20;
  std::size_t json_bytes = 8u << 20;
  std::uint64_t commit_bytes = std::uint64_t{1} << 30;
  int page_entries = 1000;
  int ticket_seconds = 6 * 3600;
  Rate rate;  // of requests by each token, or by each address without one
};

/// One request with what is known of who sent it.
struct Call {
  RequestHead head;
  std::vector<std::string> parts;  // decoded
  Identity who;
};

enum class Right { read, write };

class Service final : public Router {
 public:
  /// A root that is read-only is served as it is. Errors: HubError conflict if another process serves this
  /// root.
  explicit Service(const std::filesystem::path& root, const ServiceLimits& limits = {});

  std::unique_ptr<Exchange> begin(const RequestHead& head) override;

  Accounts& accounts() { return accounts_; }
  Repositories& repositories() { return repositories_; }
  const Objects& objects() const { return objects_; }
  std::uint64_t requests() const { return requests_; }
  bool writable() const;

 private:
  using Answer = std::unique_ptr<Exchange>;
  using Parts = std::vector<std::string>;  // what is left of an address

  // service.cpp: from addresses to the functions below
  Answer route(const RequestHead& head);
  Answer api(const Call& call);
  Answer repository_api(const Call& call, const RepositoryKey& key, const Parts& rest);
  Answer read_api(const Call& call, const RepositoryKey& key, const std::string& verb, const Parts& rest);
  Answer write_api(const Call& call, const RepositoryKey& key, const std::string& verb, const Parts& rest);
  Answer outside_api(const Call& call);

  // access.cpp
  /// Nothing if the credentials are nobody's.
  std::optional<Identity> identify(const RequestHead& head) const;
  /// Who asks, counted. Errors: HttpError 401, 429.
  Identity admit(const RequestHead& head);
  void count(const std::string& who);
  /// The settings of a repository that is there and that the asker may know of.
  std::optional<RepositorySettings> readable(const Call& call, const RepositoryKey& key) const;
  RepositorySettings require(const Call& call, const RepositoryKey& key, Right right) const;
  std::vector<Repositories::Entry> visible(const Call& call, RepositoryType type, std::string_view search,
                                           std::string_view owner) const;
  static bool passes_gate(const Call& call, const RepositoryKey& key, const RepositorySettings& settings);
  void require_gate(const Call& call, const RepositoryKey& key, const RepositorySettings& settings) const;
  /// Errors: HttpError 507 if the root is read-only.
  void require_writable() const;
  /// Also while the root is read-only.
  std::filesystem::path temporary_folder() const;
  GitRepository open(const RepositoryKey& key) const;
  static std::string require_revision(const GitRepository& repository, const std::string& revision);
  /// For a new reference. Under the lock of the repository.
  static std::string require_whole_revision(const GitRepository& repository, const std::string& revision);

  // identity_routes.cpp
  Answer whoami(const Call& call);
  Answer organisation_overview(const std::string& name);
  Answer metrics();

  // read_routes.cpp
  Answer list_repositories(const Call& call, RepositoryType type);
  Answer info(const Call& call, const RepositoryKey& key, const std::string& revision);
  Answer refs(const Call& call, const RepositoryKey& key);
  Answer tree(const Call& call, const RepositoryKey& key, const std::string& revision,
              const std::string& folder);
  Answer paths_info(const Call& call, const RepositoryKey& key, const std::string& revision);
  Answer commits(const Call& call, const RepositoryKey& key, const std::string& revision);
  nlohmann::ordered_json info_of(const RepositoryKey& key, const RepositorySettings& settings,
                                 const GitRepository& repository, const std::string& commit, bool files,
                                 bool blobs) const;

  // file_routes.cpp
  Answer resolve(const Call& call, const RepositoryKey& key, const std::string& revision,
                 const std::string& path);
  Reply file_reply(const RequestHead& head, Fields fields, const std::string& etag,
                   std::string content) const;
  Reply object_reply(const RequestHead& head, Fields fields, const std::string& etag,
                     const std::string& sha256) const;
  Reply lfs_reply(const RequestHead& head, const std::string& commit, const std::string& path,
                  const LfsPointer& pointer) const;

  // manage_routes.cpp
  Answer create_repository(const Call& call);
  Answer delete_repository(const Call& call);
  Answer move_repository(const Call& call);
  Answer settings(const Call& call, const RepositoryKey& key);
  Answer branch(const Call& call, const RepositoryKey& key, const std::string& name);
  Answer tag(const Call& call, const RepositoryKey& key, const std::string& name);

  // commit_route.cpp
  Answer preupload(const Call& call, const RepositoryKey& key, const std::string& revision);
  Answer commit(const Call& call, const RepositoryKey& key, const std::string& revision);
  friend class CommitExchange;

  // lfs_routes.cpp
  Answer lfs_batch(const Call& call, const RepositoryKey& key);
  Answer lfs_transfer(const Call& call, const Parts& rest);
  friend class ObjectUpload;

  // xet_routes.cpp
  Answer xet_token(const Call& call, const RepositoryKey& key, Right right);
  Answer xet(const Call& call, const Parts& rest);
  Reply ingest_shard(const RepositoryKey& key, const std::string& shard);

  // web_routes.cpp: pages for browsers
  Answer web(const Call& call, const Parts& address);  // nothing if it is the address of no page
  Answer web_list(const Call& call, std::optional<RepositoryType> type, const std::string& owner);
  Answer web_package(const Call& call, const RepositoryKey& key);
  /// README.md of main, or as much of it as a page shows.
  std::optional<std::string> web_readme(const GitRepository& repository) const;
  Answer web_folder(const Call& call, const RepositoryKey& key, const std::string& revision,
                    const std::string& folder);
  Answer web_file(const Call& call, const RepositoryKey& key, const std::string& revision,
                  const std::string& path);

  std::filesystem::path root_;
  Descriptor lock_;  // of the root, as long as this lives
  ServiceLimits limits_;
  Accounts accounts_;
  Objects objects_;
  Repositories repositories_;
  Tickets tickets_;
  RateLimiter limiter_;
  KnownFiles known_files_;
  mutable KnownBlobs known_blobs_;
  std::string store_id_;  // differs from registry to registry: Xet clients remember what a store has
  std::atomic<std::uint64_t> requests_ = 0, refused_ = 0;
};

/// Takes the type off the parts of an address outside /api, where models have none: "kernels/owner/name".
RepositoryType take_type(std::vector<std::string>& parts);

/// The answer to `who` without the right to write to `key`: members learn that their token only reads.
HttpError no_write_right(const Identity& who, const RepositoryKey& key, std::string to_strangers);

std::size_t page_start(const RequestHead& head);
std::size_t page_length(const RequestHead& head, std::size_t usual);
std::string next_link(const RequestHead& head, std::size_t start);

/// A page of `items` by the parameters limit and cursor; adds the Link to the next one to `fields`.
template <class Item>
std::vector<Item> page_of(const RequestHead& head, const std::vector<Item>& items, std::size_t usual,
                          Fields& fields) {
  const std::size_t start = std::min(page_start(head), items.size());
  const std::size_t length = std::min(page_length(head, usual), items.size() - start);
  if (start + length < items.size()) fields.emplace_back("Link", next_link(head, start + length));
  const auto first = items.begin() + static_cast<std::ptrdiff_t>(start);
  return {first, first + static_cast<std::ptrdiff_t>(length)};
}

}  // namespace neuron_kernels::hub::registry
