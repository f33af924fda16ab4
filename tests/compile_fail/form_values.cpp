// error: more values than places {}
#include "hub/registry/html.hpp"

using namespace neuron_kernels::hub::registry;

Html both(const std::string& first, const std::string& second) {
#ifdef BAD
  return html("<b>{}</b>", first, second);
#else
  return html("<b>{}{}</b>", first, second);
#endif
}
