# make demo    a language model on these kernels, against stock PyTorch; the kernels come through a local registry
# make test    every test; `make bench`, `make lint`, `make format`, `make clean` as they say
# make hub         the `kernels` command, as build/hub/cli/kernels
# make conformance the registry against the real Hugging Face clients
# make acceptance  that, faults, kill -9 and fuzzing; an hour at most
# make fidelity    the simulator against published times: docs/fidelity.md and build/fidelity.json
# make bench-hub   client and registry against the Hugging Face clients, curl and nginx
#
# Each target installs what it misses: Debian packages (as root), Python packages into .venv. Repeats are quick.
# PYTHON names the interpreter for .venv, TORCH_INDEX_URL an index to take PyTorch from, JOBS the compilers at a time.
SHELL := /bin/bash
.DEFAULT_GOAL := help
ifndef PARALLEL
.NOTPARALLEL:
endif
.DELETE_ON_ERROR:
export PYTHON ?= python3
export JOBS ?= $(shell nproc)

BUILD_PACKAGES := g++ ccache ca-certificates python3 python3-venv
HUB_PACKAGES := $(BUILD_PACKAGES) cmake ninja-build pkg-config git libarchive-dev libcurl4-openssl-dev \
	libgit2-dev libssl-dev liblz4-dev libmicrohttpd-dev libcmark-gfm-dev libcmark-gfm-extensions-dev \
	nlohmann-json3-dev libtomlplusplus-dev libcli11-dev
TEST_PACKAGES := $(HUB_PACKAGES) binutils clang catch2 libeigen3-dev
# qemu-user runs test programs on a CPU without AVX; only x86-64 has such a test.
TEST_PACKAGES += $(if $(filter x86_64,$(shell uname -m)),qemu-user)
BENCH_PACKAGES := $(BUILD_PACKAGES) cmake ninja-build libeigen3-dev libbenchmark-dev libopenblas-dev libdnnl-dev
LINT_PACKAGES := $(TEST_PACKAGES) clang-format clang-tidy

CXX_FILES = $(shell find include hub cli c reference tests bench examples pytorch/csrc -name '*.[hc]pp' -o -name '*.inl')
PACKAGE_FILES := kernel.toml $(shell find include pytorch/csrc pytorch/neuron_kernels pytorch/setup.py \
	pytorch/pyproject.toml -name '*.[hc]pp' -o -name '*.inl' -o -name '*.py' -o -name '*.toml')
SETUP_FILES := scripts/setup.sh scripts/download_size.py pytorch/requirements-demo.txt pytorch/requirements-models.txt

.PHONY: help demo test bench fidelity format lint clean hub conformance acceptance bench-hub
help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

# The command compiles while pip downloads.
demo: debian-hub
	@$(MAKE) --no-print-directory -j2 PARALLEL=yes .venv/demo.stamp command
	CXX="$$(command -v ccache) g++" .venv/bin/python scripts/demo.py

test: debian-test .venv/test.stamp .venv/package.stamp
	@scripts/test.sh

# OPENBLAS_CORETYPE would make OpenBLAS run the kernels of another CPU.
bench: debian-bench .venv/package.stamp
	cmake -G Ninja -S . -B build/bench-release -DNEURON_KERNELS_TESTS=OFF -DNEURON_KERNELS_BENCH=ON
	cmake --build build/bench-release -j $(JOBS)
	@mkdir -p build/bench
	@set -e; for program in build/bench-release/bench/bench_*; do \
	  printf '\n==> %s\n' "$$program"; \
	  env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE "$$program" --benchmark_out_format=json \
	    --benchmark_out="build/bench/$${program##*/bench_}.json"; \
	done
	@printf '\n==> PyTorch\n'
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE .venv/bin/python bench/bench_torch.py
	.venv/bin/python scripts/bench_report.py

CONFIGURE_HUB := cmake -G Ninja -S . -B build/hub -DNEURON_KERNELS_TESTS=OFF -DNEURON_KERNELS_HUB=ON
hub: debian-hub
	$(CONFIGURE_HUB)
	cmake --build build/hub -j $(JOBS)

# `kernels` alone, and in silence unless it fails: others may be talking.
.PHONY: command
command:
	@mkdir -p build
	@printf '\n==> Building the command kernels (build/hub.log)\n'
	@{ $(CONFIGURE_HUB) && cmake --build build/hub -j $(JOBS) --target kernels; } >build/hub.log 2>&1 || \
	  { cat build/hub.log; exit 1; }

fidelity: debian-build
	@mkdir -p build
	$(CXX) -std=c++20 -O2 -I include bench/fidelity/main.cpp -o build/fidelity-table
	build/fidelity-table --json build/fidelity.json --docs docs/fidelity.md

conformance: hub .venv/hub.stamp
	.venv/bin/python tests/acceptance/hub/conformance.py

acceptance: debian-acceptance hub .venv/hub.stamp
	@scripts/acceptance.sh

bench-hub: debian-bench-hub hub .venv/hub.stamp
	.venv/bin/python bench/hub/bench_hub.py

format: debian-lint
	clang-format -i $(CXX_FILES)

lint: debian-lint .venv/lint.stamp
	@scripts/lint.sh

clean:
	rm -rf build .venv pytorch/build pytorch/*.egg-info

.PHONY: debian-build debian-test debian-bench debian-lint debian-hub debian-acceptance debian-bench-hub
debian-build: ; @scripts/setup.sh debian $(BUILD_PACKAGES)
debian-test: ; @scripts/setup.sh debian $(TEST_PACKAGES)
debian-hub: ; @scripts/setup.sh debian $(HUB_PACKAGES)
debian-acceptance: ; @scripts/setup.sh debian $(HUB_PACKAGES) chromium clang curl git-lfs nginx openssl
debian-bench-hub: ; @scripts/setup.sh debian $(HUB_PACKAGES) curl nginx openssl wrk
debian-bench: ; @scripts/setup.sh debian $(BENCH_PACKAGES)
debian-lint: ; @scripts/setup.sh debian $(LINT_PACKAGES)

.venv/demo.stamp: $(SETUP_FILES) | debian-build
	@scripts/setup.sh python pytorch/requirements-demo.txt pytorch/requirements-models.txt
	@touch $@

.venv/lint.stamp: pytorch/requirements-lint.txt scripts/setup.sh | debian-lint
	@scripts/setup.sh python $<
	@touch $@

.venv/%.stamp: pytorch/requirements-%.txt .venv/demo.stamp
	@scripts/setup.sh python $<
	@touch $@

# The build finds setuptools and PyTorch in .venv: pip's own build environment would download PyTorch once more.
.venv/package.stamp: $(PACKAGE_FILES) .venv/demo.stamp
	@printf '\n==> Building the Python package\n'
	CXX="$$(command -v ccache) g++" .venv/bin/python -m pip --disable-pip-version-check install --force-reinstall \
	  --no-deps --no-build-isolation ./pytorch
	@touch $@
