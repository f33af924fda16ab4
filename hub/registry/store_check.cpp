#include "hub/registry/store_check.hpp"

#include <exception>

#include "hub/error.hpp"
#include "hub/registry/libgit2.hpp"
#include "hub/registry/objects.hpp"
#include "hub/registry/reachable.hpp"
#include "hub/registry/repositories.hpp"

namespace neuron_kernels::hub::registry {

namespace fs = std::filesystem;
using namespace libgit2;

namespace {

void check_repository(const fs::path& folder, const Objects& objects) {
  const Repository repository = open_repository(folder);
  Reachable everything(Reachable::Blobs::all);
  everything.extend(repository.get());
  for (const fs::path& link : Objects::owned_links(folder)) {
    const std::string digest = link.filename().string();
    if (objects.size(digest)) continue;
    throw HubError(ErrorKind::integrity, "the object " + digest + " that it owns is missing");
  }
}

}  // namespace

std::size_t check_store(const fs::path& root) {
  const Objects objects(root);
  const auto repositories = repositories_below(root);
  for (const auto& [key, folder] : repositories) {
    try {
      check_repository(folder, objects);
    } catch (const std::exception& error) {
      throw HubError(ErrorKind::integrity,
                     std::string(name_of(key.type)) + " " + key.id + " is damaged: " + error.what(),
                     "push what is missing again, or delete the repository");
    }
  }
  return repositories.size();
}

}  // namespace neuron_kernels::hub::registry
