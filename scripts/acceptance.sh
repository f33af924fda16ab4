#!/usr/bin/env bash
# The hub against real clients and faults: what takes too long for `make test`. Called by `make acceptance`.
#
# KILL_ROUNDS: how often the registry is killed under load (200). FUZZ_SECONDS: for each fuzz program (60).
set -uo pipefail
cd "$(dirname "$0")/.."
suite=acceptance
source scripts/steps.sh

export KERNELS_BIN=$PWD/build/hub/cli/kernels KILL_ROUNDS=${KILL_ROUNDS:-200} PYTHON=$PWD/.venv/bin/python
step conformance .venv/bin/python tests/acceptance/hub/conformance.py
step clients .venv/bin/python -m pytest -q tests/acceptance/hub --junitxml "$results/clients.xml"

clang_major=$(clang++ -dumpversion | cut -d. -f1)
step fuzz.setup scripts/setup.sh debian "libclang-rt-$clang_major-dev"
step fuzz.configure cmake -G Ninja -S . -B build/fuzz -DCMAKE_CXX_COMPILER=clang++ -DNEURON_KERNELS_TESTS=OFF \
  -DNEURON_KERNELS_HUB=ON -DNEURON_KERNELS_FUZZ=ON
step fuzz.build cmake --build build/fuzz -j "${JOBS:-$(nproc)}"
mkdir -p build/fuzz/findings
for source in tests/fuzz/fuzz_*.cpp; do
  name=$(basename "$source" .cpp)
  # New inputs go to a folder of the build; a finding is kept there, too.
  mkdir -p "build/fuzz/corpus/$name"
  step "$name" "build/fuzz/tests/fuzz/$name" -max_total_time="${FUZZ_SECONDS:-60}" -rss_limit_mb=1024 -timeout=10 \
    -print_final_stats=1 -verbosity=0 -artifact_prefix=build/fuzz/findings/ "build/fuzz/corpus/$name" \
    "tests/fuzz/corpus/${name#fuzz_}"
done

.venv/bin/python scripts/test_summary.py "$results"
