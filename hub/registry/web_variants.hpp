// The build variants of a package as a table: what each runs on, by its name and its metadata.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hub/registry/html.hpp"
#include "hub/variant.hpp"
#include "hub/variant_metadata.hpp"

namespace neuron_kernels::hub::registry {

struct VariantView {
  std::string name;  // of the folder below build/
  Address folder;
  std::uint64_t bytes = 0;
  int files = 0;
  std::optional<VariantMetadata> metadata{};
  std::string problem{};  // why there is no metadata
};

/// "PyTorch 2.10 or newer, CUDA 13.0, x86_64 linux"
std::string platform_text(const Variant& variant);

Html variants_table(const std::vector<VariantView>& variants);

}  // namespace neuron_kernels::hub::registry
