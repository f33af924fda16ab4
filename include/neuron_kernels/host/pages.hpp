// Which instruction set runs: the best page of this CPU, or a lower one by the variable NEURON_KERNELS_ISA.
//
// One build carries all pages; the choice is made once, at run time.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "neuron_kernels/core/abi.hpp"
#include "neuron_kernels/host/page.hpp"
#include "neuron_kernels/host/page_avx2.hpp"
#include "neuron_kernels/host/page_avx512.hpp"
#include "neuron_kernels/host/page_portable.hpp"

namespace neuron_kernels::inline NEURON_KERNELS_ABI {
namespace host {

/// The pages that this CPU and its operating system can run, lowest first; never empty.
inline std::span<const Page* const> all_pages() {
#if defined(__x86_64__)
  static constexpr const Page* pages[] = {&portable::page, &avx2::page, &avx512::page};
  static const std::size_t count = []() -> std::size_t {
    unsigned a = 0, b = 0, c = 0, d = 0;  // clang 14 does not know __builtin_cpu_supports("f16c")
    const bool has_f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
    __builtin_cpu_init();
    if (!has_f16c || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 1;
    const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return has_avx512 ? 3 : 2;
  }();
  return {pages, count};
#else
  static constexpr const Page* pages[] = {&portable::page};
  return pages;
#endif
}

/// The page called `isa` among `runnable` (lowest first); the last of them if isa is null or empty.
/// errors: std::runtime_error if isa is none of their names.
inline const Page& choose_page(const char* isa, std::span<const Page* const> runnable) {
  if (isa == nullptr || *isa == '\0') return *runnable.back();
  const std::string_view wanted = isa;
  std::string allowed;
  for (const Page* page : runnable) {
    if (wanted == page->name) return *page;
    allowed += (allowed.empty() ? "" : ", ") + std::string(page->name);
  }
  const bool known = wanted == "portable" || wanted == "avx2" || wanted == "avx512";
  throw std::runtime_error("NEURON_KERNELS_ISA: \"" + std::string(wanted) + "\" is " +
                           (known ? "above what this CPU runs" : "not the name of an instruction set") +
                           "; allowed here: " + allowed + "; unset it to use " + runnable.back()->name);
}

/// The page that every Host uses: the best of this CPU, or the lower one named by NEURON_KERNELS_ISA.
/// errors: std::runtime_error if the variable names anything else;
/// read once, at the first call that succeeds.
inline const Page& best_page() {
  static const Page& page = choose_page(std::getenv("NEURON_KERNELS_ISA"), all_pages());
  return page;
}

}  // namespace host
}  // namespace neuron_kernels::inline NEURON_KERNELS_ABI
