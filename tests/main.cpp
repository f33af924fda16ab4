// The entry of every test program. Catch2 v2 compiles its implementation here; v3 has it in a library.
#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
