// Operands of NKI calls as Python text: tiles and tensors with their slices, numbers, dtypes, operators.
//
// Views are those of nki.language.NkiTensor: [a:b, nl.ds(i, n)], steps, permute, broadcast
// (AWS Neuron SDK, nki/get-started/nki-language-guide.rst).
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "neuron_kernels/nki/names.hpp"
#include "neuron_kernels/record/expressions.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace nki {

using record::Compare;
using record::ExprId;
using record::HbmSlice;
using record::nth;
using record::Op;
using record::OpCode;
using record::Scalar;
using record::TileDecl;
using record::TileSlice;

/// Python's text for a float, e.g. 1.0, -1e30, -np.inf.
inline std::string number(float v) {
  if (std::isnan(v)) return "np.nan";
  if (std::isinf(v)) return v < 0 ? "-np.inf" : "np.inf";
  char digits[32];
  for (int precision = 6; precision <= 9; ++precision) {  // the shortest that reads back as v
    std::snprintf(digits, sizeof digits, "%.*g", precision, static_cast<double>(v));
    if (std::strtof(digits, nullptr) == v) break;
  }
  std::string s = digits;
  if (const auto plus = s.find('+'); plus != s.npos) s.erase(plus, 1);
  return s.find_first_of(".e") == s.npos ? s + ".0" : s;
}

constexpr const char* dtype_name(DType t) {
  return t == DType::f32 ? "float32" : t == DType::bf16 ? "bfloat16" : "float16";
}
inline std::string dtype_text(DType t) { return std::string("nl.") + dtype_name(t); }

/// source: nki/api/nki.api.shared.rst, "Supported Math Operators"
inline std::string op_of(Alu op) {
  constexpr const char* names[] = {"nl.add", "nl.subtract", "nl.multiply", "nl.maximum", "nl.minimum"};
  return names[static_cast<int>(op)];
}

/// source: nki/api/nki.api.shared.rst, "Supported Activation Functions"
inline std::string op_of(Act f) {
  constexpr const char* names[] = {"nl.copy", "nl.exp",     "nl.log",   "nl.tanh",
                                   "nl.erf",  "nl.sigmoid", "nl.rsqrt", "nl.square",
                                   "nl.relu", "nl.silu",    "nl.gelu",  "nl.gelu_apprx_tanh"};
  return names[static_cast<int>(f)];
}

/// (128, 512)
inline std::string shape(std::int64_t p, std::int64_t f) { return text("(", p, ", ", f, ")"); }

class Operands {
 public:
  Operands(const Program& program, const Names& names)
      : program_(program), names_(names), expressions_(program, names.loops) {}

  std::string expression(ExprId id, int inside = 1) const { return expressions_.text_of(id, inside); }
  std::string condition(const record::Condition& c) const { return expressions_.text_of(c); }
  const TileDecl& decl(const TileSlice& t) const { return nth(program_.tiles, t.tile); }
  bool in_psum(const TileSlice& t) const { return t.given() && decl(t).space == Space::psum; }

  /// The tile or the element of an array, without its slice.
  std::string name(const TileSlice& t) const {
    return nth(names_.tiles, t.tile) + (t.element == record::none ? "" : "[" + expression(t.element) + "]");
  }
  std::string name(const HbmSlice& h) const { return nth(names_.tensors, h.tensor); }

  /// For comments: which column, where a tile is used for one; else without its slice.
  std::string said(const TileSlice& t) const {
    return t.f == 1 && decl(t).f > 1 && t.free != record::none ? tile(t) : name(t);
  }

  std::string tile(const TileSlice& t) const {
    if (t.partition == record::none) return name(t) + whole(t);
    const std::string p = part(t.partition, t.p, decl(t).p);
    const std::string f = t.step == 1 ? part(t.free, t.f, decl(t).f) : stepped(t);
    return p == ":" && f == ":" ? name(t) : name(t) + "[" + p + ", " + f + "]";
  }

  /// [rows, cols] as the tensor holds them, whether or not the slice is transposed.
  std::string hbm(const HbmSlice& h) const {
    const record::Tensor& t = nth(program_.tensors, h.tensor);
    std::string s;
    bool all = true;
    for (int d = 0; d < t.rank; ++d) {
      const int matrix = d - (t.rank - 2);
      const std::string index = matrix < 0 ? expression(nth(h.begin, d))
                                           : part(nth(h.begin, d), nth(h.size, matrix), nth(t.shape, d));
      all = all && index == ":";
      s += (d != 0 ? ", " : "") + index;
    }
    return all ? name(h) : name(h) + "[" + s + "]";
  }

  std::string scalar(const Scalar& k) const { return k.tile.given() ? tile(k.tile) : number(k.value); }
  /// The same for a comment.
  std::string scalar_name(const Scalar& k) const { return k.tile.given() ? said(k.tile) : number(k.value); }

 private:
  bool constant(ExprId id) const { return nth(program_.exprs, id).op == record::ExprOp::constant; }
  std::int64_t value(ExprId id) const { return nth(program_.exprs, id).value; }

  /// n elements from `begin` of a dimension of `size`.
  std::string part(ExprId begin, std::int64_t n, std::int64_t size) const {
    if (!constant(begin)) return text("nl.ds(", expression(begin), ", ", n, ")");
    if (value(begin) == 0 && n == size) return ":";
    return text(value(begin), ":", value(begin) + n);
  }

  /// Every step-th free element.
  std::string stepped(const TileSlice& t) const {
    const std::int64_t past = std::int64_t{t.f - 1} * t.step + 1;
    if (constant(t.free)) return text(value(t.free), ":", value(t.free) + past, ":", t.step);
    return text(expression(t.free), " : ", expression(t.free), " + ", past, " : ", t.step);
  }

  /// The slice of an element that is smaller than its array's tiles.
  std::string whole(const TileSlice& t) const {
    if (t.p == decl(t).p && t.f == decl(t).f) return "";
    return text("[0:", t.p, ", 0:", t.f, "]");
  }

  const Program& program_;
  const Names& names_;
  record::Expressions expressions_;
};

}  // namespace nki
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
