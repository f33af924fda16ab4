// allocate(program, limits): gives every tile of a Program its place in SBUF or PSUM and its rotating buffers.
//
// Tiles of a loop's body, and of the loops around it, lie side by side. Loops that follow one another use the same
// space where there is not enough for each to have its own, so that the second can begin before the first ends.
#pragma once

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "neuron_kernels/core/error.hpp"
#include "neuron_kernels/core/limits.hpp"
#include "neuron_kernels/record/engines.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

struct AllocateOptions {
  int most_buffers = 72;          // of a tile that is loaded
  int most_computed_buffers = 4;  // of one that an engine computes
  int fixed_buffers =
      0;  // for studies: exactly so many for every tile within a loop; 0: as many as help and fit
};

namespace record {

class Allocator {
 public:
  Allocator(const Program& program, const Limits& limits, const AllocateOptions& options)
      : program_(program),
        limits_(limits),
        options_(options),
        tiles_(program.tiles.size()),
        scopes_(program.loops.size() + 1) {
    find_scopes();
    find_uses();
  }

  Program run() {
    for (const Space space : {Space::sbuf, Space::psum}) {
      // Banks are few: rather one buffer each than a bank for two.
      set_buffers(space, options_.fixed_buffers > 0 ? options_.fixed_buffers : space == Space::sbuf ? 2 : 1);
      shared(space) = !fits(space);
      set_buffers(space, std::max(options_.fixed_buffers, 1));
      if (!fits(space)) too_much(space);
    }
    if (options_.fixed_buffers == 0) deepen();
    place();
    return std::move(program_);
  }

 private:
  static constexpr int alignment = 32;  // bytes in SBUF

  struct Info {
    bool stays = true;         // made once: outside loops, or in loops that run once
    bool loaded = false;       // written by transfers alone
    bool accumulates = false;  // a bank of its own while a group is open
    std::int64_t most = 1;     // buffers that can help
    int depth = 0;             // loops around it
    std::int64_t buffers = 1;  // tiles that there is room for
    bool made = false;
  };
  struct Scope {  // the program, or a loop's body
    std::vector<int> tiles, inner;
  };

  bool& shared(Space space) { return shared_[static_cast<std::size_t>(space)]; }
  /// n of each; of arrays that are computed, which are results to keep rather than steps on the way, one.
  void set_buffers(Space space, int n) {
    for (int i = 0; i < static_cast<int>(tiles_.size()); ++i) {
      Info& t = nth(tiles_, i);
      const bool kept = options_.fixed_buffers == 0 && elements(i) > 1 && !t.loaded;
      if (in_psum(i) == (space == Space::psum))
        t.buffers = (kept ? 1 : std::min<std::int64_t>(n, t.most)) * elements(i);
    }
  }

  std::int64_t bytes(int tile) const {  // of one element, per partition
    const TileDecl& d = nth(program_.tiles, tile);
    return std::int64_t{d.f} * size_of(d.dtype);
  }
  std::int64_t step(int tile) const { return (bytes(tile) + alignment - 1) / alignment * alignment; }
  std::int64_t elements(int tile) const { return std::max<std::int64_t>(nth(program_.tiles, tile).count, 1); }
  std::int64_t copies(int tile) const { return nth(tiles_, tile).buffers; }
  bool in_psum(int tile) const { return nth(program_.tiles, tile).space == Space::psum; }

  void find_scopes() {
    std::vector<int> open{0};  // scope l + 1 is the body of loop l
    std::vector<std::int64_t> trips{1};
    for (const Op& op : program_.ops) {
      if (op.code == OpCode::end) {
        open.pop_back(), trips.pop_back();
        continue;
      }
      if (op.code == OpCode::loop) {
        nth(scopes_, open.back()).inner.push_back(op.loop + 1);
        open.push_back(op.loop + 1);
        trips.push_back(trip_count(nth(program_.loops, op.loop)));
        continue;
      }
      if (!makes_tile(op)) continue;
      Info& t = nth(tiles_, op.dst.tile);
      t.made = true;
      nth(scopes_, open.back()).tiles.push_back(op.dst.tile);
      t.depth = static_cast<int>(open.size()) - 1;
      for (const std::int64_t n : trips) t.most = std::min<std::int64_t>(1 << 20, t.most * n);
      t.stays = t.most == 1;
    }
  }

