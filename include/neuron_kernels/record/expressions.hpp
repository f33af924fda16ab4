// Index expressions and conditions of a Program as text, in the syntax of Python.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "neuron_kernels/record/program.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace record {

class Expressions {
 public:
  /// loop_names: what to call the index of each loop.
  Expressions(const Program& program, std::vector<std::string> loop_names)
      : program_(program), loop_names_(std::move(loop_names)) {}

  /// Brackets stand only where a weaker operator is inside a stronger one
  /// (precedence 0 min/max and leaves, 1 sums, 2 products).
  std::string text_of(ExprId id, int inside = 1) const {
    const Expr& e = nth(program_.exprs, id);
    const auto bracketed = [&](int own, const std::string& s) { return inside > own ? "(" + s + ")" : s; };
    const auto sum = [&](const char* op) { return bracketed(1, text_of(e.a, 1) + op + text_of(e.b, 2)); };
    const auto product = [&](const char* op) { return bracketed(2, text_of(e.a, 2) + op + text_of(e.b, 3)); };
    switch (e.op) {
      case ExprOp::constant:
        return text(e.value);
      case ExprOp::loop:
        return nth(loop_names_, e.value);
      case ExprOp::add:
        if (const Expr& b = nth(program_.exprs, e.b); b.op == ExprOp::constant && b.value < 0)
          return bracketed(1, text_of(e.a, 1) + " - " + text(-b.value));
        return sum(" + ");
      case ExprOp::subtract:
        return sum(" - ");
      case ExprOp::multiply:
        return product(" * ");
      case ExprOp::divide:
        return product(" // ");
      case ExprOp::modulo:
        return product(" % ");
      case ExprOp::min:
        return "min(" + text_of(e.a) + ", " + text_of(e.b) + ")";
      default:
        return "max(" + text_of(e.a) + ", " + text_of(e.b) + ")";
    }
  }

  std::string text_of(const Condition& c) const {
    constexpr const char* names[] = {"False", "True", " < ", " <= ", " > ", " >= ", " == ", " != "};
    const std::string name = names[static_cast<int>(c.op)];
    return c.a == none ? name : text_of(c.a) + name + text_of(c.b);
  }

 private:
  const Program& program_;
  std::vector<std::string> loop_names_;
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
