// error: a place in a tag must be inside of double quotes
// Escaped text ends an attribute without quotes by a blank.
#include "hub/registry/html.hpp"

using namespace neuron_kernels::hub::registry;

Html titled(const std::string& text) {
#ifdef BAD
  return html("<b title={}>x</b>", text);
#else
  return html("<b title=\"{}\">x</b>", text);
#endif
}
