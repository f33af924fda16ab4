// Check that a kernel, recorded and replayed, is the same Program and gives the same bits.
#pragma once

#include "recording.hpp"

namespace test {

inline std::vector<Tensor> filled(const std::vector<Argument>& arguments) {
  Random random(7);
  std::vector<Tensor> tensors;
  tensors.reserve(arguments.size());
  for (const Argument& a : arguments) {
    tensors.push_back(a.written ? Tensor(a.dtype, a.shape) : Tensor::normal(random, a.dtype, a.shape));
  }
  return tensors;
}

inline std::vector<nk::Host::Hbm> hbms(std::vector<Tensor>& tensors, const std::vector<Argument>& arguments) {
  std::vector<nk::Host::Hbm> all;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    all.push_back(arguments[i].written ? nk::Host::Hbm(tensors[i].view())
                                       : nk::Host::Hbm(nk::ConstView(tensors[i].view())));
  }
  return all;
}

/// Records the kernel, replays it on a Recorder (the same Program must come out) and, for trn2 and the host,
/// with one and with two threads on Host (the same bits must come out as when Host runs the kernel).
template <class Body>
void check_replay(const std::string& kernel, const nk::Limits& limits, const std::vector<Argument>& arguments,
                  const Body& body) {
  const Program program = recorded(limits, arguments, body);
  std::string what = limits.chip;
  for (const Argument& a : arguments)
    what += nk::text(" ", a.name, " ", name_of(a.dtype), " ", nk::shape_text(nk::Layout(a.shape)));
  check(rerecorded(program, limits) == program, kernel, what + ": a replay on Recorder is another program");
  if (&limits == &nk::trn1 || &limits == &nk::trn3) return;  // their blockings are as trn2's, or nearly
  const std::vector<Tensor> inputs = filled(arguments);
  std::vector<Tensor> direct = inputs;
  nk::host::launch(&executor(0), 1, [&](nk::Host& nc) { body(nc, hbms(direct, arguments)); });
  for (const int threads : {0, 1}) {
    std::vector<Tensor> replayed = inputs;
    const std::vector<nk::Host::Hbm> tensors = hbms(replayed, arguments);
    nk::host::launch(&executor(threads), 1000,
                     [&](nk::Host& nc) { nk::replay(program, nc, std::span<const nk::Host::Hbm>(tensors)); });
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      check(replayed[i].same_bits(direct[i]) && replayed[i].outside_untouched(), kernel,
            what + ": replay on Host differs in " + arguments[i].name);
      check(!arguments[i].written || direct[i].size() == 0 || !direct[i].still_nan(), kernel,
            what + ": nothing was written");
    }
  }
}

/// f(limits) for each chip, and for the host with its own blocking.
template <class F>
void on_each_chip(const F& f) {
  for (const nk::Limits* l : {&nk::trn1, &nk::trn2, &nk::trn3, &nk::host_limits}) f(*l);
}

}  // namespace test
