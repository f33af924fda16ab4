// lower(program): the instructions that each op of a Program becomes on the chip, with their engines and costs.
//
// Sizes are known, so an op's instructions are the same in every iteration; only which buffers they touch is not.
// Costs: AWS Neuron SDK 2.26, nki.isa, "Cost" of each function; nki/guides/architecture/trainium2_arch.rst (faster
// modes of the vector engine); the DMA bandwidth guide.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "neuron_kernels/core/limits.hpp"
#include "neuron_kernels/record/engines.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace sim {

/// Tiles that an instruction reads or writes: a slice of the Program's, or a hidden one between the instructions of
/// one op.
struct Touch {
  int tile = record::none;  // position in Program::tiles, or beyond them in Lowered::hidden
  record::ExprId element = record::none, free = record::none;
  int free_span = 0;  // free elements from `free` on, of which every `step`-th is meant
  int step = 1;
  bool fresh = false;  // written: of a hidden tile, the next buffer
  Touch in_next_buffer() const {
    Touch t = *this;
    t.fresh = true;
    return t;
  }
};

struct Instruction {
  Engine engine = Engine::automatic;
  double cycles = 0;  // of the engine; tensor: all passes
  int passes = 1;     // instructions that the tensor engine issues for it
  // Transfers: rows of row_bytes each.
  std::int64_t rows = 0, row_bytes = 0;
  bool two_byte = false, is_store = false, in_sbuf = false;
  double rate = 1;  // share of the bandwidth
  Dge dge = Dge::automatic;
  int queue = 0;  // transfers of one tensor and direction follow each other
  double flops = 0;
  bool uses_psum = false, uses_sbuf = false;
  bool fast = false;  // vector: in a 2x or 4x mode, which takes the bus that GpSimd uses too
  std::array<Touch, 5> reads{};
  std::array<Touch, 2> writes{};
  int read_count = 0, write_count = 0;
};

/// Scratch tile of the chip's own, of `buffers` rotating copies.
struct Hidden {
  Space space = Space::sbuf;
  std::int64_t bytes = 0;  // per partition
  int buffers = 2;
};

struct Lowered {
  std::vector<std::vector<Instruction>> ops;  // per op of the Program; none for structure
  std::vector<Hidden> hidden;
};

class Lowering {
 public:
  Lowering(const Program& program, const Limits& limits, const Timing& timing)
      : program_(program), limits_(limits), timing_(timing) {}

  Lowered run() {
    lowered_.ops.resize(program_.ops.size());
    for (std::size_t i = 0; i < program_.ops.size(); ++i) {
      if (record::is_structure(program_.ops[i].code)) continue;
      into_ = &lowered_.ops[i];
      lower(program_.ops[i]);
    }
    return std::move(lowered_);
  }

 private:
  using Op = record::Op;
  using OpCode = record::OpCode;
  using TileSlice = record::TileSlice;

  void lower(const Op& op) {
    if (record::is_transfer(op.code)) return transfer(op);
    switch (op.code) {
      case OpCode::matmul:
        return matmul(op);
      case OpCode::transposed: {  // through PSUM
        const Touch bank = hidden(Space::psum, op.dst.f * size_of(dtype(op.dst)));
        tensor_transpose(op.a.p, op.a.f, dtype(op.a), touch(op.a), bank.in_next_buffer());
        out_of_bank(op.dst.f, dtype(op.dst), bank, touch(op.dst));
        return;
      }
      case OpCode::transpose:
        return transpose(op);
      case OpCode::norm_stats:
        return norm_stats(op);
      case OpCode::causal_mask: {
        Touch from = touch(op.a);
        if (is_psum(op.a)) {  // which GpSimd does not reach
          engine_pass(Engine::vector, op.a.f, {from}, {touch(op.dst)});
          from = touch(op.dst);
        }
        engine_pass(Engine::gpsimd, op.a.f, {from}, {touch(op.dst)});
        return;
      }
      default:
        return elementwise(op);
    }
  }

