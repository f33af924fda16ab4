// emit(program): a Program as Python source that runs on a NeuronCore, written with AWS's NKI.
//
// Loops stay loops, indices stay expressions; the compiler of NKI unrolls and evaluates them. Layout ops become
// the instructions that the chip needs. Source of names and signatures: AWS Neuron SDK, nki/api.
#pragma once

#include <string>
#include <vector>

#include "neuron_kernels/nki/statements.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

struct EmitOptions {
  std::string name = "kernel";  // of the Python function
  std::string reference{};  // Python source of `def reference(...)`, which takes what the kernel takes and
                            // returns what it returns, in NumPy; none if empty
};

namespace nki {

class Emitter {
 public:
  Emitter(const Program& program, const EmitOptions& options)
      : program_(program), options_(options), names_(program, options.name), used_(program.loops.size()) {
    for (const record::Expr& e : program.exprs) {
      if (e.op == record::ExprOp::loop) nth(used_, e.value) = true;
    }
    for (const Op& op : program.ops) {
      if (!op.dst.given()) continue;
      const TileDecl& d = nth(program.tiles, op.dst.tile);
      rotates_ = rotates_ || d.placed.buffers > d.count;
    }
  }

  std::string source() {
    Helpers helpers;
    Lines body;
    body.indent();
    write_body(body, helpers);
    Lines file;
    file.line("\"\"\"" + names_.kernel + " for " + program_.chip + ", in NKI.");
    file.line("");
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const record::Tensor& t = program_.tensors[i];
      if (t.read || t.written)
        file.line(names_.tensors[i] + " " + shape_of(t, "[", "]") + " " + dtype_name(t.dtype) +
                  (t.read ? "" : ", returned") + (t.read && t.written ? ", changed and returned" : ""));
    }
    file.line("\"\"\"");
    file.line("");
    for (const char* import :
         {"import nki", "import nki.isa as nisa", "import nki.language as nl", "import numpy as np"})
      file.line(import);
    std::string s = file.text_so_far();
    for (int h = 0; h < helper_count; ++h) {
      if (helpers.uses(static_cast<Helper>(h))) s += "\n\n" + std::string(source_of(static_cast<Helper>(h)));
    }
    s += "\n\n" + head() + body.text_so_far();
    if (!options_.reference.empty()) s += "\n\n" + options_.reference;
    return s + "\n\n" + main_part();
  }

 private:
  bool argument(const record::Tensor& t) const { return t.read; }

  static std::string shape_of(const record::Tensor& t, const char* open, const char* shut) {
    std::string s = open;
    for (int d = 0; d < t.rank; ++d) s += (d != 0 ? ", " : "") + text(nth(t.shape, d));
    return s + (t.rank == 1 && *open == '(' ? "," : "") + shut;
  }

