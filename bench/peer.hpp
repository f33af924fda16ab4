// A peer: one library in the comparison.
// A new one is a file with a class like those in peer_*.cpp, one line in peers.cpp, and nothing else.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bench/problem.hpp"

namespace bench {

/// One way of a peer to solve a problem. start(problem) may do once what a user would do once (pack weights,
/// make a plan) and returns the call that is timed: it reads the problem's inputs and writes its dst.
template <class Problem>
struct Entry {
  std::string name;
  std::function<std::function<void()>(const Problem&)> start;
};
template <class Problem>
using Entries = std::vector<Entry<Problem>>;

class Peer {
 public:
  virtual ~Peer() = default;
  /// Name, version and which of its kernels it picks on this CPU.
  virtual std::string description() const = 0;
  /// Threads of all calls from now on.
  virtual void set_threads(int threads) = 0;
  /// Ends threads that would go on spinning while others are timed.
  virtual void rest() {}

  /// How the peer solves a problem of these sizes (the pointers are not set yet);
  /// none: it does not take part.
  virtual Entries<Matmul> matmul(const Matmul& sizes) const;
  virtual Entries<Attention> attention(const Attention& sizes) const;
  virtual Entries<Mlp> mlp(const Mlp& sizes) const;
  virtual Entries<Norm> norm(const Norm& sizes) const;
};

inline Entries<Matmul> Peer::matmul(const Matmul&) const { return {}; }
inline Entries<Attention> Peer::attention(const Attention&) const { return {}; }
inline Entries<Mlp> Peer::mlp(const Mlp&) const { return {}; }
inline Entries<Norm> Peer::norm(const Norm&) const { return {}; }

Peer& neuron_kernels_peer();
Peer& eigen_peer();
Peer& onednn_peer();
Peer& openblas_peer();

/// All of the above, ours first.
std::span<Peer* const> all_peers();

}  // namespace bench
