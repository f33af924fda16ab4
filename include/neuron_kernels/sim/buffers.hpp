// Buffers: when what lies in SBUF and PSUM may be read and overwritten, tile by tile and part by part.
//
// A tile rotates through its buffers (record::Placement; one of each if no allocator has placed it) and waits for all
// uses of what was there before, also of other tiles that were placed there. Parts of a tile are told apart in at most
// 64 blocks along the free dimension.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "neuron_kernels/sim/lower.hpp"
#include "neuron_kernels/sim/walk.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace sim {

/// A moment, and the engine that made it so.
struct Moment {
  double ns = 0;
  Engine engine = Engine::automatic;
  bool buffer = false;  // not data, but the wait for a buffer to be free
  void later(double t, Engine by, bool for_buffer) {
    if (t > ns) *this = {t, by, for_buffer};
  }
};

class Buffers {
 public:
  Buffers(const Program& program, const Lowered& lowered, double semaphore_ns)
      : program_(program), semaphore_ns_(semaphore_ns) {
    for (const record::TileDecl& t : program.tiles) {
      const std::int64_t elements = std::max<std::int64_t>(t.count, 1);
      tiles_.push_back({.f = t.f,
                        .granule = t.f,
                        .elements = elements,
                        .buffers = std::max<std::int64_t>(t.placed.buffers, elements)});
    }
    for (const Hidden& h : lowered.hidden)
      tiles_.push_back({.f = 1, .granule = 1, .elements = 1, .buffers = h.buffers});
    for (const std::vector<Instruction>& op : lowered.ops) {
      for (const Instruction& i : op) {
        for (int r = 0; r < i.read_count; ++r) narrow(i.reads[static_cast<std::size_t>(r)]);
        for (int w = 0; w < i.write_count; ++w) narrow(i.writes[static_cast<std::size_t>(w)]);
      }
    }
    std::int64_t size = 0;
    for (Tile& t : tiles_) {
      t.granule = std::max(t.granule, (t.f + most_blocks - 1) / most_blocks);
      t.blocks = (t.f + t.granule - 1) / t.granule;
      t.base = size;
      size += t.buffers * t.blocks;
    }
    blocks_.resize(static_cast<std::size_t>(size));
    find_neighbours(program);
  }

  /// The op that makes the tile is executed once more.
  void make(int tile) {
    Tile& t = record::nth(tiles_, tile);
    t.first = (t.first + t.elements) % t.buffers;
    Times others{};
    for (const int n : t.neighbours) later(others, record::nth(tiles_, n).last_use);
    for (std::int64_t e = 0; e < t.elements; ++e) {
      const std::int64_t block = t.base + (t.first + e) % t.buffers * t.blocks;
      for (std::int64_t i = block; i < block + t.blocks; ++i) {
        Block& b = record::nth(blocks_, i);
        later(b.read, b.written);
        if (!t.neighbours.empty()) later(b.read, others);
        b.written = {};
      }
    }
  }

  /// When `engine` can read it, or write it; dma sees each engine's results after a semaphore, and its own by then.
  void ready_to_read(const Touch& t, const Walk& walk, Engine engine, Moment& moment) const {
    each(t, walk, [&](const Block& b) {
      for (std::size_t e = 0; e < b.written.size(); ++e) {
        if (b.written[e] > 0) moment.later(seen_by(engine, e, b.written[e]), static_cast<Engine>(e), false);
      }
    });
  }
  void ready_to_write(const Touch& t, const Walk& walk, Engine engine, Moment& moment) const {
    each(t, walk, [&](const Block& b) {
      for (std::size_t e = 0; e < b.read.size(); ++e) {
        if (static_cast<Engine>(e) == engine && engine != Engine::dma) continue;
        if (b.read[e] > 0) moment.later(seen_by(engine, e, b.read[e]), static_cast<Engine>(e), true);
        if (b.written[e] > 0) moment.later(seen_by(engine, e, b.written[e]), static_cast<Engine>(e), true);
      }
    });
  }
  /// `ns`: when the same engine sees it.
  void did_read(const Touch& t, const Walk& walk, Engine engine, double ns) {
    each(t, walk, [&](Block& b) { b.read[at(engine)] = std::max(b.read[at(engine)], ns); });
    use(t, engine, ns);
  }
  void did_write(const Touch& t, const Walk& walk, Engine engine, double ns) {
    each(t, walk, [&](Block& b) { b.written[at(engine)] = std::max(b.written[at(engine)], ns); });
    use(t, engine, ns);
  }