  /// Iterations if they are known, else many.
  std::int64_t trip_count(const Loop& loop) const {
    const Expr &b = nth(program_.exprs, loop.begin), &e = nth(program_.exprs, loop.end);
    if (b.op != ExprOp::constant || e.op != ExprOp::constant) return 1 << 20;
    return std::max<std::int64_t>(1, std::min<std::int64_t>(1 << 20, e.value - b.value));
  }

  static bool makes_tile(const Op& op) {
    switch (op.code) {
      case OpCode::loop:
      case OpCode::end:
      case OpCode::load_element:
      case OpCode::load_transposed_element:
      case OpCode::store:
      case OpCode::store_transposed:
        return false;
      case OpCode::transposed:
      case OpCode::causal_mask:
        return true;
      default:
        return is_structure(op.code) || is_transfer(op.code);
    }
  }

  void find_uses() {
    std::vector<char> computed(tiles_.size(), false);
    for (const Op& op : program_.ops) {
      if (op.code == OpCode::loop || op.code == OpCode::end) continue;
      const bool load = is_transfer(op.code) && op.dst.given();
      if (op.dst.given() && load) nth(tiles_, op.dst.tile).loaded = true;
      if (op.dst.given() && !load && !is_structure(op.code)) nth(computed, op.dst.tile) = true;
      if (op.code == OpCode::matmul && op.accumulate.op != Compare::never)
        nth(tiles_, op.dst.tile).accumulates = true;
      const bool turns =
          op.code == OpCode::transposed || op.code == OpCode::store_transposed ||
          ((op.code == OpCode::load_transposed || op.code == OpCode::load_transposed_element) &&
           dtype_of(program_, op.dst) == DType::f32);
      if (turns) hidden_banks_ = 2;  // transposes of the tensor engine pass through them
    }
    for (std::size_t i = 0; i < tiles_.size(); ++i) tiles_[i].loaded = tiles_[i].loaded && !computed[i];
  }

  /// SBUF in bytes; PSUM in whole banks, and in bytes of the banks behind these, which small tiles share.
  enum class Pool { sbuf, banks, shared_banks };

  Pool pool_of(int tile) const {
    return !in_psum(tile) ? Pool::sbuf : shares_bank(tile) ? Pool::shared_banks : Pool::banks;
  }
  /// Where a scope and what is inside it end if they begin at `at`; calls put(tile, offset) on the way.
  template <class Put>
  std::int64_t fill(Pool pool, int scope, std::int64_t at, const Put& put) const {
    for (const int t : nth(scopes_, scope).tiles) {
      if (pool_of(t) != pool) continue;
      const std::int64_t size = pool == Pool::banks ? banks(t) : step(t);
      if (pool == Pool::shared_banks)
        at = (at + size - 1) / size * size;  // within one bank, which it divides
      put(t, at);
      at += copies(t) * size;
    }
    std::int64_t end = at;
    for (const int s : nth(scopes_, scope).inner) {
      const std::int64_t its = fill(pool, s, at, put);
      end = std::max(end, its);
      if (!shared_[static_cast<std::size_t>(pool == Pool::sbuf ? Space::sbuf : Space::psum)]) at = its;
    }
    return end;
  }
  std::int64_t size_of_pool(Pool pool) const {
    return fill(pool, 0, 0, [](int, std::int64_t) {});
  }
  /// Bytes per partition of SBUF, or banks of PSUM.
  std::int64_t need(Space space) const {
    if (space == Space::sbuf) return size_of_pool(Pool::sbuf);
    return size_of_pool(Pool::banks) +
           (size_of_pool(Pool::shared_banks) + limits_.psum_bank_bytes - 1) / limits_.psum_bank_bytes;
  }
  std::int64_t banks(int tile) const {
    return (bytes(tile) + limits_.psum_bank_bytes - 1) / limits_.psum_bank_bytes;
  }
  /// Small tiles that are written whole, not added to, lie together in a bank; at most a quarter of it, so that
  /// copies never straddle its end by much.
  bool shares_bank(int tile) const {
    return !nth(tiles_, tile).accumulates && limits_.psum_bank_bytes % step(tile) == 0 &&
           4 * step(tile) <= limits_.psum_bank_bytes;
  }
  std::int64_t room(Space space) const {
    return space == Space::sbuf ? limits_.sbuf_usable_bytes : limits_.psum_banks - hidden_banks_;
  }
  bool fits(Space space) const { return need(space) <= room(space); }

