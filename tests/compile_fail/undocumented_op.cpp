// error: 'rank'
// A kernel that uses what one target happens to have does not compile against the archetype.
#include "../archetype.hpp"
#include "neuron_kernels/record/recorder.hpp"

template <neuron_kernels::Target T>
bool is_matrix(const typename T::Hbm& x) {
#ifdef BAD
  return x.rank() == 2;
#else
  return x && x.dim(1) > 0;
#endif
}

template bool is_matrix<neuron_kernels::Recorder>(const neuron_kernels::Recorder::Hbm&);
template bool is_matrix<archetype::Core>(const archetype::Hbm&);
