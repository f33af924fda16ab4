// Times the contestants of a case in turns, so that a change in the machine meets all of them.
#pragma once

#include <string>
#include <vector>

#include "bench/case.hpp"

namespace bench {

/// Times of one call, in seconds, and what the machine could do at the same time.
struct Measured {
  std::vector<std::vector<double>> seconds;  // [contestant][round]
  std::vector<double> fma_peak;              // [round], FLOP/s, all threads together
  std::vector<std::string> errors;           // [contestant], empty: the answer was right
};

/// 25 for short calls, 7 for those of a tenth of a second and more.
int rounds_of(const Case& c, int threads);

/// Opens the case, checks every contestant's answer, then runs rounds_of(c) rounds. In each round every
/// contestant, each time another one first, is called once untimed (its data may have been pushed out of the
/// caches by the one before) and then for at least `sample_seconds`; then the FMA peak is taken.
/// A wrong answer is not timed.
Measured measure(const Case& c, int threads);
inline constexpr double sample_seconds = 3e-4;

/// Seconds on a clock for differences. With one thread the CPU time of the process runs beside the wall clock
/// and the smaller difference counts: being descheduled for other programs is not the contestant's.
class Stopwatch {
 public:
  explicit Stopwatch(int threads);
  double seconds() const;

 private:
  int threads_;
  double wall_, cpu_;
};

/// FLOP/s of independent f32 FMAs in registers, in the widest vectors that the library's page uses; 0 for the
/// portable page, which has no FMA instruction of its own. The best of three slices of sample_seconds.
double fma_peak(int threads);

/// Binds the calling thread to the CPU that it runs on, or gives it back to all CPUs of the process.
void bind_thread(bool bound);

}  // namespace bench
