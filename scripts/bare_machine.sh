#!/usr/bin/env bash
# Runs `make demo` and `make test` in a minimal Debian or Ubuntu made for the purpose, so that no package that
# happens to be installed here hides a missing install step. Needs root and debootstrap. The clone is of HEAD.
#
# bare_machine.sh [--release NAME] [--mirror URL] [--only demo|test] [--keep] [FOLDER]
#   --release  Debian release, default bookworm     --only  one of the two commands
#   --mirror   of Ubuntu, for its releases; needs the package ubuntu-keyring
#   --keep     leave the root behind                FOLDER  where to make it, default a new temporary folder
# The settings of this machine's apt and pip go along: mirror, proxies, certificates, indexes and folders they name.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
release=bookworm mirror='' keep=no commands=(demo test) root='' mounts=()

fail() {
  printf 'bare_machine: %s\n' "$*" >&2
  exit 1
}
say() { printf '\n==> %s\n' "$*"; }

while [[ $# -gt 0 ]]; do
  case $1 in
  --release) release=${2:?--release needs a name} && shift ;;
  --mirror) mirror=${2:?--mirror needs a URL} && shift ;;
  --only) commands=("${2:?--only needs demo or test}") && shift ;;
  --keep) keep=yes ;;
  -*) fail "option $1 is unknown; allowed are --release NAME, --mirror URL, --only demo|test, --keep" ;;
  *) root=$1 ;;
  esac
  shift
done
[[ $(id -u) -eq 0 ]] || fail "needs root (debootstrap and chroot do)"
command -v debootstrap >/dev/null || fail "needs debootstrap; run: apt-get install debootstrap"
[[ -n $root ]] || root=$(mktemp -d)
mkdir -p "$root"
root=$(cd "$root" && pwd)
[[ -z $(ls -A "$root") ]] || fail "$root is not empty; name a new folder"

# The root is deleted only after every mount is gone: what is mounted belongs to this machine.
clean_up() {
  local i
  for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do
    umount "${mounts[i]}" || umount --lazy "${mounts[i]}"
  done
  if [[ $keep = yes ]] || grep -q " $root/" /proc/self/mounts; then
    echo "The root stays in $root"
  else
    rm -rf --one-file-system "$root"
  fi
}
trap clean_up EXIT

# mount_in PATH [OPTION...]: the same path inside the root
mount_in() {
  local path=$1
  shift
  mkdir -p "$root$path"
  mount --bind "$@" "$path" "$root$path"
  mounts+=("$root$path")
}

# take_along PATH: a file is copied, a folder mounted read-only, both at the same path
take_along() {
  if [[ -f $1 ]]; then
    mkdir -p "$root$(dirname "$1")"
    cp -L "$1" "$root$1"
  elif [[ -d $1 ]] && ! mountpoint -q "$root$1"; then
    mount_in "$1" -o ro
  fi
}

# ---- a minimal Debian, from the mirror that apt uses here; or Ubuntu ----
if [[ -n $mirror ]]; then
  distribution=Ubuntu components='main universe' keyring=/usr/share/keyrings/ubuntu-archive-keyring.gpg
  how=(--components=main,universe) script=(gutsy) # which is that of all later releases
  if [[ -e $keyring ]]; then
    how+=("--keyring=$keyring")
  else
    say "No Ubuntu keyring here: signatures of the mirror are not checked"
    how+=(--no-check-gpg)
  fi
else
  distribution=Debian components=main how=() script=()
  mirror=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' |
    awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }')
  [[ -n $mirror ]] || fail "apt knows no Debian mirror here (is this Debian, and was 'apt-get update' run?)"
fi
say "Minimal $distribution $release in $root"
debootstrap --variant=minbase --include=ca-certificates,git,make "${how[@]}" "$release" "$root" "$mirror" "${script[@]}" |
  tail -n 1
printf 'deb %s %s %s\n' "$mirror" "$release" "$components" >"$root/etc/apt/sources.list"
apt-config dump | grep '^Acquire::' | grep -v -e '^Acquire::Languages' -e ' "";$' >"$root/etc/apt/apt.conf.d/90host" || true
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
mount_in /proc
mount_in /dev
mount_in /sys -o ro

# ---- pip's settings: the same values, wherever they came from, and every path they name ----
pip_values=$(python3 -m pip config list 2>/dev/null || true)
grep -v '^:env:' <<<"$pip_values" | python3 -c '
import ast, configparser, sys
config = configparser.ConfigParser(interpolation=None)
for line in filter(str.strip, sys.stdin):
    name, value = line.strip().split("=", 1)
    section, key = name.split(".", 1)
    if not config.has_section(section):
        config.add_section(section)
    config[section][key] = ast.literal_eval(value)
config.write(sys.stdout)' >"$root/etc/pip.conf"
settings=()
while IFS= read -r -d '' variable; do
  [[ ${variable%%=*} =~ ^(PIP_.*|TORCH_INDEX_URL|SSL_CERT_FILE|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|GIT_SSL_CAINFO|(http|https|no|HTTP|HTTPS|NO)_(proxy|PROXY))$ ]] &&
    settings+=("$variable")
done < <(env -0)
# An index in a folder has links beside that folder, hence its parent.
for word in $(tr "=':," ' ' <<<"${pip_values//file:\/\//file }" | sed 's/file \(\S*\)/\1\/../g') \
  $(printf '%s\n' "${settings[@]}" | tr '=' ' '); do
  [[ $word = /* && -e $word ]] && take_along "$(realpath "$word")"
done

say "Clone of HEAD"
git clone -q --no-hardlinks "$repository" "$root/neuron_kernels"
git -C "$root/neuron_kernels" log --oneline -n 1

# ---- the commands of the README, timed ----
code=0
for command in "${commands[@]}"; do
  say "make $command in $distribution $release"
  start=$SECONDS status=0
  chroot "$root" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    LC_ALL=C.UTF-8 "${settings[@]}" make -C /neuron_kernels "$command" </dev/null || status=$?
  say "make $command in $distribution $release: exit code $status after $((SECONDS - start)) s"
  [[ $status -eq 0 ]] || code=1
done
exit $code
