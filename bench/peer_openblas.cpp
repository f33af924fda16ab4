// OpenBLAS: sgemm.
// Debian's OpenBLAS 0.3.21 does not know CPUs newer than itself and then runs its SSE3 kernels.
#include <cblas.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "bench/peer.hpp"
#include "bench/restart.hpp"

namespace bench {
namespace {

/// The best kernels of OpenBLAS that this CPU runs, by OpenBLAS's names.
const char* best_core() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512bf16")) return "Cooperlake";
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq")) return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

class OpenBlas final : public Peer {
 public:
  std::string description() const override {
    const std::string config = openblas_get_config();  // "OpenBLAS 0.3.21 ..."
    const auto name_end = config.find(' ');
    return "openblas" + config.substr(name_end, config.find(' ', name_end + 1) - name_end) + ", kernels " +
           openblas_get_corename();
  }

  void set_threads(int threads) override { openblas_set_num_threads(threads); }

  Entries<Matmul> matmul(const Matmul& sizes) const override {
    if (sizes.type != Type::f32) return {};
    return {{"openblas", [](const Matmul& p) {
               const auto m = static_cast<blasint>(p.m), n = static_cast<blasint>(p.n),
                          k = static_cast<blasint>(p.k);
               return [=, a = static_cast<const float*>(p.a), b = static_cast<const float*>(p.b),
                       dst = static_cast<float*>(p.dst), weight = p.weight] {
                 cblas_sgemm(CblasRowMajor, CblasNoTrans, weight ? CblasTrans : CblasNoTrans, m, n, k, 1.f, a,
                             k, b, weight ? k : n, 0.f, dst, n);
               };
             }}};
  }
};

}  // namespace

void restart_with_best_openblas(char** argv) {
  const std::string_view core = openblas_get_corename();
  const char* const best = best_core();
  if (best == nullptr || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  if (core != "Prescott" && core != "Core2" && core != "Nehalem" && core != "Sandybridge") return;
  setenv("OPENBLAS_CORETYPE", best, 0);  // read when the library is loaded, so that only a new start helps
  execv("/proc/self/exe", argv);
}

Peer& openblas_peer() {
  static OpenBlas peer;
  return peer;
}

}  // namespace bench
