// What test_nki.cpp writes for tests/nki: kernels with their inputs, what replay on Host makes of them, and how
// far from the exact value a right answer may be. tests/nki/cases.py reads it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "neuron_kernels/nki/emit.hpp"
#include "neuron_kernels/record/schedule.hpp"
#include "recording.hpp"

namespace test {

/// Inputs normal, outputs NaN; `changed` ones are both.
inline std::vector<Tensor> case_tensors(const std::vector<Argument>& arguments, std::uint64_t seed,
                                        const std::string& changed = "") {
  Random random(seed);
  std::vector<Tensor> tensors;
  for (const Argument& a : arguments) {
    tensors.push_back(a.written && a.name != changed ? Tensor(a.dtype, a.shape)
                                                     : Tensor::normal(random, a.dtype, a.shape));
  }
  return tensors;
}

inline std::vector<nk::Host::Hbm> host_hbms(std::vector<Tensor>& tensors,
                                            const std::vector<Argument>& arguments) {
  std::vector<nk::Host::Hbm> all;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    all.push_back(arguments[i].written ? nk::Host::Hbm(tensors[i].view())
                                       : nk::Host::Hbm(nk::ConstView(tensors[i].view())));
  }
  return all;
}

/// The tensors after a replay on Host.
inline std::vector<Tensor> after_replay(const Program& program, std::vector<Tensor> tensors,
                                        const std::vector<Argument>& arguments) {
  const std::vector<nk::Host::Hbm> h = host_hbms(tensors, arguments);
  nk::host::launch(&executor(0), 1,
                   [&](nk::Host& nc) { nk::replay(program, nc, std::span<const nk::Host::Hbm>(h)); });
  return tensors;
}

/// Writes into the folder that NEURON_KERNELS_NKI_CASES names; without it, nothing.
class CaseFile {
 public:
  CaseFile(const std::string& name, const Program& program, const nk::EmitOptions& options) {
    source_ = emit(program, options);
    check(source_.find("def " + options.name + "(") != source_.npos, name, "no such function was emitted");
    const char* folder = std::getenv("NEURON_KERNELS_NKI_CASES");
    if (folder == nullptr) return;
    folder_ = std::filesystem::path(folder) / name;
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "kernel.py") << source_;
    json_ = nk::text("{\"chip\": \"", program.chip, "\", \"kernel\": \"", options.name, "\", \"tensors\": [");
  }

  const std::string& source() const { return source_; }

  void input(const nk::record::Tensor& t, const Tensor& values) {
    if (!folder_.empty()) add(t, "input", numbers(t.name, values));
  }
  void output(const nk::record::Tensor& t, const Tensor& replayed, const reference::Approx& want) {
    if (folder_.empty()) return;
    const std::string file = t.name + ".out";
    std::vector<double> all = values_of(replayed);
    for (const Matrix* m : {&want.value, &want.error}) {
      for (Eigen::Index i = 0; i < m->rows(); ++i) {
        for (Eigen::Index j = 0; j < m->cols(); ++j) all.push_back((*m)(i, j));
      }
    }
    write(file, all);
    add(t, "output", file);
  }
  ~CaseFile() {
    if (!folder_.empty()) std::ofstream(folder_ / "case.json") << json_ << "]}\n";
  }
  CaseFile(const CaseFile&) = delete;
  CaseFile& operator=(const CaseFile&) = delete;

 private:
  static std::vector<double> values_of(const Tensor& t) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < t.size(); ++i) all.push_back(t.at(i));
    return all;
  }
  std::string numbers(const std::string& name, const Tensor& t) {
    write(name + ".in", values_of(t));
    return name + ".in";
  }
  void write(const std::string& file, const std::vector<double>& all) const {
    std::ofstream(folder_ / file, std::ios::binary)
        .write(reinterpret_cast<const char*>(all.data()),
               static_cast<std::streamsize>(all.size() * sizeof(double)));
  }
  void add(const nk::record::Tensor& t, const char* role, const std::string& file) {
    json_ += nk::text(json_.back() == '[' ? "" : ", ", "{\"role\": \"", role, "\", \"dtype\": \"",
                      nk::nki::dtype_name(t.dtype), "\", \"file\": \"", file, "\", \"shape\": [");
    for (int d = 0; d < t.rank; ++d) json_ += nk::text(d != 0 ? ", " : "", nk::record::nth(t.shape, d));
    json_ += "]}";
  }

  std::filesystem::path folder_;
  std::string source_, json_;
};

/// want(name, tensors after replay): a bound for the rows of each tensor that is written. For trn2 the scheduled
/// program is a case of its own.
template <class Want>
void write_case(const std::string& name, const Program& program, const nk::EmitOptions& options,
                const std::vector<Argument>& arguments, const std::vector<Tensor>& before, const Want& want) {
  const std::vector<Tensor> after = after_replay(program, before, arguments);
  const auto write = [&](const std::string& as, const Program& emitted) {
    CaseFile file(as, emitted, options);
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const nk::record::Tensor& t = program.tensors[i];
      if (t.read) file.input(t, before[i]);
      if (!t.written) continue;
      const reference::Approx bound = reference::stored(want(t.name, after), t.dtype);
      check_near(as, "replay of " + t.name, after[i], after[i].rows(), bound);
      file.output(t, after[i], bound);
    }
  };
  write(name, program);
  if (program.chip == nk::trn2.chip) write(name + "-scheduled", nk::schedule(program, nk::trn2));
}

/// Those of each batch under each other.
inline reference::Approx stacked(const std::vector<reference::Approx>& parts) {
  Eigen::Index rows = 0;
  for (const reference::Approx& p : parts) rows += p.value.rows();
  reference::Approx all = reference::exact(Matrix::Zero(rows, parts.front().value.cols()));
  rows = 0;
  for (const reference::Approx& p : parts) {
    all.value.middleRows(rows, p.value.rows()) = p.value;
    all.error.middleRows(rows, p.value.rows()) = p.error;
    rows += p.value.rows();
  }
  return all;
}

}  // namespace test
