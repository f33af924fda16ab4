// Checks the places of tiles by walking through every op: independent of how allocate chose them.
#pragma once

#include "harness.hpp"
#include "neuron_kernels/core/limits.hpp"
#include "neuron_kernels/sim/walk.hpp"

namespace test {

/// Walks through every op that is executed and says of each byte of SBUF and PSUM which instance of which tile holds
/// it: an op must find its own there. n-th instances end when the loop iteration around them does.
class PlacedMemory {
 public:
  PlacedMemory(const nk::Program& program, const nk::Limits& limits) : program_(program), limits_(limits) {}

  std::string check() {
    nk::sim::Walk walk(program_);
    std::vector<std::int64_t> made(program_.tiles.size(), 0);
    std::string wrong;
    const auto touch = [&](const nk::record::TileSlice& t, bool fresh) {
      if (!t.given() || !wrong.empty()) return;
      const auto& d = nk::record::nth(program_.tiles, t.tile);
      const std::int64_t instance = nk::record::nth(made, t.tile);
      const std::int64_t count = std::max<std::int64_t>(d.count, 1);
      const std::int64_t first = instance * count;
      for (std::int64_t e = 0; e < count; ++e) {
        if (!fresh && d.is_array && e != walk.at(t.element)) continue;
        const std::int64_t begin = d.placed.offset + (first + e) % d.placed.buffers * d.placed.stride;
        const std::int64_t end = begin + std::int64_t{d.f} * nk::size_of(d.dtype);
        const bool psum = d.space == nk::Space::psum;
        const std::int64_t room =
            psum ? std::int64_t{limits_.psum_banks} * limits_.psum_bank_bytes : limits_.sbuf_usable_bytes;
        if (begin < 0 || end > room) wrong = nk::text(d.name, " ends at ", end, " of ", room);
        auto& bytes = psum ? psum_ : sbuf_;
        bytes.resize(static_cast<std::size_t>(room));
        for (std::int64_t b = begin; b < end && wrong.empty(); b += 4) {
          auto& owner = bytes[static_cast<std::size_t>(b)];
          const std::pair<int, std::int64_t> me{t.tile, instance};
          if (fresh) owner = me;
          if (owner != me)
            wrong = nk::text("byte ", b, " of ", d.name, " belongs to ",
                             nk::record::nth(program_.tiles, owner.first).name);
        }
      }
    };
    walk.run([&](const nk::record::Op& op, int) {
      const bool into_array = op.code == nk::record::OpCode::load_element ||
                              op.code == nk::record::OpCode::load_transposed_element;
      const bool makes = nk::record::is_structure(op.code) || op.code == nk::record::OpCode::transposed ||
                         op.code == nk::record::OpCode::causal_mask ||
                         (nk::record::is_transfer(op.code) && op.dst.given() && !into_array);
      for (const auto* t : {&op.a, &op.b, &op.k0.tile, &op.k1.tile}) touch(*t, false);
      if (makes && op.dst.given()) ++nk::record::nth(made, op.dst.tile);
      touch(op.dst, makes);
      touch(op.column, false);
      return wrong.empty();
    });
    return wrong;
  }

 private:
  const nk::Program& program_;
  const nk::Limits& limits_;
  std::vector<std::pair<int, std::int64_t>> sbuf_, psum_;
};

}  // namespace test
