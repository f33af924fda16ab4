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
      set_buffers(space, options_.fixed_buffers > 0 ? options_.fixed_buffers : 2);
      shared(space) = !fits(space);
      set_buffers(space, std::max(options_.fixed_buffers, 1));
      if (!fits(space)) too_much(space);
    }
    if (options_.fixed_buffers == 0) deepen();
    place(0, {});
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

  struct Place {
    std::int64_t byte = 0, bank = 0;  // of SBUF, of PSUM
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

  /// Bytes per partition of SBUF, or banks of PSUM, that a scope and what is inside it need.
  std::int64_t need(Space space, int scope) const {
    std::int64_t own = 0, packed = 0, inner = 0;
    for (const int t : nth(scopes_, scope).tiles) {
      if (in_psum(t) != (space == Space::psum)) continue;
      if (space == Space::sbuf) {
        own += copies(t) * step(t);
      } else if (shares_bank(t)) {
        packed += copies(t) * step(t);
      } else {
        own += copies(t) * banks(t);
      }
    }
    own += (packed + limits_.psum_bank_bytes - 1) / limits_.psum_bank_bytes;
    for (const int s : nth(scopes_, scope).inner) {
      const std::int64_t its = need(space, s);
      inner = shared_[static_cast<std::size_t>(space)] ? std::max(inner, its) : inner + its;
    }
    return own + inner;
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
  bool fits(Space space) const { return need(space, 0) <= room(space); }

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
          if (wanted > 2 && elements(i) > 1) continue;  // two of an array overlap all they can
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

  /// Returns where what is placed behind the scope begins.
  Place place(int scope, Place at) {
    std::int64_t packed = 0;  // bytes of small tiles in the banks behind the others
    for (const int i : nth(scopes_, scope).tiles) {
      Placement& to = nth(program_.tiles, i).placed;
      to.buffers = static_cast<int>(copies(i));
      if (!in_psum(i)) {
        to.stride = static_cast<int>(step(i));
        to.offset = static_cast<int>(at.byte);
        at.byte += copies(i) * step(i);
      } else if (!shares_bank(i)) {
        to.stride = static_cast<int>(banks(i) * limits_.psum_bank_bytes);
        to.offset = static_cast<int>(at.bank * limits_.psum_bank_bytes);
        at.bank += copies(i) * banks(i);
      }
    }
    for (const int i : nth(scopes_, scope).tiles) {
      if (!in_psum(i) || !shares_bank(i)) continue;
      Placement& to = nth(program_.tiles, i).placed;
      to.stride = static_cast<int>(step(i));
      to.offset = static_cast<int>(at.bank * limits_.psum_bank_bytes + packed);
      packed += copies(i) * step(i);
    }
    at.bank += (packed + limits_.psum_bank_bytes - 1) / limits_.psum_bank_bytes;
    Place end = at;
    for (const int s : nth(scopes_, scope).inner) {
      const Place its_end = place(s, at);
      end = {std::max(end.byte, its_end.byte), std::max(end.bank, its_end.bank)};
      if (!shared(Space::sbuf)) at.byte = its_end.byte;
      if (!shared(Space::psum)) at.bank = its_end.bank;
    }
    return end;
  }

  [[noreturn]] void too_much(Space space) const {
    const bool psum = space == Space::psum;
    std::vector<int> largest;
    for (std::size_t i = 0; i < tiles_.size(); ++i) {
      if (tiles_[i].made && in_psum(static_cast<int>(i)) == psum) largest.push_back(static_cast<int>(i));
    }
    std::stable_sort(largest.begin(), largest.end(),
                     [&](int a, int b) { return copies(a) * bytes(a) > copies(b) * bytes(b); });
    std::string s = psum ? text("PSUM: ", need(space, 0), " banks of ", limits_.psum_bank_bytes,
                                " bytes are needed at once; ", limits_.chip, " has ", room(space),
                                hidden_banks_ > 0 ? " beside the 2 for transposes" : "")
                         : text("SBUF: ", need(space, 0), " bytes per partition are needed at once; ",
                                limits_.chip, " has ", room(space));
    s += ". Use smaller blocks, or split the longest dimension. The largest tiles:";
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < largest.size() && i < shown; ++i) {
      const TileDecl& d = nth(program_.tiles, largest[i]);
      const std::string file = d.where.file == none ? "" : nth(program_.files, d.where.file);
      s += text("\n  ", d.name, d.is_array ? text(" (", d.count, " of)") : "", " [", d.p, ", ", d.f, "] ",
                name_of(d.dtype), ": ", copies(largest[i]) * bytes(largest[i]), " bytes",
                file.empty() ? "" : text(", ", file.substr(file.find_last_of('/') + 1), ":", d.where.line));
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
