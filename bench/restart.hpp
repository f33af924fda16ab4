// Starts the program again where OpenBLAS would otherwise run kernels far below the CPU
// (peer_openblas.cpp says when).
#pragma once

namespace bench {

/// Returns if OpenBLAS runs kernels of the CPU's kind, if the user chose them,
/// or if the program was already restarted.
void restart_with_best_openblas(char** argv);

}  // namespace bench
