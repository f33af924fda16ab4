#!/usr/bin/env bash
# Checks form: clang-format, clang-tidy, ruff. Called by `make lint`.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0

printf '\n==> clang-format\n'
find include hub cli c reference tests bench examples pytorch/csrc -name '*.[hc]pp' -o -name '*.inl' |
  xargs clang-format --dry-run -Werror || failed=1

# Headers are checked through one unit that includes them all; files of PyTorch's side need its headers and are not.
printf '\n==> clang-tidy\n'
mkdir -p build/lint
find include -name '*.hpp' -printf '#include "%P"\n' | sort >build/lint/public_headers.cpp
{
  printf '%s\0' build/lint/public_headers.cpp
  find tests examples hub cli c -name '*.cpp' -not -path 'tests/package/*' -print0
} | xargs -0 -P "${JOBS:-$(nproc)}" -I '{}' clang-tidy --quiet '{}' -- -std=c++20 -I include -I . -I tests \
  -isystem /usr/include/eigen3 -DNEURON_KERNELS_SOURCE_DIR='""' -DCOUNT=low_count || failed=1

printf '\n==> ruff\n'
.venv/bin/ruff check bench pytorch scripts tests || failed=1
.venv/bin/ruff format --check bench pytorch scripts tests || failed=1

[[ $failed -eq 0 ]] && echo 'lint: nothing found' || echo 'lint: see above; `make format` mends spacing' >&2
exit $failed
