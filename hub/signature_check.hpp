// Whether a package that was pulled is signed by a key that the user trusts for its owner.
#pragma once

#include "hub/api.hpp"
#include "hub/keys.hpp"
#include "hub/pull.hpp"

namespace neuron_kernels::hub {

/// Whether the commit has a signature of the variant, be it good or not.
bool is_signed(const SnapshotRecord& record, const std::string& variant);

/// The key that signed the variant.
/// errors: HubError integrity if there is no signature, no trusted key made it, or a file differs from what
/// it signs
PublicKey require_signature(Api& api, const Pulled& pulled, const KeyStore& keys = KeyStore());

}  // namespace neuron_kernels::hub
