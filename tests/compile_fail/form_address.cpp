// error: href, src and action begin with an Address
// What a browser follows is an Address: a text there could begin with "javascript:".
#include "hub/registry/html.hpp"

using namespace neuron_kernels::hub::registry;

Html link_to(const Address& address, const std::string& text) {
#ifdef BAD
  return html("<a href=\"{}\">{}</a>", text, address);
#else
  return html("<a href=\"{}\">{}</a>", address, text);
#endif
}
