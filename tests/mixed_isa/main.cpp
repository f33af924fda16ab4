// Runs the unit built for the lowest machine, and the one built for AVX2 where the CPU has it.
#include <cstdio>

int low_count();
int high_count();

int main() {
  const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  const int low = low_count();
  const int high = has_avx2 ? high_count() : 0;
  std::printf("wrong: low %d, high %d%s\n", low, high, has_avx2 ? "" : " (not run: no AVX2)");
  return low + high == 0 ? 0 : 1;
}