  void matmul(const Op& op) {
    const DType type = dtype(op.b);
    Instruction& one = add(Engine::tensor);
    const double pass = std::max(std::min(64, op.a.f), op.b.f);
    const int passes = type == DType::f32 ? limits_.f32_passes : 1;
    one.cycles = pass * passes;
    one.passes = type == DType::f32 ? timing_.f32_instructions : 1;
    one.flops = 2.0 * op.a.p * op.a.f * op.b.f;
    read(one, op.a), read(one, op.b);
    write(one, op.dst);
  }

  void tensor_transpose(int p, int f, DType type, const Touch& from, const Touch& to) {
    Instruction& one = add(Engine::tensor);
    one.passes = type == DType::f32 ? timing_.f32_transpose_passes : 1;
    one.cycles = std::max(p, std::min(64, f)) * one.passes;
    read(one, from), write(one, to);
  }

  /// What the tensor engine transposed is in its own dtype from trn2 on, which the vector engine reads at twice the rate.
  void out_of_bank(int n, DType type, const Touch& bank, const Touch& to) {
    const bool fast = fast_modes() && type != DType::f32;
    engine_pass(Engine::vector, fast ? 0.5 * n : n, {bank}, {to});
    into_->back().fast = fast;
  }

  void transpose(const Op& op) {
    switch (record::engine_of(program_, op)) {
      case Engine::tensor:
        return tensor_transpose(op.a.p, op.a.f, dtype(op.a), touch(op.a), touch(op.dst));
      case Engine::dma: {
        Instruction& one = dma(op.a.p, op.a.f, size_of(dtype(op.a)), Dge::none);
        one.in_sbuf = true;
        one.rate = timing_.dma_transpose_sbuf_rate > 0 ? timing_.dma_transpose_sbuf_rate : 0.5;
        read(one, op.a), write(one, op.dst);
        return;
      }
      default:
        return engine_pass(Engine::vector, op.dst.f, {touch(op.a)}, {touch(op.dst)});
    }
  }

  void norm_stats(const Op& op) {
    const Touch parts = hidden(Space::sbuf, 24 * ceil_of(op.a.f, limits_.bn_stats_fmax));
    int pieces = 0;
    for (int at = 0; at < op.a.f; at += limits_.bn_stats_fmax, ++pieces) {
      engine_pass(Engine::vector, std::min(limits_.bn_stats_fmax, op.a.f - at), {touch(op.a)},
                  {pieces == 0 ? parts.in_next_buffer() : parts});
    }
    engine_pass(Engine::vector, 13.0 * 6 * pieces / 3, {parts}, {touch(op.dst)});
  }

