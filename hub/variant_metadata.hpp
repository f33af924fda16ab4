// What a client needs of a variant's metadata.json, and the checks that follow from it. hub/metadata.hpp
// writes one.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hub/platform.hpp"

namespace neuron_kernels::hub {

struct KernelDependency {
  std::string repository;
  std::string revision;  // "1", or a branch, tag or commit, or a range of versions
};

struct VariantMetadata {
  std::string name, id, license, backend, package_version;
  int version = 0;
  std::vector<std::string> python_depends, archs;
  std::vector<KernelDependency> kernel_depends;
  std::string kernels_minver;
  std::string digest_algorithm;               // "sha256", "sha512"; empty if it lists no digests
  std::map<std::string, std::string> digest;  // raw digest by path relative to the variant
  std::string source, commit;                 // provenance
};

/// subject: for messages, "build/torch-cpu/metadata.json of kernel org/name".
/// errors: HubError integrity, with the key that is wrong
VariantMetadata parse_variant_metadata(std::string_view text, const std::string& subject);

/// Throws HubError incompatible if the metadata asks for a newer client, or for a device unlike `platform`'s.
void require_suitable(const VariantMetadata& metadata, const Platform& platform, const std::string& subject);

/// Throws HubError integrity for a file below `folder` that does not have its digest, or is missing. Those
/// whose SHA-256 (hex, by path) is `known` already are not read again.
void require_digests(const VariantMetadata& metadata, const std::filesystem::path& folder,
                     const std::string& subject, const std::map<std::string, std::string>& known = {});

/// Whether code built for `arch` runs on `device`. CUDA: "8.0" runs on 8.x from 8.0 on, "9.0a" on 9.0 only,
/// "10.0f" on 10.x from 10.0 on, "+PTX" on anything newer too. Others: equal.
bool arch_suits(std::string_view arch, std::string_view device, std::string_view backend);

}  // namespace neuron_kernels::hub
