#include "bench/google.hpp"

int main(int argc, char** argv) { return bench::run(argc, argv, bench::matmul_cases); }
