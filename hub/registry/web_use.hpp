// The lines that users copy from a repository's page: to pull it, and to use it from Python and CMake.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hub/api.hpp"
#include "hub/registry/html.hpp"
#include "hub/registry/repositories.hpp"
#include "hub/registry/web_variants.hpp"

namespace neuron_kernels::hub::registry {

struct UseView {
  RepositoryKey key;
  std::string base_url;                                             // of this server, as the browser names it
  std::string revision;                                             // as commands take it
  std::optional<int> version_branch{};                              // N if this is what branch vN holds
  bool trusted = false;                                             // the publisher, for get_kernel()
  bool for_python = false, for_cmake = false, has_headers = false;  // by its variants
  std::string cmake_name{};                                         // of the target; may be empty
};

/// A name for `commit` that a command can be given: "1" for branch v1, another branch or tag by its name, else
/// the commit. Whoever pushes chooses these names: one that a shell would read as more than a word is not used.
std::string command_revision(const Refs& refs, const std::string& revision, const std::string& commit);

/// What branch vN holds `commit`, if one does.
std::optional<int> version_branch_of(const Refs& refs, const std::string& commit);

/// Fills in what the variants decide.
void use_variants(UseView& view, const std::vector<VariantView>& variants);

Html use_section(const UseView& view);

}  // namespace neuron_kernels::hub::registry
