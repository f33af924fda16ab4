// A card: any bytes become markup that holds nothing but what is allowed in one, or none.
#include <cstdlib>

#include "hub/registry/markdown.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/hub/markup_check.hpp"

using namespace neuron_kernels::hub::registry;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::any_answer(data, size, [](std::string_view text) {
    const Card card = read_card(text, Address::of({"kernels", "o", "n"}));
    if (!test::forbidden_tag(card.body.markup()).empty()) std::abort();
    card_summary(text);
  });
}
