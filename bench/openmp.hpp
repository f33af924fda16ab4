// What peers with OpenMP threads share.
#pragma once

#include <omp.h>

namespace bench {

/// OpenMP threads spin for milliseconds after a parallel region, in case of another one:
/// they would take the processors of whoever is timed next.
inline void end_openmp_threads() {
  if (omp_get_max_threads() > 1) omp_pause_resource_all(omp_pause_soft);
}

}  // namespace bench