  /// The arguments of the kernel, or what it returns.
  std::vector<std::string> listed(bool arguments) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const record::Tensor& t = program_.tensors[i];
      if (arguments ? argument(t) : t.written) names.push_back(names_.tensors[i]);
    }
    return names;
  }

  std::string head() const {
    Lines lines;
    lines.line("@nki.jit");
    lines.call("def " + names_.kernel, listed(true), "", ":");
    lines.indent();
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const record::Tensor& t = program_.tensors[i];
      if (argument(t)) lines.line("assert " + names_.tensors[i] + ".shape == " + shape_of(t, "(", ")"));
    }
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const record::Tensor& t = program_.tensors[i];
      if (t.written && !argument(t)) {
        lines.call(names_.tensors[i] + " = nl.ndarray",
                   {shape_of(t, "(", ")"), "dtype=" + dtype_text(t.dtype), "buffer=nl.shared_hbm"});
      }
    }
    return lines.text_so_far();
  }

  void write_body(Lines& lines, Helpers& helpers) const {
    Statements statements(program_, names_, lines, helpers);
    LoopsAround around;
    std::vector<bool> written;  // per open loop: whether it became a `for`
    for (const Op& op : program_.ops) {
      if (op.code == OpCode::loop) {
        const record::Loop& loop = nth(program_.loops, op.loop);
        written.push_back(open(lines, statements.operands(), op.loop));
        if (!written.back()) continue;
        around.push_back({nth(names_.loops, op.loop), trips(loop)});
        if (loop.first == loop.last) lines.line("pass");
      } else if (op.code == OpCode::end) {
        if (written.back()) {
          lines.dedent();
          around.pop_back();
        }
        written.pop_back();
      } else {
        statements.write(op, around);
      }
    }
    std::string results;
    for (const std::string& name : listed(false)) results += (results.empty() ? "return " : ", ") + name;
    if (!results.empty()) lines.line(results);
  }

  /// How often a loop runs; 0: not at all, or not known.
  std::int64_t trips(const record::Loop& loop) const {
    const record::Expr &b = nth(program_.exprs, loop.begin), &e = nth(program_.exprs, loop.end);
    if (b.op != record::ExprOp::constant || e.op != record::ExprOp::constant || e.value <= b.value) return 0;
    return e.value - b.value;
  }

  bool named(int l) const { return nth(used_, l) || rotates_; }

  /// Writes the head of a loop. One that runs once and whose index nobody asks for needs none.
  bool open(Lines& lines, const Operands& operands, int l) const {
    const record::Loop& loop = nth(program_.loops, l);
    const bool once = trips(loop) == 1 && !nth(used_, l);
    std::string note;
    if (loop.kind != record::LoopKind::range && (loop.tail ? loop.n > loop.step : loop.n != loop.step)) {
      note = loop.tail ? text("# the last ", loop.n % loop.step, " of ", loop.n)
             : once    ? text("# the first ", loop.step, " of ", loop.n)
                       : text("# ", loop.step, " of ", loop.n, " at a time");
      if (loop.kind == record::LoopKind::programs && !once) note += ", independent of each other";
    }
    if (once) {
      if (!note.empty()) lines.line(note);
      return false;
    }
    const bool from_zero = nth(program_.exprs, loop.begin) == record::Expr{};
    const std::string begin = from_zero ? "" : operands.expression(loop.begin) + ", ";
    lines.line("for " + (named(l) ? nth(names_.loops, l) : "_") + " in range(" + begin +
               operands.expression(loop.end) + "):" + (note.empty() ? "" : "  " + note));
    lines.indent();
    return true;
  }

  /// Calls the kernel with random numbers.
  std::string main_part() const {
    Lines lines;
    lines.line("if __name__ == \"__main__\":  # with NEURON_PLATFORM_TARGET_OVERRIDE=" + program_.chip);
    lines.indent();
    bool has_bf16 = false;
    for (const record::Tensor& t : program_.tensors)
      has_bf16 = has_bf16 || (argument(t) && t.dtype == DType::bf16);
    if (has_bf16) {
      lines.line("from ml_dtypes import bfloat16");
      lines.line("");
    }
    lines.line("rng = np.random.default_rng(0)");
    for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
      const record::Tensor& t = program_.tensors[i];
      if (!argument(t)) continue;
      lines.call(names_.tensors[i] + " = rng.standard_normal(" + shape_of(t, "(", ")") + ").astype",
                 {t.dtype == DType::bf16 ? "bfloat16" : std::string("np.") + dtype_name(t.dtype)});
    }
    lines.line("simulated = nki.simulate(" + names_.kernel + ")  # on a NeuronCore call it itself");
    if (options_.reference.empty()) {
      lines.call("got = simulated", listed(true));
      lines.line("print(got)");
      return lines.text_so_far();
    }
    lines.call("want = reference", listed(true));  // first: a kernel may change its arguments
    lines.call("got = simulated", listed(true));
    const bool several = listed(false).size() > 1;
    if (several) {
      lines.line("for w, g in zip(want, got, strict=True):");
      lines.indent();
    }
    const std::string w = several ? "w" : "want", g = several ? "g" : "got";
    lines.line("worst = np.abs(np.asarray(" + g + ", np.float32) - " + w + ").max()");
    lines.line("print(f\"largest difference {worst:.1e} of {np.abs(" + w + ").max():.1e}\")");
    return lines.text_so_far();
  }

  const Program& program_;
  const EmitOptions& options_;
  Names names_;
  std::vector<char> used_;  // per loop: whether an expression has its index
  bool rotates_ = false;    // some tile has several buffers
};

}  // namespace nki

/// NKI source of the kernel: imports, helpers, one function decorated with @nki.jit, and a call of it.
/// The function takes the tensors that the kernel reads, in the Program's order, and returns those it writes.
/// needs: a Program whose indices are in range; tiles that the chip has room for
/// errors: TileError when the program is for none of trn1, trn2, trn3
/// source: AWS Neuron SDK, nki/get-started/nki-language-guide.rst, nki/api/nki/isa
inline std::string emit(const Program& program, const EmitOptions& options = {}) {
  if (program.chip != trn1.chip && program.chip != trn2.chip && program.chip != trn3.chip) {
    throw TileError(text("emit: a program recorded for ", program.chip,
                         "; NKI source can be written for trn1, trn2 and trn3: record it with their Limits"));
  }
  return nki::Emitter(program, options).source();
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
