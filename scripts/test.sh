#!/usr/bin/env bash
# Runs every test, goes on after a failure, and ends with a table and the line "N passed, N failed".
#
# Called by `make test`, which installs what is missing. Results as JUnit files in build/results/test.
set -uo pipefail
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
suite=test
source scripts/steps.sh

# -k 0: one file that does not compile must not hide the tests of the others.
build_and_test() {
  local type=$1 tree=build/${1,,} name=${1,,}
  step "$name.configure" cmake -G Ninja -S . -B "$tree" -DCMAKE_BUILD_TYPE="$type" -DCMAKE_CXX_COMPILER=g++ \
    -DNEURON_KERNELS_HUB=ON || return
  step "$name.build" cmake --build "$tree" -j "$jobs" -- -k 0
  step "$name.ctest" ctest --test-dir "$tree" -j "$jobs" --output-on-failure --no-tests=error \
    --output-junit "$results/$name.ctest.xml"
}

build_and_test Release
build_and_test Sanitize
step pytest .venv/bin/python -m pytest -q pytorch/tests tests/nki tests/acceptance --ignore tests/acceptance/hub \
  --junitxml "$results/pytest.xml"

.venv/bin/python scripts/test_summary.py "$results"
