// check_memory: whether what is alive at the same time fits SBUF and PSUM; placements; banks of matmul's dst.
//
// Without placements, the least that any allocator needs: one buffer of each tile from its first access to its last,
// over the whole of every loop that uses it from outside. With placements, these.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "neuron_kernels/record/check_context.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

/// Ops [first, last] during which a tile holds something that matters; first < 0: it is never used.
struct Lifetime {
  int first = none, last = none;
};

/// Per tile. A tile made outside a loop and used in it is alive in all of the loop.
inline std::vector<Lifetime> lifetimes(const Program& program, const Values& values) {
  std::vector<Lifetime> all(program.tiles.size());
  std::vector<int> home(program.tiles.size(), none);  // the loop whose body makes the tile
  for (int i = 0; i < static_cast<int>(program.ops.size()); ++i) {
    const Op& op = nth(program.ops, i);
    if (op.dst.given() && (is_structure(op.code) || op.dst.partition == none))
      nth(home, op.dst.tile) = values.loop_around(i);
    for_each_access(op, [&](const TileSlice& t, bool) {
      int first = i, last = i;
      for (int l = values.loop_around(i); l != nth(home, t.tile) && l != none;
           l = values.loop_around_loop(l)) {
        first = nth(program.loops, l).first - 1;
        last = nth(program.loops, l).last;
      }
      Lifetime& life = nth(all, t.tile);
      life.first = life.first == none ? first : std::min(life.first, first);
      life.last = std::max(life.last, last);
    });
  }
  return all;
}

class MemoryCheck {
 public:
  explicit MemoryCheck(Context& c)
      : c_(c), lives_(lifetimes(c.program, c.values)), matmul_dst_(c.program.tiles.size()) {}

