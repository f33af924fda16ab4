// check_shapes: what one op may be given: operands that fit together, parts that lie within, sizes and strides that the
// chip can address, limits of matmul and transposes.
#pragma once

#include <array>

#include "neuron_kernels/record/check_context.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class ShapeCheck {
 public:
  explicit ShapeCheck(Context& c) : c_(c) {}

  void run() {
    for (int i = 0; i < static_cast<int>(c_.program.ops.size()); ++i) {
      const Op& op = nth(c_.program.ops, i);
      if (op.code == OpCode::loop || op.code == OpCode::end) continue;
      if (!c_.limits.is_host() && op.dst.given() && op.dst.partition == none && op.dst.element == none)
        partitions(i);
      bool inside = true;
      for_each_access(op, [&](const TileSlice& t, bool) { inside = part(i, t) && inside; });
      if (op.hbm.tensor != none) inside = tensor_part(i, op.hbm) && inside;
      if (inside && !is_structure(op.code)) operands(i);
      if (c_.limits.is_host() || is_structure(op.code)) continue;
      for_each_access(op, [&](const TileSlice& t, bool) { access(i, t); });
      if (op.code == OpCode::matmul) matmul(i);
      if (op.code == OpCode::transpose || op.code == OpCode::transposed) transpose(i);
    }
  }

 private:
  void partitions(int i) {
    const TileDecl& d = c_.tile(nth(c_.program.ops, i).dst);
    if (d.p <= c_.limits.partitions) return;
    c_.report(Rule::partitions, i, d.name, text(d.p, " partitions; allowed are 1 to ", c_.limits.partitions),
              text("cut the tile, as by tiles(n, ", c_.limits.partitions, ")"));
  }

  /// Whether [begin, begin + n) lies in [0, size) in every iteration that can be shown not to.
  bool inside(int i, const std::string& about, const char* what, ExprId begin, std::int64_t n,
              std::int64_t size) {
    const Bounds b = c_.values.of(begin);
    if (n >= 1 && b.lo >= 0 && b.hi + n <= size) return true;
    std::int64_t first = b.lo;
    std::string when;
    const bool outside =
        n < 1 || c_.values.any(i, std::array{begin}, [&](std::span<const std::int64_t> index) {
          first = c_.values.value(begin, index);
          if (first >= 0 && first + n <= size) return false;
          when = c_.iteration(i, index);
          return true;
        });
    if (!outside) return true;
    c_.report(Rule::in_bounds, i, about,
              text(n, " ", what, " from ", first, when, "; allowed are 1 or more within [0, ", size, ")"),
              "shorten the loop or the part, or take the rest by tiles()");
    return false;
  }

  bool part(int i, const TileSlice& t) {
    const TileDecl& d = c_.tile(t);
    if (t.step < 1) {
      c_.report(Rule::in_bounds, i, d.name, text("every ", t.step, "-th element; allowed are 1 or more"),
                "take a positive step");
      return false;
    }
    if (t.element == none && d.is_array) {
      const OpCode code = nth(c_.program.ops, i).code;
      if (!is_structure(code))
        c_.report(Rule::in_bounds, i, d.name, "an array without an element", "name the element");
      return false;
    }
    const bool e = t.element == none || inside(i, d.name, "element", t.element, 1, d.count);
    const bool p = inside(i, d.name, "partitions", t.partition, t.p, d.p);
    const std::int64_t reach = std::int64_t{t.f - 1} * t.step + 1;
    const bool f = t.f >= 1 ? inside(i, d.name, "free elements", t.free, reach, d.f)
                            : inside(i, d.name, "free elements", t.free, t.f, d.f);
    return e && p && f;
  }

  bool tensor_part(int i, const HbmSlice& h) {
    const Tensor& t = nth(c_.program.tensors, h.tensor);
    bool ok = true;
    for (int d = 0; d < t.rank; ++d) {
      const int matrix = d - (t.rank - 2);
      ok = inside(i, t.name,
                  matrix < 0    ? "index"
                  : matrix == 0 ? "rows"
                                : "columns",
                  nth(h.begin, d), matrix < 0 ? 1 : nth(h.size, matrix), nth(t.shape, d)) &&
           ok;
    }
    return ok;
  }

  /// The rules that every target shares, as Recorder applies them.
  void operands(int i) {
    const Op& op = nth(c_.program.ops, i);
    const Where where = Where::current("", 0);
    try {
      for_each_access(op, [&](const TileSlice& t, bool writes) {
        if (writes && !fresh(op, t) && c_.tile(t).read_only) {
          c_.report(Rule::read_only, i, c_.tile(t).name, "a loaded tile is written; allowed is to read it",
                    "copy it to a tile of sbuf() first");
        }
      });
      TileInfo dst = op.dst.given() ? c_.info(op.dst) : TileInfo{};
      dst.read_only = false;  // said above
      rules(op, dst, where);
    } catch (const TileError& error) {
      const std::string said = error.what();
      const std::size_t colon = said.find(": ");
      const TileSlice& about = op.dst.given() ? op.dst : op.a;
      if (op.code == OpCode::matmul && said.find("pairs only") != said.npos) {
        c_.report(Rule::matmul_dtype, i, c_.tile(op.dst).name,
                  text("stationary ", describe(c_.info(op.a)), ", moving ", describe(c_.info(op.b)),
                       "; f32 pairs only with f32"),
                  "copy one to the other's dtype");
        return;
      }
      const bool memory =
          op.code == OpCode::matmul || op.code == OpCode::transpose || op.code == OpCode::transposed;
      const bool reach =
          memory && (said.find("writes PSUM") != said.npos || said.find("reads SBUF") != said.npos);
      c_.report(reach ? Rule::engine_memory : Rule::operands, i, c_.tile(about).name, said.substr(colon + 2),
                reach ? "copy it to a tile of the memory needed" : "give operands that fit");
    }
  }
  static bool fresh(const Op& op, const TileSlice& t) {  // an op that makes, or fills, its tile
    return &t == &op.dst &&
           (is_transfer(op.code) || op.code == OpCode::transposed || op.code == OpCode::causal_mask);
  }

  void rules(const Op& op, const TileInfo& dst, const Where& where) const {
    const auto a = [&] { return c_.info(op.a); };
    const auto b = [&] { return c_.info(op.b); };
    const char* name = name_of(op.code);
    for (const Scalar* k : {&op.k0, &op.k1}) {
      if (k->tile.given()) tile_rules::column_of(c_.info(k->tile), a(), name, where);
    }
    if (op.column.given()) tile_rules::column_of(c_.info(op.column), a(), name, where);
    switch (op.code) {
      case OpCode::load:
      case OpCode::load_element:
      case OpCode::load_transposed:
      case OpCode::load_transposed_element:
      case OpCode::load_broadcast:
      case OpCode::store:
      case OpCode::store_transposed:
        return transfer(op, where);
      case OpCode::matmul:
        return tile_rules::matmul(dst, a(), b(), where);
      case OpCode::transposed:
        return tile_rules::transposed(a(), where);
      case OpCode::transpose:
        return op.engine == Engine::vector ? void() : tile_rules::transpose(dst, a(), where);
      case OpCode::fill:
        return;
      case OpCode::reduce:
        return tile_rules::reduce(dst, op.op0, a(), {.blocks = op.blocks}, where);
      case OpCode::norm_stats:
        return tile_rules::norm_stats(dst, a(), where);
      case OpCode::tensor_tensor:
      case OpCode::scalar_tensor_tensor:
      case OpCode::scan:
        return tile_rules::elementwise(name, dst, a(), b(), where);
      case OpCode::tensor_scalar_reduce:
        tile_rules::reducing(name, op.op1, where);
        [[fallthrough]];
      default:
        return tile_rules::elementwise(name, dst, a(), where);
    }
  }
  void transfer(const Op& op, const Where& where) const {
    const bool stores = op.code == OpCode::store || op.code == OpCode::store_transposed;
    const bool turns = op.hbm.transposed !=
                       (op.code == OpCode::load_transposed || op.code == OpCode::load_transposed_element ||
                        op.code == OpCode::store_transposed);
    TileInfo t = c_.info(stores ? op.a : op.dst);
    if (op.code == OpCode::load_broadcast) t.p = 1;
    tile_rules::transfer(name_of(op.code), t, op.hbm.size[turns ? 1 : 0], op.hbm.size[turns ? 0 : 1], where);
  }

  void access(int i, const TileSlice& t) {
    const Limits& l = c_.limits;
    const TileDecl& d = c_.tile(t);
    const auto wrong = [&](std::span<const std::int64_t> index) {
      return !l.start_partition_ok(static_cast<int>(c_.values.value(t.partition, index)), t.p);
    };
    const bool whole =
        t.partition == none || (c_.values.of(t.partition).constant() && c_.values.of(t.partition).lo == 0);
    if (!whole && t.p <= l.partitions) {
      std::string found;
      if (c_.values.any(i, std::array{t.partition}, [&](std::span<const std::int64_t> index) {
            if (!wrong(index)) return false;
            found = text(c_.values.value(t.partition, index), c_.iteration(i, index));
            return true;
          })) {
        const char* allowed = t.p > 64 ? "0" : t.p > 32 ? "0 or 64" : "0, 32, 64 or 96";
        c_.report(Rule::start_partition, i, d.name,
                  text(t.p, " partitions from ", found, "; allowed starts are ", allowed),
                  "lay parts out at multiples of 32, or give each a tile of its own");
      }
    }
    const int most = d.space == Space::psum ? l.psum_access_elements : l.sbuf_access_elements;
    if (t.f > most) {
      c_.report(Rule::access_elements, i, d.name,
                text(t.f, " free elements of ", d.space == Space::psum ? "PSUM" : "SBUF",
                     "; allowed are 1 to ", most),
                text("cut the op, as by tiles(n, ", most, ")"));
    }
    if (t.f < 2) return;
    if (t.step > most_stride) {
      c_.report(Rule::access_stride, i, d.name,
                text("a stride of ", t.step, " elements; allowed are 1 to ", most_stride),
                "lay the elements out closer together");
    } else if (t.step * size_of(d.dtype) > l.fast_stride_bytes) {
      c_.report(Rule::slow_stride, i, d.name,
                text("a stride of ", t.step * size_of(d.dtype), " bytes; above ", l.fast_stride_bytes,
                     " the port has half its bandwidth"),
                "lay the elements out closer together");
    }
  }

  void matmul(int i) {
    const Limits& l = c_.limits;
    const Op& op = nth(c_.program.ops, i);
    const TileDecl& d = c_.tile(op.dst);
    const bool bf16_dst = d.dtype == DType::bf16 && l.psum_bank_bf16 > 0;
    const int n_most = bf16_dst ? l.psum_bank_bf16 * l.psum_banks : l.gemm_moving_fmax;
    const auto most = [&](const TileSlice& t, const char* what, int given, int allowed, const char* limit) {
      if (given <= allowed) return;
      c_.report(Rule::matmul_size, i, c_.tile(t).name, text(what, " ", given, " > ", allowed, ", ", limit),
                text("use at most ", allowed, ", and more matmuls"));
    };
    most(op.a, "contraction (partitions)", op.a.p, l.partitions, "partitions");
    most(op.a, "stationary free size", op.a.f, l.gemm_stationary_fmax, "gemm_stationary_fmax");
    most(op.b, "moving free size", op.b.f, n_most, bf16_dst ? "8 banks of bf16" : "gemm_moving_fmax");
    if (d.dtype != DType::f32 && !bf16_dst) {
      c_.report(Rule::matmul_dst, i, d.name,
                text("dst is ", name_of(d.dtype), "; allowed ",
                     l.psum_bank_bf16 > 0 ? "are f32 and bf16" : "is f32"),
                "make the PSUM tile f32 and round in the copy to SBUF");
    }
  }

  void transpose(int i) {
    const Op& op = nth(c_.program.ops, i);
    const Engine engine = engine_of(c_.program, op);
    if (op.code == OpCode::transpose && op.dst.tile == op.a.tile && op.dst.element == op.a.element) {
      c_.report(Rule::transpose_alias, i, c_.tile(op.dst).name, "dst is src; allowed are two tiles",
                "transpose into a tile of its own");
    }
    const int most = engine == Engine::vector   ? 32
                     : engine == Engine::tensor ? c_.limits.gemm_stationary_fmax
                                                : no_limit;
    if (op.a.p > most || op.a.f > most) {
      c_.report(Rule::transpose_size, i, c_.tile(op.a).name,
                text("[", op.a.p, ", ", op.a.f, "] on ", name_of(engine), "; allowed is at most [", most,
                     ", ", most, "]"),
                text("transpose in blocks of ", most));
    }
    if (op.code == OpCode::transpose && engine == Engine::tensor && c_.is_trn1() &&
        c_.tile(op.dst).dtype != DType::f32) {
      c_.report(Rule::transpose_dtype, i, c_.tile(op.dst).name,
                text("dst is ", name_of(c_.tile(op.dst).dtype), "; Tensor writes f32, so it takes ",
                     4 * op.dst.f, " bytes per partition"),
                "keep 4 bytes per element of PSUM free");
    }
  }

  static constexpr int most_stride = 32767;  // int16

  Context& c_;
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
