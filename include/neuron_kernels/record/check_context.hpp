// What the passes of check() share: the Program, its Limits, what is known of its values, the findings so far;
// which parts of tiles an op reads and writes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "neuron_kernels/core/limits.hpp"
#include "neuron_kernels/core/tile_rules.hpp"
#include "neuron_kernels/record/check_rules.hpp"
#include "neuron_kernels/record/check_values.hpp"
#include "neuron_kernels/record/engines.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// One thing that check() found. text reads "file:line op "tile": given, allowed (rule, source); what to do".
struct Finding {
  record::Severity severity = record::Severity::error;
  record::Rule rule = record::Rule::operands;
  int op = record::none;  // position in Program::ops
  record::SourceLine where{};
  std::string text{};
};

namespace record {

/// Calls f(slice, writes) for each part of a tile that an op reads or writes; all reads come first. The value that
/// matmul adds to is not among the reads.
template <class F>
void for_each_access(const Op& op, const F& f) {
  if (is_structure(op.code)) return;
  for (const TileSlice* t : {&op.a, &op.b, &op.k0.tile, &op.k1.tile}) {
    if (t->given()) f(*t, false);
  }
  if (op.dst.given()) f(op.dst, true);
  if (op.column.given()) f(op.column, true);
}

class Context {
 public:
  Context(const Program& p, const Limits& l) : program(p), limits(l), values(p) {}

  const Program& program;
  const Limits& limits;
  Values values;
  std::vector<Finding> findings{};

  const TileDecl& tile(const TileSlice& t) const { return nth(program.tiles, t.tile); }
  bool in_psum(const TileSlice& t) const { return tile(t).space == Space::psum; }
  bool is_trn1() const { return limits.chip[3] == '1'; }
  bool is_trn3() const { return limits.chip[3] == '3'; }

  TileInfo info(const TileSlice& t) const {
    const TileDecl& d = tile(t);
    return {d.name.c_str(), t.p, t.f, d.dtype, d.space, d.read_only};
  }

  /// about: the tile or tensor in question; what: given and allowed; fix: what to do.
  void report(Rule rule, int op, const std::string& about, const std::string& what, const std::string& fix) {
    const Op& o = nth(program.ops, op);
    report(rule, op, o.where, text(name_of(o.code), about.empty() ? "" : text(" \"", about, "\""), ": "),
           what, fix);
  }
  void report(Rule rule, int op, const SourceLine& where, const std::string& subject, const std::string& what,
              const std::string& fix) {
    const RuleInfo& r = info_of(rule);
    Finding f{r.severity, rule, op, where, {}};
    f.text = text(place(where), subject, what, " (", limits.chip, " ", r.id, ": ", r.source, "); ", fix);
    const auto same = [&](const Finding& other) { return other.rule == rule && other.text == f.text; };
    if (std::none_of(findings.begin(), findings.end(), same)) findings.push_back(std::move(f));
  }

  std::string place(const SourceLine& w) const {
    const std::string s = place_of(program, w);
    return s.empty() ? s : s + " ";
  }
  /// "i0 = 3, i1 = 0": the loops around op in an iteration.
  std::string iteration(int op, std::span<const std::int64_t> index) const {
    std::string s;
    for (int l = values.loop_around(op); l != none; l = values.loop_around_loop(l))
      s = text("i", l, " = ", nth(index, l), s.empty() ? "" : ", ", s);
    return s.empty() ? "" : " where " + s;
  }
  /// In the rest behind the full spans of a tiles() loop, where small is not wasteful.
  bool in_rest(int op) const {
    for (int l = values.loop_around(op); l != none; l = values.loop_around_loop(l)) {
      const Loop& loop = nth(program.loops, l);
      if (loop.tail && loop.n >= loop.step) return true;
    }
    return false;
  }
};

}  // namespace record
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
