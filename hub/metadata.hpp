// metadata.json of a variant: what Hugging Face's kernels (get_kernel) and `kernels pull` read about it.
#pragma once

#include <filesystem>
#include <string>

#include "hub/manifest.hpp"

namespace neuron_kernels::hub {

struct VariantFacts {
  std::string id;  // name of the imported module and of the operators: unique to version and content
  std::vector<std::string> python_depends;
  std::string commit;  // of the package's sources, empty if they are in no git repository
  bool dirty = false;  // whether they differ from it
};

/// Facts about the sources in `folder` from git.
VariantFacts facts_of(const std::filesystem::path& folder);

/// The text of metadata.json for the files below `folder`, each with its SHA-256.
/// Besides the Hub's keys: package-version (X.Y.Z) and dependencies ({"owner/name": "range"}), which
/// kernel-depends repeats by major version.
std::string metadata_text(const Manifest& manifest, const VariantFacts& facts,
                          const std::filesystem::path& folder);

}  // namespace neuron_kernels::hub
