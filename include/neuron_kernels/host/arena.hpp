// Arena: scratch memory of one worker, handed out in order and given back by mark. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "neuron_kernels/core/abi.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

class Arena {
 public:
  struct Mark {
    std::size_t chunk = 0, used = 0;
  };

  /// Room for n floats, aligned to a cache line; content undefined.
  /// Errors: std::bad_alloc.
  float* take(std::size_t n) {
    const std::size_t bytes = (n * sizeof(float) + line - 1) / line * line;
    while (at_.chunk < chunks_.size() && at_.used + bytes > chunks_[at_.chunk].size) at_ = {at_.chunk + 1, 0};
    if (at_.chunk == chunks_.size()) grow(bytes);
    std::byte* const p = chunks_[at_.chunk].memory.get() + at_.used;
    at_.used += bytes;
    return reinterpret_cast<float*>(p);
  }

  Mark mark() const { return at_; }
  void release(Mark m) { at_ = m; }

  /// Gives back what one kernel of unusual size made it hold.
  void trim() {
    at_ = {};
    std::size_t kept = 0, held = 0;
    while (kept < chunks_.size() && held + chunks_[kept].size <= most_kept) held += chunks_[kept++].size;
    chunks_.erase(chunks_.begin() + static_cast<std::ptrdiff_t>(kept), chunks_.end());
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  struct Chunk {
    std::size_t size;
    std::unique_ptr<std::byte, Free> memory;
  };

  static constexpr std::size_t line = 64;
  // Huge pages: a moving tile spans 100+ small ones.
  static constexpr std::size_t page = std::size_t{2} << 20;
  static constexpr std::size_t most_kept = std::size_t{256} << 20;

  void grow(std::size_t bytes) {
    const std::size_t last = chunks_.empty() ? page : chunks_.back().size;
    const std::size_t size = (std::max(bytes, 2 * last) + page - 1) / page * page;
    auto* const p = static_cast<std::byte*>(std::aligned_alloc(page, size));
    if (p == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    ::madvise(p, size, MADV_HUGEPAGE);  // a hint; small pages work too
#endif
    chunks_.push_back({size, std::unique_ptr<std::byte, Free>(p)});
  }

  std::vector<Chunk> chunks_;
  Mark at_;
};

/// The arena of the calling thread; kernels do not nest.
inline Arena& thread_arena() {
  thread_local Arena arena;
  return arena;
}

}  // namespace host
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