  void elementwise(const Op& op) {
    const Engine engine = record::engine_of(program_, op);
    Instruction& one = add(engine);
    const auto narrow = [&](const TileSlice& t) { return dtype(t) != DType::f32; };
    const bool all_narrow =
        narrow(op.dst) && (!op.a.given() || narrow(op.a)) && (!op.b.given() || narrow(op.b));
    const bool psum = is_psum(op.dst) || (op.a.given() && is_psum(op.a)) || (op.b.given() && is_psum(op.b));
    const int n = op.code == OpCode::reduce ? op.a.f : op.dst.f;
    double cycles = n;
    switch (op.code) {
      case OpCode::fill:
        if (op.k0.value == 0 && narrow(op.dst)) cycles = 0.5 * n;
        break;
      case OpCode::copy:
      case OpCode::tensor_scalar:
      case OpCode::tensor_scalar_pair:
        if (engine == Engine::vector && fast_modes() && all_narrow) {
          cycles = psum || !dense(op) ? 0.5 * n : 0.25 * n;
          one.fast = true;
        }
        if (engine == Engine::scalar && limits_.scalar.elements_16bit > limits_.scalar.elements && all_narrow)
          cycles = 0.5 * n;
        break;
      case OpCode::reduce:
        if (all_narrow && op.op0 != Alu::min) cycles = 0.5 * n;
        break;
      case OpCode::tensor_tensor: {
        const bool mixed = is_psum(op.a) != is_psum(op.b);
        const bool short_form = all_narrow && !psum &&
                                (fast_modes() || (dense(op) && op.op0 != Alu::max &&
                                                  op.op0 != Alu::min));  // trn1: contiguous, + - *
        if (engine == Engine::vector && !mixed && !short_form) cycles = 2.0 * n;
        one.fast = engine == Engine::vector && !mixed && short_form && fast_modes();
        break;
      }
      case OpCode::scalar_tensor_tensor: {
        const bool short_form =
            narrow(op.a) && narrow(op.b) && op.op0 == Alu::subtract && op.op1 == Alu::multiply && n % 2 == 0;
        if (!short_form) cycles = 2.0 * n;
        break;
      }
      case OpCode::tensor_scalar_reduce:
        cycles = std::max(64, n) + 64.0;
        break;
      case OpCode::scan:
        cycles = 2.0 * n;
        break;
      case OpCode::reciprocal:
        cycles = 8.0 * n;
        break;
      case OpCode::activate:
        if (op.column.given()) cycles = std::max(64, n) + 64.0;
        break;
      default:
        break;
    }
    if (slow_stride(op)) cycles *= 2;
    one.cycles = cycles;
    for (const TileSlice* t : {&op.a, &op.b, &op.k0.tile, &op.k1.tile}) {
      if (t->given()) read(one, *t);
    }
    write(one, op.dst);
    if (op.column.given()) write(one, op.column);
  }

  void transfer(const Op& op) {
    const bool stores = op.code == OpCode::store || op.code == OpCode::store_transposed;
    const TileSlice& tile = stores ? op.a : op.dst;
    const DType type = record::nth(program_.tensors, op.hbm.tensor).dtype;
    const int bytes = size_of(type);
    // A tensor read or written through transposed() has its rows along the tile's free dimension turned.
    const bool turned = op.hbm.transposed !=
                        (op.code == OpCode::load_transposed || op.code == OpCode::load_transposed_element ||
                         op.code == OpCode::store_transposed);
    Instruction* one = nullptr;
    if (!turned) {
      one = &dma(tile.p, tile.f, bytes, op.dge);
      stores ? read(*one, tile) : write(*one, tile);
    } else if (!stores && type != DType::f32 && timing_.dma_transpose_rate > 0) {
      one = &dma(tile.f, tile.p, bytes, op.dge);
      one->rate = timing_.dma_transpose_rate;
      write(*one, tile);
    } else if (tile.f == 1 || tile.p == 1) {  // a row or column: elements one by one
      one = &dma(std::int64_t{tile.p} * tile.f, 1, bytes, op.dge);
      stores ? read(*one, tile) : write(*one, tile);
    } else {
      one = &through_tensor_engine(op, tile, stores, bytes);
    }
    one->is_store = stores;
    one->queue = 2 * op.hbm.tensor + (stores ? 1 : 0);
  }

  /// A transposing transfer in blocks of 128 x 128: the tensor engine turns them, the vector engine takes them out.
  /// Returns the transfer itself.
  Instruction& through_tensor_engine(const Op& op, const TileSlice& tile, bool stores, int bytes) {
    const DType type = dtype(tile);
    const int block = limits_.partitions;
    const Touch flat = hidden(Space::sbuf, std::int64_t{tile.p} * ceil_of(tile.f, block) * size_of(type));
    const Touch bank = hidden(Space::psum, std::min(tile.p, block) * size_of(type));
    const Touch from = stores ? touch(tile) : flat, to = stores ? flat : touch(tile);
    const auto move = [&] {
      Instruction& one = dma(tile.f, tile.p, bytes, op.dge);
      stores ? read(one, flat) : write(one, flat.in_next_buffer());
    };
    const std::size_t first = into_->size();
    if (!stores) move();
    for (int f = 0; f < tile.f; f += block) {
      const int p = stores ? tile.p : std::min(block, tile.f - f),
                n = stores ? std::min(block, tile.f - f) : tile.p;
      tensor_transpose(p, n, type, from, bank.in_next_buffer());
      out_of_bank(p, type, bank, stores && f == 0 ? to.in_next_buffer() : to);
    }
    if (stores) move();
    return stores ? into_->back() : (*into_)[first];
  }

