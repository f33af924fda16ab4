// Which shapes, layouts and mixes the kernel tests try:
// lists of values, and pairs of them instead of all products.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace test {

/// Sizes around 1 and around the steps of every page (4 to 16 lanes, 32 columns, blocks of 128), and primes.
inline const std::vector<std::int64_t> small_sizes = {1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 31, 32, 33, 47};
inline const std::vector<std::int64_t> step_sizes = {63, 64, 65, 97, 127, 128, 129, 131};

inline std::vector<std::int64_t> joined(std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// SmolLM2-135M, the model of the demo.
namespace smollm2 {
inline constexpr std::int64_t hidden = 576, inner = 1536, heads = 9, kv_heads = 3, d = 64;
}

/// How a matrix lies in memory.
enum class Lie { packed, padded, transposed, spaced, upside_down, repeated };
inline constexpr Lie input_lies[] = {Lie::packed, Lie::padded,      Lie::transposed,
                                     Lie::spaced, Lie::upside_down, Lie::repeated};
inline constexpr Lie output_lies[] = {Lie::packed, Lie::padded, Lie::transposed, Lie::spaced,
                                      Lie::upside_down};

inline const char* name_of(Lie lie) {
  constexpr const char* names[] = {"packed", "padded", "transposed", "spaced", "upside-down", "repeated"};
  return names[static_cast<int>(lie)];
}

/// Strides for a shape whose last two dimensions lie so; leading dimensions follow outside, without gaps.
inline std::vector<std::int64_t> strides_for(const std::vector<std::int64_t>& shape, Lie lie) {
  const std::size_t rank = shape.size();
  const std::int64_t cols = std::max<std::int64_t>(shape[rank - 1], 1);
  const std::int64_t rows = rank > 1 ? std::max<std::int64_t>(shape[rank - 2], 1) : 1;
  std::int64_t row = cols, col = 1, next = rows * cols;
  if (lie == Lie::padded) row = cols + 5, next = rows * row;
  if (lie == Lie::transposed) row = 1, col = rows;
  if (lie == Lie::spaced) row = 3 * cols, col = 3, next = 3 * rows * cols;
  if (lie == Lie::upside_down) row = -cols;
  if (lie == Lie::repeated) row = 0, next = cols;
  std::vector<std::int64_t> strides(rank, col);
  if (rank > 1) strides[rank - 2] = row;
  for (std::size_t i = rank; i-- > 2;) {
    strides[i - 2] = next;
    next *= std::max<std::int64_t>(shape[i - 2], 1);
  }
  return strides;
}

/// Rows of choices, one per parameter (parameter p has counts[p] values), such that every pair of values of
/// every two parameters occurs in a row. Greedy: each row starts at a pair not yet seen and takes for each
/// other parameter the value that adds most new pairs.
inline std::vector<std::vector<std::size_t>> pairwise(const std::vector<std::size_t>& counts) {
  const std::size_t n = counts.size();
  std::vector<std::size_t> start(n + 1, 0);  // value v of parameter p is number start[p] + v
  for (std::size_t p = 0; p < n; ++p) start[p + 1] = start[p] + counts[p];
  const std::size_t all = start[n];
  std::vector<bool> seen(all * all, false);
  const auto pair = [&](std::size_t p, std::size_t v, std::size_t q, std::size_t w) {
    return (start[p] + v) * all + start[q] + w;
  };
  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t p = 0; p < n; ++p) {
    for (std::size_t q = p + 1; q < n; ++q) {
      for (std::size_t i = 0; i < counts[p] * counts[q]; ++i) {
        const std::size_t v = i / counts[q], w = i % counts[q];
        if (seen[pair(p, v, q, w)]) continue;
        std::vector<std::size_t> row(n);
        std::vector<bool> chosen(n, false);
        row[p] = v, row[q] = w, chosen[p] = chosen[q] = true;
        for (std::size_t r = 0; r < n; ++r) {
          if (chosen[r]) continue;
          std::size_t best = 0, best_new = 0;
          for (std::size_t k = 0; k < counts[r]; ++k) {
            // Ties go round, so that no value is favoured.
            const std::size_t x = (k + rows.size()) % counts[r];
            std::size_t fresh = 0;
            for (std::size_t s = 0; s < n; ++s) {
              if (chosen[s] && !seen[s < r ? pair(s, row[s], r, x) : pair(r, x, s, row[s])]) ++fresh;
            }
            if (k == 0 || fresh > best_new) best = x, best_new = fresh;
          }
          row[r] = best, chosen[r] = true;
        }
        for (std::size_t a = 0; a < n; ++a) {
          for (std::size_t b = a + 1; b < n; ++b) seen[pair(a, row[a], b, row[b])] = true;
        }
        rows.push_back(std::move(row));
      }
    }
  }
  return rows;
}

}  // namespace test
