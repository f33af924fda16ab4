// A case: one problem, the contestants for it, and what the right answer is.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/peer.hpp"
#include "bench/tensor.hpp"

namespace bench {

/// A case with its data in memory.
class OpenCase {
 public:
  virtual ~OpenCase() = default;
  /// By name, as in problem.hpp.
  virtual std::span<const Tensor> inputs() const = 0;
  /// Memory for one contestant's answer, of NaN.
  virtual Tensor make_dst() const = 0;
  /// The call of contestant i, writing dst.
  virtual std::function<void()> start(std::size_t contestant, void* dst) const = 0;
  /// Empty, or what is wrong with an answer: some rows are compared with the reference in double, by its own
  /// bounds, and no element may be NaN or infinite.
  virtual std::string check(const Tensor& dst) const = 0;
};

struct Contestant {
  std::string name;
  Peer* peer;
};

struct Case {
  std::string name;  // "matmul/f32/1024x1024x1024"
  double flops = 0;  // multiply and add counted as 2; what the formula needs,
                     // nothing that an algorithm repeats
  double bytes = 0;  // each input read once, dst written once
  std::vector<Contestant> contestants;
  std::function<std::unique_ptr<OpenCase>()> open;
};
using Cases = std::vector<Case>;

Cases matmul_cases(std::span<Peer* const> peers);
Cases attention_cases(std::span<Peer* const> peers);
Cases mlp_cases(std::span<Peer* const> peers);
Cases norm_cases(std::span<Peer* const> peers);

}  // namespace bench
