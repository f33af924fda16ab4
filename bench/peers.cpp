// The list of peers.
#include <array>

#include "bench/peer.hpp"

namespace bench {

std::span<Peer* const> all_peers() {
  static const std::array<Peer*, 4> peers{&neuron_kernels_peer(), &openblas_peer(), &eigen_peer(),
                                          &onednn_peer()};
  return peers;
}

}  // namespace bench
