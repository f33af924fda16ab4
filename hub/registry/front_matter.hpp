// The YAML before the text of a card: of it, what the pages show. Not a YAML parser: scalars and lists of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neuron_kernels::hub::registry {

struct FrontMatter {
  std::string license;
  std::vector<std::string> tags;
};

/// Takes the front matter off `card`: from a first line "---" to the next one. Without one, all is text.
FrontMatter take_front_matter(std::string_view& card);

}  // namespace neuron_kernels::hub::registry
