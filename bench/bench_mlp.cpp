#include "bench/google.hpp"

int main(int argc, char** argv) { return bench::run(argc, argv, bench::mlp_cases); }
