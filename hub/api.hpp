// The read side of the Hub's API: refs, file trees, repositories, accounts. Routes as Hugging Face's hub has
// them; errors as hub/api_error.hpp maps them. Files come through hub/download.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hub/environment.hpp"
#include "hub/http.hpp"
#include "hub/repository.hpp"

namespace neuron_kernels::hub {

struct Ref {
  std::string name;    // "v1"
  std::string commit;  // 40 hex digits
};
struct Refs {
  std::vector<Ref> branches, tags;
};

struct TreeEntry {
  std::string path;
  bool is_folder = false;
  std::uint64_t size = 0;  // bytes of the content
  std::string oid;         // git's id: of the content, or of the pointer for an LFS file
  std::string sha256;      // of the content of an LFS file; empty for a regular one
  /// Name of the content in the cache: its digest.
  const std::string& blob() const { return sha256.empty() ? oid : sha256; }
};

struct RepoInfo {
  std::string id, author, commit, last_modified;
  bool is_private = false, is_gated = false;
  std::int64_t downloads = 0, likes = 0;
  std::vector<std::string> tags;
  std::optional<bool> trusted_publisher;
};

struct Account {
  std::string name, full_name, token_name, token_role;
  std::vector<std::string> organizations;
};

struct Organization {
  std::string name, full_name;
  bool trusted_publisher = false;
};

enum class Depth { folder, recursive };

struct ListOptions {
  std::string author, search;
  int limit = 100;
};

/// One endpoint with one token. Every call: HubError on refusal, network trouble, or an answer that is not
/// the Hub's.
class Api {
 public:
  Api(const Environment& environment, Http& http) : environment_(environment), http_(http) {}

  /// Branches and tags. A kernel that exists only as a model is told apart from one that does not exist.
  Refs refs(const RepoId& repo, int connect_retries = 2);
  /// Entries of a folder ("" is the root), all pages. Paths that would leave it are refused (HubError
  /// integrity).
  std::vector<TreeEntry> tree(const RepoId& repo, const std::string& revision, const std::string& folder,
                              Depth depth);
  RepoInfo info(const RepoId& repo, const std::string& revision = {});
  bool exists(const RepoId& repo);
  Account whoami();
  /// Nothing if it is no organization (a user, or nobody).
  std::optional<Organization> organization(const std::string& name);
  std::vector<RepoInfo> list(RepoType type, const ListOptions& options);

  /// A request to "ENDPOINT/path" with the token.
  Request request(std::string method, const std::string& path) const;
  /// GET of one file at a commit.
  Request file_request(const RepoId& repo, const std::string& commit, const std::string& path) const;
  /// Sends it; throws api_error() for anything but 2xx.
  Response send(Request request, const std::string& subject);

  const Environment& environment() const { return environment_; }
  Http& http() { return http_; }

 private:
  const Environment& environment_;
  Http& http_;
};

/// The URL in `Link: <URL>; rel="next"`; empty if there is none.
std::string next_link(std::string_view link);

}  // namespace neuron_kernels::hub
