// The page that lists repositories: all, those of a type or an owner, or what a search found.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hub/registry/web_layout.hpp"

namespace neuron_kernels::hub::registry {

struct ListedRepository {
  RepositoryKey key;
  RepositorySettings settings;
  std::string summary, version, updated;  // may be empty
};

struct ListView {
  std::optional<RepositoryType> type;  // none: of all types
  std::string owner, search;           // may be empty
  Paging paging;
  std::vector<ListedRepository> entries;  // of this page
};

Page list_page(const ListView& view);

}  // namespace neuron_kernels::hub::registry
