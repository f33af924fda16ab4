// print(program, stream): a Program as indented text, near to NKI's look,
// for reading and for diffs of golden files.
//
// q[128 * i0 : +128, :] is 128 rows from row 128 * i0; names that several tiles share get a number.
#pragma once

#include <cmath>
#include <map>
#include <ostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "neuron_kernels/record/expressions.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class Printer {
 public:
  Printer(const Program& program, std::ostream& out)
      : program_(program), out_(out), expressions_(program, loop_names(program)) {
    std::set<std::string> taken;
    for (const Tensor& t : program.tensors) taken.insert(t.name);
    std::map<std::string, int> next;
    for (const TileDecl& t : program.tiles) {
      std::string name = t.name;
      while (!taken.insert(name).second) name = t.name + "_" + text(++next[t.name]);
      names_.push_back(name);
    }
  }

  void print() {
    out_ << "program for " << program_.chip << "\n";
    for (const Tensor& t : program_.tensors) {
      out_ << "  " << t.name << " " << name_of(t.dtype) << " [";
      for (int d = 0; d < t.rank; ++d) out_ << (d != 0 ? ", " : "") << nth(t.shape, d);
      out_ << "]" << (t.read ? ", read" : "") << (t.written ? ", written" : "") << "\n";
    }
    int depth = 0;
    for (const Op& op : program_.ops) {
      if (op.code == OpCode::end) {
        --depth;
        continue;
      }
      std::string line(static_cast<std::size_t>(2 * depth), ' ');
      line += op.code == OpCode::loop ? loop(op.loop) : statement(op);
      const std::string at = place_of(program_, op.where);
      if (!at.empty()) line += std::string(line.size() < 88 ? 88 - line.size() : 1, ' ') + "# " + at;
      out_ << line << "\n";
      depth += op.code == OpCode::loop ? 1 : 0;
    }
  }

 private:
  std::string loop(int l) const {
    const Loop& loop = nth(program_.loops, l);
    std::string s = "for i" + text(l) + " in range(" + expr(loop.begin) + ", " + expr(loop.end) + "):";
    if (loop.kind == LoopKind::range) return s;
    s += loop.kind == LoopKind::tiles ? "  tiles(" : "  programs(";
    return s + text(loop.n) + ", " + text(loop.step) + ")" + (loop.tail ? " rest" : "");
  }

  static std::vector<std::string> loop_names(const Program& program) {
    std::vector<std::string> names;
    for (std::size_t l = 0; l < program.loops.size(); ++l) names.push_back("i" + text(l));
    return names;
  }

  std::string expr(ExprId id) const { return expressions_.text_of(id); }

  /// ":" for all of a dimension of `size`, "begin : +n" for a part.
  std::string part(ExprId begin, std::int64_t n, std::int64_t size) const {
    const Expr& e = nth(program_.exprs, begin);
    if (e.op == ExprOp::constant && e.value == 0 && n == size) return ":";
    return expr(begin) + " : +" + text(n);
  }

  std::string tile(const TileSlice& t) const {
    const TileDecl& d = nth(program_.tiles, t.tile);
    std::string s = nth(names_, t.tile);
    if (t.element != none) s += "[" + expr(t.element) + "]";
    if (t.partition == none) return s;
    const std::string p = part(t.partition, t.p, d.p);
    const std::string f =
        t.step == 1 ? part(t.free, t.f, d.f) : expr(t.free) + " : +" + text(t.f) + " : " + text(t.step);
    return p == ":" && f == ":" ? s : s + "[" + p + ", " + f + "]";
  }

  std::string hbm(const HbmSlice& h) const {
    const Tensor& t = nth(program_.tensors, h.tensor);
    std::string s = t.name + "[";
    for (int d = 0; d < t.rank; ++d) {
      const int matrix = d - (t.rank - 2);
      s += d != 0 ? ", " : "";
      s += matrix < 0 ? expr(nth(h.begin, d)) : part(nth(h.begin, d), nth(h.size, matrix), nth(t.shape, d));
    }
    return s + (h.transposed ? "].T" : "]");
  }

  static std::string number(float v) {
    if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
    std::ostringstream s;
    s.precision(9);
    s << v;
    return s.str();
  }
  std::string scalar(const Scalar& k) const { return k.tile.given() ? tile(k.tile) : number(k.value); }

  std::string shape(const TileDecl& d) const {
    return "[" + text(d.p) + ", " + text(d.f) + "], " + name_of(d.dtype);
  }

  std::string mask(const Op& op) const {
    const std::string s = ", " + expr(op.query) + ", " + expr(op.key) + ", " + number(op.k0.value);
    return op.keys == KeyAxis::partition ? s + ", keys=partition" : s;
  }

  std::string statement(const Op& op) const {
    const std::string name = name_of(op.code);
    const auto made = [&](const std::string& rest) {
      return nth(names_, op.dst.tile) + " = " + name + "(" + rest + ")";
    };
    const auto call = [&](const std::string& rest) { return name + "(" + tile(op.dst) + rest + ")"; };
    const auto source = [&](const TileSlice& t) { return ", " + tile(t); };
    const auto step = [&](Alu alu, const std::string& k) {
      return std::string(", ") + name_of(alu) + ", " + k;
    };
    const std::string dge = op.dge != Dge::automatic ? std::string(", dge=") + name_of(op.dge) : "";
    const std::string options = (op.reads != 1 ? ", reads=" + text(op.reads) : "") + dge;
    const std::string on =
        op.engine != Engine::automatic ? std::string(", engine=") + name_of(op.engine) : "";
    switch (op.code) {
      case OpCode::sbuf:
      case OpCode::psum:
        return made(shape(nth(program_.tiles, op.dst.tile)));
      case OpCode::sbuf_array:
      case OpCode::psum_array:
      case OpCode::input_array: {
        const TileDecl& d = nth(program_.tiles, op.dst.tile);
        return made(text(d.count) + ", " + shape(d));
      }
      case OpCode::staged:
        return made(hbm(op.hbm));
      case OpCode::load:
      case OpCode::load_transposed:
        return made(hbm(op.hbm) + options);
      case OpCode::load_broadcast:
        return made(hbm(op.hbm) + ", " + text(op.dst.p) + dge);
      case OpCode::load_element:
      case OpCode::load_transposed_element:
        return call(", " + hbm(op.hbm) + options);
      case OpCode::store:
      case OpCode::store_transposed:
        return name + "(" + hbm(op.hbm) + source(op.a) + dge + ")";
      case OpCode::matmul: {
        const std::string flag =
            op.accumulate.op == Compare::never ? "" : ", accumulate=" + expressions_.text_of(op.accumulate);
        return call(source(op.a) + source(op.b) + flag);
      }
      case OpCode::transposed:
        return made(tile(op.a));
      case OpCode::fill:
        return call(", " + number(op.k0.value) + on);
      case OpCode::reduce:
        return call(std::string(", ") + name_of(op.op0) + source(op.a) +
                    (op.blocks != 1 ? ", blocks=" + text(op.blocks) : ""));
      case OpCode::tensor_tensor:
        return call(source(op.a) + step(op.op0, tile(op.b)) + on);
      case OpCode::tensor_scalar:
        return call(source(op.a) + step(op.op0, scalar(op.k0)) + on);
      case OpCode::tensor_scalar_pair:
        return call(source(op.a) + step(op.op0, scalar(op.k0)) + step(op.op1, scalar(op.k1)) + on);
      case OpCode::tensor_scalar_reduce:
        return call(source(op.a) + step(op.op0, scalar(op.k0)) + step(op.op1, tile(op.column)));
      case OpCode::scan:
      case OpCode::scalar_tensor_tensor:
        return call(source(op.a) + step(op.op0, scalar(op.k0)) + step(op.op1, tile(op.b)));
      case OpCode::activate: {
        std::string rest = std::string(", ") + name_of(op.act) + source(op.a);
        if (op.k0.tile.given() || op.k0.value != 1.f) rest += ", scale=" + scalar(op.k0);
        if (op.k1.tile.given() || op.k1.value != 0.f) rest += ", bias=" + scalar(op.k1);
        if (op.column.given()) rest += ", row_sum=" + tile(op.column);
        if (op.blocks != 1) rest += ", interleave=" + text(op.blocks);
        return call(rest);
      }
      case OpCode::causal_mask:
        return made(tile(op.a) + mask(op));
      case OpCode::causal_select:
        return call(source(op.a) + mask(op));
      default:
        return call(source(op.a) + on);  // transpose, copy, reciprocal, norm_stats
    }
  }

  const Program& program_;
  std::ostream& out_;
  Expressions expressions_;
  std::vector<std::string> names_;
};

}  // namespace record

/// Writes the program as text; see the head of this file.
inline void print(const Program& program, std::ostream& out) { record::Printer(program, out).print(); }

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
