// The card of a repository: its README.md as markup that runs nothing and loads nothing from elsewhere.
//
// Raw HTML is dropped; links lead to http, https and mailto; pictures come from the repository itself.
#pragma once

#include <string>
#include <string_view>

#include "hub/registry/front_matter.hpp"
#include "hub/registry/html.hpp"

namespace neuron_kernels::hub::registry {

struct Card {
  static constexpr std::size_t most_bytes = 128 << 10;  // that are shown: parsing hostile text takes 1 s then

  FrontMatter front;
  Html body;
  bool cut = false;  // longer than most_bytes
};

/// home: the repository's page; relative links lead to files of its main branch.
/// cost: linear for what people write. Text whose nesting or references would make much more of it is shown as
/// it is.
Card read_card(std::string_view readme, const Address& home);

/// The first paragraph in plain text, at most about 200 bytes; empty if there is none.
std::string card_summary(std::string_view readme);

}  // namespace neuron_kernels::hub::registry
