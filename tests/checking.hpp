// What the tests of check() share: a kernel recorded for a chip, and which rules it breaks there.
#pragma once

#include "neuron_kernels/record/check.hpp"
#include "recording.hpp"

namespace test {

using nk::record::Rule;
using nk::record::Severity;

inline const nk::Limits* const chips[] = {&nk::trn1, &nk::trn2, &nk::trn3};

inline bool has(const std::vector<nk::Finding>& found, Rule rule) {
  return std::any_of(found.begin(), found.end(), [&](const nk::Finding& f) { return f.rule == rule; });
}

/// body(nc) as a Program for `l`.
template <class Body>
Program program_of(const nk::Limits& l, const Body& body) {
  Recorder nc(l);
  body(nc);
  return nc.program();
}

/// On each chip of `on` the rule is broken by `bad`, at a line of the tests and with all of `shown` in one text, and
/// on no other chip; `good` breaks it nowhere.
template <class Good, class Bad>
void rule(Rule r, const std::vector<const nk::Limits*>& on, const std::vector<std::string>& shown,
          const Good& good, const Bad& bad) {
  for (const nk::Limits* l : chips) {
    INFO(l->chip << " " << name_of(r));
    CHECK_FALSE(has(check(program_of(*l, good), *l), r));
    const std::vector<nk::Finding> found = check(program_of(*l, bad), *l);
    CHECK(has(found, r) == (std::count(on.begin(), on.end(), l) != 0));
    bool told = !has(found, r);
    std::string texts;
    for (const nk::Finding& f : found) {
      if (f.rule != r) continue;
      texts += f.text + "\n";
      CHECK(f.severity == nk::record::info_of(r).severity);
      CHECK((f.op == nk::record::none || f.text.starts_with("test_check_") ||
             f.text.starts_with("checking.hpp:")));
      told = told || std::all_of(shown.begin(), shown.end(),
                                 [&](const std::string& part) { return f.text.find(part) != f.text.npos; });
    }
    INFO(texts);
    CHECK(told);
  }
}

inline const std::vector<const nk::Limits*> all_chips{&nk::trn1, &nk::trn2, &nk::trn3};
inline const std::vector<const nk::Limits*> trn1_trn2{&nk::trn1, &nk::trn2};
inline const std::vector<const nk::Limits*> only_trn1{&nk::trn1};
inline const std::vector<const nk::Limits*> no_chip{};

/// A tile of `value`.
inline Recorder::Tile filled(Recorder& nc, const char* name, int p, int f, DType dtype = DType::f32) {
  auto t = nc.sbuf(name, p, f, dtype);
  nc.fill(t, 1.f);
  return t;
}

/// Copies the tile to a tensor of its own.
inline void keep(Recorder& nc, const Recorder::Tile& t, const char* name = "y") {
  auto y = nc.hbm(name, t.dtype(), {t.p(), t.f()});
  auto copied = nc.sbuf("copied", t.p(), t.f(), t.dtype());
  nc.copy(copied, t);
  nc.store(y, copied);
}

}  // namespace test
