#include "hub/signature_check.hpp"

#include <algorithm>

#include "hub/cache.hpp"
#include "hub/error.hpp"
#include "hub/files.hpp"
#include "hub/signature.hpp"
#include "hub/snapshot_record.hpp"
#include "hub/variant_metadata.hpp"

namespace neuron_kernels::hub {

bool is_signed(const SnapshotRecord& record, const std::string& variant) {
  return std::any_of(record.tree().begin(), record.tree().end(),
                     [path = signature_path(variant)](const TreeEntry& entry) { return entry.path == path; });
}

PublicKey require_signature(Api& api, const Pulled& pulled, const KeyStore& keys) {
  if (pulled.variant.empty()) {
    throw HubError(ErrorKind::usage, "a signature is for one variant, and all files were pulled",
                   "name one by --variant");
  }
  const RepoCache cache(api.environment(), pulled.repo);
  SnapshotRecord record(cache, pulled.commit);
  const std::string path = signature_path(pulled.variant);
  const auto file = std::find_if(record.tree().begin(), record.tree().end(),
                                 [&](const TreeEntry& entry) { return entry.path == path; });
  const std::string what = pulled.repo.text() + "@" + pulled.revision + ", " + pulled.variant;
  if (file == record.tree().end()) {
    throw HubError(ErrorKind::integrity, what + " is not signed: there is no " + path,
                   "ask its publisher for `kernels push --sign`, or pull it without --require-signature");
  }
  if (record.check(*file) != SnapshotRecord::State::ready) {
    if (pulled.from_cache)
      throw HubError(ErrorKind::not_found, path + " of " + what + " is not in the cache");
    Download(api, pulled.repo, pulled.commit, cache, record, {}).run({&*file});
    record.save();
  }
  const VariantMetadata metadata =
      parse_variant_metadata(read_file(pulled.folder / "metadata.json"), "metadata.json of " + what);
  return verify(read_file(pulled.snapshot / path),
                {.package = metadata.name,
                 .version = metadata.package_version,
                 .variant = pulled.variant,
                 .files = digest_list(pulled.folder)},
                pulled.repo.owner, keys.trusted());
}

}  // namespace neuron_kernels::hub
