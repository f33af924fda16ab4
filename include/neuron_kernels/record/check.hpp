// check(program, limits): whether a Program obeys the chip's rules, and what in it wastes the chip's time.
//
// All findings, in the order of ops. The rules are in check_rules.hpp and docs/rules.md; loops stay symbolic.
#pragma once

#include <algorithm>
#include <vector>

#include "neuron_kernels/record/check_dma.hpp"
#include "neuron_kernels/record/check_engines.hpp"
#include "neuron_kernels/record/check_flow.hpp"
#include "neuron_kernels/record/check_memory.hpp"
#include "neuron_kernels/record/check_shapes.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {

/// What breaks a rule, or wastes time, when `program` runs on the target of `limits`; for host_limits the rules that
/// every target shares. Errors are certain; what cannot be decided is not reported.
/// needs: a Program of Recorder, or one from outside that validate() has accepted
/// cost: linear in ops, with a few thousand iterations at most for each doubtful part
inline std::vector<Finding> check(const Program& program, const Limits& limits) {
  record::Context context(program, limits);
  record::ShapeCheck(context).run();
  const bool legible = std::none_of(context.findings.begin(), context.findings.end(),
                                    [](const Finding& f) { return f.rule == record::Rule::in_bounds; });
  if (!limits.is_host()) {
    record::EngineCheck(context).run();
    record::MemoryCheck(context).run();
  }
  if (legible) record::FlowCheck(context).run();
  record::DmaCheck(context).run();
  std::stable_sort(context.findings.begin(), context.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.op < b.op; });
  return std::move(context.findings);
}

/// Whether none of the findings is an error.
inline bool is_legal(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding& f) { return f.severity == record::Severity::error; });
}

}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
