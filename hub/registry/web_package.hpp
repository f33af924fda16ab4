// The page of a repository: how to use it, its card, variants, files and versions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hub/registry/markdown.hpp"
#include "hub/registry/web_files.hpp"
#include "hub/registry/web_use.hpp"
#include "hub/registry/web_variants.hpp"
#include "hub/revision.hpp"

namespace neuron_kernels::hub::registry {

/// What a page shows of the content; without it if the gate is closed.
struct ContentView {
  std::vector<VariantView> variants;
  FolderView files;
  UseView use;
  std::optional<Card> card{};
};

struct PackageView {
  RepositoryKey key;
  RepositorySettings settings;
  std::string revision{}, commit{}, updated{};
  bool trusted = false;  // the publisher
  std::vector<PublishedVersion> versions{};
  std::optional<ContentView> content{};
};

Page package_page(const PackageView& view);

}  // namespace neuron_kernels::hub::registry
