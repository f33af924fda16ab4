// The cases as a Google Benchmark program.
//
// Google Benchmark runs one benchmark after the other; here the first one of a case measures all contestants
// of it in turns (measure.hpp), and each then hands out its own times,
// one for each repetition, as manual time.
#pragma once

#include "bench/case.hpp"

namespace bench {

/// Runs the cases with one thread, then with all.
/// Returns the exit code: 1 if any contestant's answer was wrong.
int run(int argc, char** argv, Cases (*cases)(std::span<Peer* const> peers));

}  // namespace bench
