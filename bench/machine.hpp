// What a result depends on besides the code: CPU, page, compiler, commit. Goes into each JSON file.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Pairs of name and value: cpu, isa, compiler, commit, load.
std::vector<std::pair<std::string, std::string>> machine();

/// The processors that this process may use.
int processors();

/// The thread counts to measure: 1, then all.
std::vector<int> thread_counts();

}  // namespace bench