  /// Innermost tiles first: they change most often. First two buffers for all, then more for what is loaded: a
  /// transfer takes as long as many instructions.
  void deepen() {
    std::vector<int> order(tiles_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return nth(tiles_, a).depth > nth(tiles_, b).depth; });
    for (const int wanted : {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}) {
      for (const bool loaded : {true, false}) {
        for (const int i : order) {
          Info& t = nth(tiles_, i);
          const std::int64_t most = std::min<std::int64_t>(
              t.most, t.loaded ? options_.most_buffers : options_.most_computed_buffers);
          if (elements(i) > 1 && (wanted > 2 || !loaded)) continue;  // two of an array overlap all they can
          if (t.loaded != loaded || !t.made || t.buffers >= most * elements(i) || wanted > most) continue;
          try_buffers(i, wanted * elements(i));
        }
      }
    }
    for (const int i : order) {  // what is left over
      Info& t = nth(tiles_, i);
      if (!t.loaded || !t.made || in_psum(i)) continue;
      const std::int64_t most = std::min<std::int64_t>(t.most, options_.most_buffers) * elements(i);
      for (std::int64_t more = 32; more > 0; more /= 2) {
        if (t.buffers + more <= most) try_buffers(i, t.buffers + more);
      }
    }
  }
  void try_buffers(int tile, std::int64_t n) {
    const std::int64_t before = std::exchange(nth(tiles_, tile).buffers, n);
    if (!fits(in_psum(tile) ? Space::psum : Space::sbuf)) nth(tiles_, tile).buffers = before;
  }

  void place() {
    const std::int64_t shared_from = size_of_pool(Pool::banks) * limits_.psum_bank_bytes;
    for (const Pool pool : {Pool::sbuf, Pool::banks, Pool::shared_banks}) {
      fill(pool, 0, 0, [&](int tile, std::int64_t at) {
        Placement& to = nth(program_.tiles, tile).placed;
        const bool whole = pool == Pool::banks;
        to.buffers = static_cast<int>(copies(tile));
        to.stride = static_cast<int>(whole ? banks(tile) * limits_.psum_bank_bytes : step(tile));
        to.offset = static_cast<int>(whole                ? at * limits_.psum_bank_bytes
                                     : pool == Pool::sbuf ? at
                                                          : shared_from + at);
      });
    }
  }

  [[noreturn]] void too_much(Space space) const {
    const bool psum = space == Space::psum;
    std::vector<int> largest;
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      if (tiles_[i].made && in_psum(static_cast<int>(i)) == psum) largest.push_back(static_cast<int>(i));
    }
    std::stable_sort(largest.begin(), largest.end(),
                     [&](int a, int b) { return copies(a) * bytes(a) > copies(b) * bytes(b); });
    std::string s = psum ? text("PSUM: ", need(space), " banks of ", limits_.psum_bank_bytes,
                                " bytes are needed at once; ", limits_.chip, " has ", room(space),
                                hidden_banks_ > 0 ? " beside the 2 for transposes" : "")
                         : text("SBUF: ", need(space), " bytes per partition are needed at once; ",
                                limits_.chip, " has ", room(space));
    s += ". Use smaller blocks, or split the longest dimension. The largest tiles:";
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < largest.size() && i < shown; ++i) {
      const TileDecl& d = nth(program_.tiles, largest[i]);
      const std::string where = place_of(program_, d.where);
      s += text("\n  ", d.name, d.is_array ? text(" (", d.count, " of)") : "", " [", d.p, ", ", d.f, "] ",
                name_of(d.dtype), ": ", copies(largest[i]) * bytes(largest[i]), " bytes",
                where.empty() ? "" : ", " + where);
    }
    throw TileError(s);
  }

  Program program_;
  const Limits& limits_;
  AllocateOptions options_;
  std::vector<Info> tiles_;
  std::vector<Scope> scopes_;
  std::array<bool, 2> shared_{};  // per space: loops that follow one another use the same
  int hidden_banks_ = 0;
};

}  // namespace record

/// The Program with a place and buffers for each tile (TileDecl::placed). What it computes is the same.
/// errors: TileError with the largest tiles when not even one buffer of each fits
/// cost: linear in the tiles times about twenty; no loop is unrolled
inline Program allocate(const Program& program, const Limits& limits, const AllocateOptions& options = {}) {
  return record::Allocator(program, limits, options).run();
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