  void run() {
    const std::vector<TileDecl>& tiles = c_.program.tiles;
    for (const Op& op : c_.program.ops) {
      if (op.code == OpCode::matmul) nth(matmul_dst_, op.dst.tile) = true;
      if (op.code == OpCode::causal_mask && !c_.in_psum(op.a)) shares_.insert({op.dst.tile, op.a.tile});
    }
    for (int i = 0; i < static_cast<int>(c_.program.ops.size()); ++i) {
      const Op& op = nth(c_.program.ops, i);
      if (op.code == OpCode::matmul && !c_.is_trn3() && !c_.limits.is_host()) bank(i);
    }
    placed_ = true;
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      if (lives_[t].first == none) continue;
      if (tiles[t].placed.buffers > 0) placement(static_cast<int>(t));
      placed_ = placed_ && tiles[t].placed.buffers > 0;
    }
    overlaps();
    if (placed_) return;
    capacity(Space::sbuf);
    capacity(Space::psum);
  }

 private:
  std::int64_t bytes(int t) const {
    const TileDecl& d = nth(c_.program.tiles, t);
    return Bounds::times(d.f, size_of(d.dtype));
  }
  std::int64_t all_bytes(int t) const {
    return Bounds::times(std::max<std::int64_t>(nth(c_.program.tiles, t).count, 1), bytes(t));
  }
  std::int64_t room(Space space) const {
    return space == Space::sbuf ? c_.limits.sbuf_usable_bytes
                                : std::int64_t{c_.limits.psum_banks} * c_.limits.psum_bank_bytes;
  }

  void bank(int i) {
    const Op& op = nth(c_.program.ops, i);
    const TileDecl& d = c_.tile(op.dst);
    const std::int64_t size = size_of(d.dtype), whole = c_.limits.psum_bank_bytes;
    const std::int64_t reach = (std::int64_t{op.dst.f - 1} * op.dst.step + 1) * size;
    const std::int64_t copies = std::min<std::int64_t>(std::max(d.placed.buffers, 1), 64);
    if (d.placed.buffers == 0 && bytes(op.dst.tile) <= whole) return;
    std::int64_t first = 0;
    std::string when;
    const bool crosses = c_.values.any(i, std::array{op.dst.free}, [&](std::span<const std::int64_t> index) {
      for (std::int64_t copy = 0; copy < copies; ++copy) {
        first = d.placed.offset + copy * d.placed.stride + c_.values.value(op.dst.free, index) * size;
        if (first / whole == (first + reach - 1) / whole) continue;
        when = c_.iteration(i, index);
        return true;
      }
      return false;
    });
    if (!crosses) return;
    c_.report(Rule::psum_bank, i, d.name,
              text("dst takes bytes ", first, " to ", first + reach - 1, " of PSUM", when,
                   "; allowed is one bank of ", whole, " bytes"),
              op.dst.step > 1 ? text("write every element of a tile of at most ", whole / size,
                                     ", not every ", op.dst.step, "-th")
                              : text("use at most ", whole / size, " elements that begin at a multiple of ",
                                     whole / size));
  }

  void placement(int t) {
    const TileDecl& d = nth(c_.program.tiles, t);
    const std::int64_t n = std::max<std::int64_t>(d.placed.buffers, 1);
    const std::int64_t end = d.placed.offset + (n - 1) * d.placed.stride + bytes(t);
    const auto wrong = [&](const std::string& what, const std::string& fix) {
      c_.report(Rule::placement, lives_[static_cast<std::size_t>(t)].first, d.where,
                text("tile \"", d.name, "\": "), what, fix);
    };
    if (d.placed.offset < 0 || end > room(d.space))
      wrong(text("bytes ", d.placed.offset, " to ", end, "; allowed are 0 to ", room(d.space)),
            "use fewer buffers or smaller tiles");
    if (n > 1 && d.placed.stride < bytes(t))
      wrong(text("copies ", d.placed.stride, " bytes apart; each has ", bytes(t)),
            "place them further apart");
    if (n < std::max<std::int64_t>(d.count, 1))
      wrong(text(n, " buffers for ", d.count, " elements; allowed are as many or more"),
            "give each element one");
  }

  void overlaps() {
    std::vector<int> order;
    for (std::size_t t = 0; t < lives_.size(); ++t) {
      if (lives_[t].first != none && c_.program.tiles[t].placed.buffers > 0)
        order.push_back(static_cast<int>(t));
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return nth(lives_, a).first < nth(lives_, b).first; });
    std::vector<int> alive;
    for (const int t : order) {
      const int now = nth(lives_, t).first;
      std::erase_if(alive, [&](int a) {
        return nth(lives_, a).last < now || (nth(lives_, a).last == now && in_place(now));
      });
      for (const int a : alive) overlap(a, t);
      alive.push_back(t);
    }
  }
  /// Whether the op may write where it reads, element by element.
  bool in_place(int i) const {
    const OpCode code = nth(c_.program.ops, i).code;
    return code != OpCode::matmul && code != OpCode::transpose && code != OpCode::transposed &&
           code != OpCode::reduce && code != OpCode::norm_stats && code != OpCode::loop;
  }
  void overlap(int a, int b) {
    const TileDecl &x = nth(c_.program.tiles, a), &y = nth(c_.program.tiles, b);
    if (x.space != y.space || shares_.count({b, a}) != 0) return;
    constexpr int most = 256;
    for (int i = 0; i < std::min(x.placed.buffers, most); ++i) {
      const std::int64_t from = x.placed.offset + std::int64_t{i} * x.placed.stride, to = from + bytes(a);
      for (int j = 0; j < std::min(y.placed.buffers, most); ++j) {
        const std::int64_t begin = y.placed.offset + std::int64_t{j} * y.placed.stride,
                           end = begin + bytes(b);
        if (from >= end || begin >= to) continue;
        c_.report(Rule::placement_overlap, nth(lives_, b).first, y.where, text("tile \"", y.name, "\": "),
                  text("bytes ", begin, " to ", end, " overlap \"", x.name, "\" at ", from, " to ", to,
                       ", which is still alive"),
                  "place it elsewhere");
        return;
      }
    }
  }

  /// What else an op needs while it runs: Tensor's transposes on the way to SBUF or HBM, statistics in pieces.
  std::int64_t scratch(const Op& op, Space space) const {
    const bool psum = space == Space::psum;
    const auto turned = [&](const TileSlice& t) {
      const std::int64_t size = psum && c_.is_trn1() ? 4 : size_of(c_.tile(t).dtype);
      return std::min(t.p, c_.limits.partitions) * size;
    };
    if (op.code == OpCode::transposed) return psum ? turned(op.a) : 0;
    if (op.code == OpCode::store_transposed) return turned(op.a);
    if (op.code == OpCode::norm_stats && !psum)  // 6 numbers of each bn_stats (SDK nki.isa.bn_stats)
      return std::int64_t{24} * ((op.a.f + c_.limits.bn_stats_fmax - 1) / c_.limits.bn_stats_fmax);
    return 0;
  }

  void capacity(Space space) {
    const int ops = static_cast<int>(c_.program.ops.size());
    std::vector<std::int64_t> change(static_cast<std::size_t>(ops) + 1, 0), banks(change);
    const std::int64_t bank = c_.limits.psum_bank_bytes;
    for (int t = 0; t < static_cast<int>(lives_.size()); ++t) {
      const TileDecl& d = nth(c_.program.tiles, t);
      const Lifetime life = nth(lives_, t);
      if (life.first == none || d.space != space || shares(t)) continue;
      nth(change, life.first) += all_bytes(t), nth(change, life.last + 1) -= all_bytes(t);
      const bool own_bank =
          space == Space::psum && nth(matmul_dst_, t) && !c_.is_trn3() && 2 * bytes(t) > bank;
      if (!own_bank) continue;
      const std::int64_t n = std::max<std::int64_t>(d.count, 1) * ((bytes(t) + bank - 1) / bank);
      nth(banks, life.first) += n, nth(banks, life.last + 1) -= n;
    }
    std::int64_t now = 0, full = 0, worst = 0, most_full = 0;
    int at = none, full_at = none;
    for (int i = 0; i < ops; ++i) {
      now += nth(change, i), full += nth(banks, i);
      const std::int64_t here = now + scratch(nth(c_.program.ops, i), space);
      if (here > worst) worst = here, at = i;
      if (full > most_full) most_full = full, full_at = i;
    }
    const bool psum = space == Space::psum;
    if (worst > room(space)) {
      c_.report(psum ? Rule::psum_capacity : Rule::sbuf_capacity, at, "",
                text(worst, " bytes per partition are alive here; allowed are ", room(space),
                     ". The largest: ", largest(space, at)),
                "use smaller blocks, or split the longest dimension");
    } else if (psum && most_full > c_.limits.psum_banks) {
      c_.report(Rule::psum_capacity, full_at, "",
                text(most_full, " banks are held by results of matmul here; allowed are ",
                     c_.limits.psum_banks, ". The largest: ", largest(space, full_at)),
                "use smaller blocks, or split the longest dimension");
    }
  }
  bool shares(int t) const {
    const auto it = shares_.lower_bound({t, 0});
    return it != shares_.end() && it->first == t;
  }
  std::string largest(Space space, int op) const {
    std::vector<int> alive;
    for (int t = 0; t < static_cast<int>(lives_.size()); ++t) {
      const Lifetime l = nth(lives_, t);
      if (l.first != none && l.first <= op && op <= l.last && nth(c_.program.tiles, t).space == space)
        alive.push_back(t);
    }
    std::stable_sort(alive.begin(), alive.end(), [&](int a, int b) { return all_bytes(a) > all_bytes(b); });
    constexpr std::size_t shown = 4;
    std::string s;
    for (std::size_t i = 0; i < std::min(shown, alive.size()); ++i) {
      const TileDecl& d = nth(c_.program.tiles, alive[i]);
      s += text(i == 0 ? "" : ", ", c_.place(d.where), "\"", d.name, "\" ", all_bytes(alive[i]));
    }
    return s;
  }

  Context& c_;
  std::vector<Lifetime> lives_;
  std::vector<char> matmul_dst_;
  std::set<std::pair<int, int>> shares_{};  // a mask and the tile that it may share its memory with
  bool placed_ = false;
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
