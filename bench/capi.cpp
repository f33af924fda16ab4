// A C interface for bench_torch.py: the same cases, checks and calls of our kernels as in the C++ programs.
//
// Texts go out as JSON and live until the next call of the same function.
// An error is a text that begins with "error".
#include <sstream>
#include <utility>

#include "bench/case.hpp"
#include "bench/machine.hpp"
#include "bench/measure.hpp"

namespace bench {
namespace {

const Cases& all_cases() {
  static const Cases cases = [] {
    static Peer* const ours[] = {&neuron_kernels_peer()};
    Cases all;
    for (const auto& some : {matmul_cases(ours), attention_cases(ours), mlp_cases(ours), norm_cases(ours)}) {
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }();
  return cases;
}

/// An open case with a started call for each contestant.
struct Opened {
  const Case* what;
  std::unique_ptr<OpenCase> data;
  Tensor others_dst;  // for the caller's own contestants
  std::vector<Tensor> dst;
  std::vector<std::function<void()>> calls;
};

template <class Write>
const char* text(std::string& memory, const Write& write) {
  std::ostringstream out;
  out.precision(17);
  write(out);
  memory = out.str();
  return memory.c_str();
}

void write_tensor(std::ostream& out, const Tensor& t) {
  out << "{\"name\": \"" << t.name << "\", \"type\": \"" << name_of(t.type)
      << "\", \"data\": " << reinterpret_cast<std::uintptr_t>(t.data.get()) << ", \"shape\": [";
  for (std::size_t i = 0; i < t.shape.size(); ++i) out << (i != 0 ? ", " : "") << t.shape[i];
  out << "]}";
}

}  // namespace
}  // namespace bench

extern "C" {

/// {"machine": {name: value}, "peer": text, "cases": [{"name", "flops", "bytes", "contestants": [name]}]}
const char* bench_describe() {
  static std::string memory;
  return bench::text(memory, [](std::ostream& out) {
    out << "{\"machine\": {";
    const char* separator = "";
    for (const auto& [name, value] : bench::machine()) {
      out << std::exchange(separator, ", ") << '"' << name << "\": \"" << value << '"';
    }
    out << "}, \"peer\": \"" << bench::neuron_kernels_peer().description() << "\", \"cases\": [";
    separator = "";
    for (const bench::Case& c : bench::all_cases()) {
      out << std::exchange(separator, ", ") << "{\"name\": \"" << c.name << "\", \"flops\": " << c.flops
          << ", \"bytes\": " << c.bytes << ", \"contestants\": [";
      const char* comma = "";
      for (const auto& contestant : c.contestants)
        out << std::exchange(comma, ", ") << '"' << contestant.name << '"';
      out << "]}";
    }
    out << "]}";
  });
}

int bench_rounds(int index, int threads) {
  return bench::rounds_of(bench::all_cases()[static_cast<std::size_t>(index)], threads);
}

void* bench_open(int index) {
  const bench::Case& c = bench::all_cases()[static_cast<std::size_t>(index)];
  auto data = c.open();
  bench::Tensor dst = data->make_dst();
  return new bench::Opened{&c, std::move(data), std::move(dst), {}, {}};
}

void bench_close(void* opened) { delete static_cast<bench::Opened*>(opened); }

/// [{"name", "type", "data", "shape"}], the inputs, then "dst" for a contestant of the caller's.
const char* bench_tensors(void* opened) {
  static std::string memory;
  const auto& o = *static_cast<bench::Opened*>(opened);
  return bench::text(memory, [&](std::ostream& out) {
    out << '[';
    for (const bench::Tensor& t : o.data->inputs()) {
      bench::write_tensor(out, t);
      out << ", ";
    }
    bench::write_tensor(out, o.others_dst);
    out << ']';
  });
}

/// Starts and checks our contestant i; "" or what is wrong.
const char* bench_start(void* opened, int i, int threads) {
  static std::string memory;
  auto& o = *static_cast<bench::Opened*>(opened);
  return bench::text(memory, [&](std::ostream& out) {
    try {
      bench::neuron_kernels_peer().set_threads(threads);
      o.dst.push_back(o.data->make_dst());
      o.calls.push_back(o.data->start(static_cast<std::size_t>(i), o.dst.back().data.get()));
      o.calls.back()();
      out << o.data->check(o.dst.back());
    } catch (const std::exception& e) {
      out << "error: " << e.what();
    }
  });
}

void bench_call(void* opened, int i, int times) {
  const auto& call = static_cast<bench::Opened*>(opened)->calls[static_cast<std::size_t>(i)];
  for (int n = 0; n < times; ++n) call();
}

/// "" or what is wrong with the caller's "dst".
const char* bench_check(void* opened) {
  static std::string memory;
  const auto& o = *static_cast<bench::Opened*>(opened);
  return bench::text(memory, [&](std::ostream& out) { out << o.data->check(o.others_dst); });
}

double bench_fma_peak(int threads) { return bench::fma_peak(threads); }

void bench_bind_thread(int bound) { bench::bind_thread(bound != 0); }

}  // extern "C"