 private:
  static constexpr int most_blocks = 64;
  using Times = std::array<double, engine_count>;  // per engine
  struct Block {
    Times written{}, read{};
  };
  struct Tile {
    int f = 1, granule = 1;
    std::int64_t elements = 1;
    std::int64_t buffers = 1, first = 0;  // first: the buffer of element 0 now
    int blocks = 1;
    std::int64_t base = 0;
    std::vector<int> neighbours{};  // tiles that share bytes with it
    Times last_use{};               // where there are neighbours
  };

  static void later(Times& a, const Times& b) {
    for (std::size_t e = 0; e < a.size(); ++e) a[e] = std::max(a[e], b[e]);
  }
  void use(const Touch& t, Engine engine, double ns) {
    Tile& tile = record::nth(tiles_, t.tile);
    if (!tile.neighbours.empty()) tile.last_use[at(engine)] = std::max(tile.last_use[at(engine)], ns);
  }

  void find_neighbours(const Program& program) {
    struct Range {
      std::int64_t begin, end;
      Space space;
      int tile;
    };
    std::vector<Range> ranges;
    for (std::size_t i = 0; i < program.tiles.size(); ++i) {
      const record::TileDecl& d = program.tiles[i];
      if (d.placed.buffers == 0 || d.placed.stride == 0) continue;
      const std::int64_t n = std::int64_t{d.placed.stride} * d.placed.buffers;
      ranges.push_back({d.placed.offset, d.placed.offset + n, d.space, static_cast<int>(i)});
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      for (std::size_t j = i + 1; j < ranges.size() && ranges[j].begin < ranges[i].end; ++j) {
        if (ranges[i].space != ranges[j].space) continue;
        record::nth(tiles_, ranges[i].tile).neighbours.push_back(ranges[j].tile);
        record::nth(tiles_, ranges[j].tile).neighbours.push_back(ranges[i].tile);
      }
    }
  }

  static std::size_t at(Engine e) { return static_cast<std::size_t>(e); }
  double seen_by(Engine engine, std::size_t by, double ns) const {
    const auto producer = static_cast<Engine>(by);
    return producer == engine || producer == Engine::dma ? ns : ns + semaphore_ns_;
  }
  void narrow(const Touch& t) {
    Tile& tile = record::nth(tiles_, t.tile);
    if (t.free_span > 0 && t.free_span < tile.granule) tile.granule = t.free_span;
  }

  template <class Self, class F>
  static void each_of(Self& self, const Touch& t, const Walk& walk, const F& f) {
    const Tile& tile = record::nth(self.tiles_, t.tile);
    const std::int64_t element = walk.at(t.element), at_free = walk.at(t.free);
    if (element < 0 || element >= tile.elements || at_free < 0 || at_free + t.free_span - t.step >= tile.f)
      self.outside(t, element, at_free);
    std::int64_t first = tile.base + (tile.first + element) % tile.buffers * tile.blocks;
    int n = tile.blocks;
    if (n > 1 && t.free != record::none) {
      const std::int64_t begin = at_free / t.step * t.step, from = begin / tile.granule;
      const std::int64_t last =
          std::min<std::int64_t>((begin + t.free_span - 1) / tile.granule, tile.blocks - 1);
      n = static_cast<int>(last - from) + 1;
      first += from;
    }
    for (int i = 0; i < n; ++i) f(record::nth(self.blocks_, first + i));
  }
  template <class F>
  void each(const Touch& t, const Walk& walk, const F& f) {
    each_of(*this, t, walk, f);
  }
  template <class F>
  void each(const Touch& t, const Walk& walk, const F& f) const {
    each_of(*this, t, walk, f);
  }

  /// What bounds alone could not tell before: an index that takes values beyond its tile.
  [[noreturn]] void outside(const Touch& t, std::int64_t element, std::int64_t begin) const {
    const record::TileDecl& d = record::nth(program_.tiles, t.tile);
    throw TileError(text("simulate: ", d.name, ": ", t.free_span, " free elements from ", begin,
                         " of element ", element, "; there are ", d.count, " of ", d.f,
                         ": shorten the loop that the index comes from"));
  }

  const Program& program_;
  double semaphore_ns_;
  std::vector<Tile> tiles_;
  std::vector<Block> blocks_;
};

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
