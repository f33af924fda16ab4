// error: element types are float, neuron_kernels::bf16 and neuron_kernels::f16
// A tensor of a type that no kernel takes is refused where the view is made, with the list of those allowed.
#include "neuron_kernels/core/view.hpp"

#ifdef BAD
using Element = double;
#else
using Element = float;
#endif

neuron_kernels::ConstView view_of(const Element* data) { return {data, {2, 3}}; }