  Instruction& dma(std::int64_t rows, std::int64_t row_elements, int element_bytes, Dge dge) {
    Instruction& one = add(Engine::dma);
    one.rows = rows;
    one.row_bytes = row_elements * element_bytes;
    one.two_byte = element_bytes == 2;
    one.dge = dge;
    return one;
  }

  void engine_pass(Engine engine, double cycles, std::initializer_list<Touch> reads,
                   std::initializer_list<Touch> writes) {
    Instruction& one = add(engine);
    one.cycles = cycles;
    for (const Touch& t : reads) read(one, t);
    for (const Touch& t : writes) write(one, t);
  }

  Instruction& add(Engine engine) {
    Instruction one;
    one.engine = engine;
    into_->push_back(one);
    return into_->back();
  }
  void read(Instruction& one, const Touch& t) {
    one.reads[static_cast<std::size_t>(one.read_count++)] = t;
    note(one, t);
  }
  void write(Instruction& one, const Touch& t) {
    one.writes[static_cast<std::size_t>(one.write_count++)] = t;
    note(one, t);
  }
  void read(Instruction& one, const TileSlice& t) { read(one, touch(t)); }
  void write(Instruction& one, const TileSlice& t) { write(one, touch(t)); }
  void note(Instruction& one, const Touch& t) {
    const auto tiles = static_cast<int>(program_.tiles.size());
    const Space space = t.tile < tiles ? record::nth(program_.tiles, t.tile).space
                                       : record::nth(lowered_.hidden, t.tile - tiles).space;
    (space == Space::psum ? one.uses_psum : one.uses_sbuf) = true;
  }

  static Touch touch(const TileSlice& t) {
    return {.tile = t.tile,
            .element = t.element,
            .free = t.free,
            .free_span = t.free == record::none ? 0 : t.f * t.step,
            .step = t.step};
  }
  Touch hidden(Space space, std::int64_t bytes) {
    lowered_.hidden.push_back({space, bytes});
    return {.tile = static_cast<int>(program_.tiles.size() + lowered_.hidden.size()) - 1};
  }

  DType dtype(const TileSlice& t) const { return record::dtype_of(program_, t); }
  bool is_psum(const TileSlice& t) const { return record::space_of(program_, t) == Space::psum; }
  bool fast_modes() const { return limits_.vector.elements_16bit > limits_.vector.elements; }
  static bool dense(const Op& op) {
    return op.dst.step == 1 && (!op.a.given() || op.a.step == 1) && (!op.b.given() || op.b.step == 1);
  }
  bool slow_stride(const Op& op) const {
    for (const TileSlice* t : {&op.dst, &op.a, &op.b}) {
      if (t->given() && t->step > 1 && t->step * size_of(dtype(*t)) > limits_.fast_stride_bytes) return true;
    }
    return false;
  }
  static std::int64_t ceil_of(std::int64_t n, std::int64_t step) { return (n + step - 1) / step; }

  const Program& program_;
  const Limits& limits_;
  const Timing& timing_;
  Lowered lowered_{};
  std::vector<Instruction>* into_ = nullptr;
};

inline Lowered lower(const Program& program, const Limits& limits, const Timing& timing) {
  return Lowering(program, limits, timing).run();
}

}  // namespace sim
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
