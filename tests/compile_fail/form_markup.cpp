// error: markup as the value of an attribute
// Markup holds quotes, which would end the attribute.
#include "hub/registry/html.hpp"

using namespace neuron_kernels::hub::registry;

Html titled(const Html& markup) {
#ifdef BAD
  return html("<b title=\"{}\">x</b>", markup);
#else
  return html("<b title=\"x\">{}</b>", markup);
#endif
}
