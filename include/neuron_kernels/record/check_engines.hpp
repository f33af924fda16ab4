// check_engines: which engine an op may name, and which memories it reaches there.
#pragma once

#include "neuron_kernels/record/check_context.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class EngineCheck {
 public:
  explicit EngineCheck(Context& c) : c_(c) {}

  void run() {
    for (int i = 0; i < static_cast<int>(c_.program.ops.size()); ++i) {
      const Op& op = nth(c_.program.ops, i);
      if (is_structure(op.code)) continue;
      if (engine(i)) memory(i);
      two_in_psum(i);
      descriptors(i);
      if (c_.is_trn1() && op.code == OpCode::activate && !op.k1.tile.given() && op.k1.value != 0.f) {
        c_.report(Rule::bias_column, i, c_.tile(op.dst).name, text("bias is the number ", op.k1.value),
                  "a column [p, 1] filled outside the loop saves one op per use");
      }
    }
  }

 private:
  /// The engines that an op may name; the first is that of nki.isa.
  static std::vector<Engine> able(const Op& op) {
    switch (op.code) {
      case OpCode::matmul:
      case OpCode::transposed:
        return {Engine::tensor};
      case OpCode::transpose:
        return {Engine::tensor, Engine::vector, Engine::dma};
      case OpCode::fill:
      case OpCode::tensor_tensor:
        return {Engine::vector, Engine::gpsimd};
      case OpCode::copy:
        return {Engine::vector, Engine::scalar, Engine::gpsimd, Engine::dma};
      case OpCode::tensor_scalar:
      case OpCode::tensor_scalar_pair:
        return {Engine::vector, Engine::scalar, Engine::gpsimd};
      case OpCode::activate:
        return {Engine::scalar};
      case OpCode::causal_mask:
      case OpCode::causal_select:
        return {Engine::gpsimd};
      default:
        return {is_transfer(op.code) ? Engine::dma : Engine::vector};
    }
  }

  bool engine(int i) {
    const Op& op = nth(c_.program.ops, i);
    if (op.engine == Engine::automatic) return true;
    const std::vector<Engine> engines = able(op);
    std::string names;
    for (const Engine e : engines) names += text(names.empty() ? "" : ", ", name_of(e));
    const std::string& about = c_.tile(op.dst.given() ? op.dst : op.a).name;
    if (std::find(engines.begin(), engines.end(), op.engine) == engines.end()) {
      c_.report(Rule::engine_op, i, about, text("on ", name_of(op.engine), "; allowed are ", names),
                "name one of these");
      return false;
    }
    // SDK nki.isa.tensor_scalar: Scalar does multiply then add, multiply, or add. Said of trn2; trn1's activation is
    // the same datapath.
    const bool pair = op.code == OpCode::tensor_scalar_pair;
    if (op.engine == Engine::scalar && !c_.is_trn3() && (pair || op.code == OpCode::tensor_scalar)) {
      const bool ok = pair ? op.op0 == Alu::multiply && op.op1 == Alu::add
                           : op.op0 == Alu::multiply || op.op0 == Alu::add;
      if (!ok) {
        c_.report(Rule::engine_op, i, about,
                  text(name_of(op.op0), pair ? text(", ", name_of(op.op1)) : "",
                       " on scalar; allowed there are multiply, add, and multiply with add"),
                  "name vector");
      }
      return ok;
    }
    return true;
  }

  void memory(int i) {
    const Op& op = nth(c_.program.ops, i);
    const Engine e = engine_of(c_.program, op);
    if (op.code == OpCode::matmul || op.code == OpCode::transposed)
      return;  // in check_shapes, for every target
    const auto must = [&](const TileSlice& t, bool psum, const char* what) {
      if (c_.in_psum(t) == psum) return;
      c_.report(Rule::engine_memory, i, c_.tile(t).name,
                text(what, " in ", psum ? "SBUF" : "PSUM", " on ", name_of(e), "; allowed is ",
                     psum ? "PSUM" : "SBUF"),
                psum ? "make it by psum()" : "copy it to a tile of sbuf() first, or name another engine");
    };
    if (op.code == OpCode::transpose && e == Engine::tensor) return must(op.dst, true, "dst");
    if (e != Engine::gpsimd && e != Engine::dma) return;
    const bool mask = op.code == OpCode::causal_mask || op.code == OpCode::causal_select;
    for_each_access(op, [&](const TileSlice& t, bool writes) {
      if (mask && !writes && c_.in_psum(t)) {  // copied into dst first
        c_.report(Rule::mask_in_psum, i, c_.tile(t).name,
                  "src in PSUM, which GpSimd does not reach; a copy precedes it",
                  "mask a tile in SBUF where the copy is in the way");
        return;
      }
      must(t, false, writes ? "dst" : "src");
    });
  }

  void two_in_psum(int i) {
    const Op& op = nth(c_.program.ops, i);
    if (op.code != OpCode::tensor_tensor && op.code != OpCode::scalar_tensor_tensor &&
        op.code != OpCode::scan)
      return;
    if (!c_.in_psum(op.a) || !c_.in_psum(op.b)) return;
    c_.report(
        Rule::two_in_psum, i, c_.tile(op.a).name,
        text("both \"", c_.tile(op.a).name, "\" and \"", c_.tile(op.b).name, "\" in PSUM; allowed is one"),
        "copy one to a tile of sbuf() first");
  }

  void descriptors(int i) {
    const Op& op = nth(c_.program.ops, i);
    if (!is_transfer(op.code)) return;
    const bool stores = op.code == OpCode::store || op.code == OpCode::store_transposed;
    const std::string& about = c_.tile(stores ? op.a : op.dst).name;
    if (op.dge == Dge::hardware && c_.is_trn1()) {
      c_.report(Rule::dma_descriptors, i, about, "hardware descriptors; allowed are none and software",
                "leave dge automatic");
      return;
    }
    const bool turns = op.hbm.transposed !=
                       (op.code == OpCode::load_transposed || op.code == OpCode::load_transposed_element);
    const bool two_bytes = size_of(nth(c_.program.tensors, op.hbm.tensor).dtype) == 2;
    if (stores || !turns || c_.limits.is_host()) return;
    if (op.dge == Dge::software && two_bytes) {
      c_.report(Rule::dma_descriptors, i, about,
                "a transpose with software descriptors; allowed are automatic and hardware",
                "leave dge automatic");
    }
    if (op.dge == Dge::hardware && (!two_bytes || op.hbm.size[0] % 16 != 0 || op.hbm.size[1] > 128)) {
      c_.report(Rule::dma_descriptors, i, about,
                text("a transpose of [", op.hbm.size[0], ", ", op.hbm.size[1], "] ",
                     name_of(nth(c_.program.tensors, op.hbm.tensor).dtype),
                     " with hardware descriptors; allowed are 2-byte types, rows a multiple of 16, at most "
                     "128 columns"),
                "leave dge automatic");
    }
    if (c_.is_trn1() && two_bytes && !c_.in_rest(i)) {
      c_.report(Rule::dma_transpose, i, about, "a transposing transfer of 2-byte elements",
                "keep a transposed copy in device memory, or load and transpose on Tensor");
    }
  }

  Context& c_;
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
