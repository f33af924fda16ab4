#!/usr/bin/env bash
# Starts a registry on loopback with throw-away users, and drives the real Hugging Face clients and raw requests against it.
#
# conformance.sh [ARGUMENT...]      arguments go to hub_conformance.py; the last line is "N passed, M failed"
# KERNELS_BIN names another binary, PYTHON_CLIENTS an interpreter that has the clients.
set -euo pipefail
cd "$(dirname "$0")/.."
kernels=${KERNELS_BIN:-build/hub/cli/kernels}
python=${PYTHON_CLIENTS:-.venv/bin/python}
folder=$(mktemp -d)
server=''
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true; wait 2>/dev/null; rm -rf "$folder"' EXIT

admin() { "$kernels" serve --root "$folder/root" "$@"; }
admin user add alice
admin user add bob
admin org add trusted --trusted
admin org member trusted alice
admin org add acme
admin org member acme alice
writer=$(admin token add alice)
reader=$(admin token add bob)

"$kernels" serve --root "$folder/root" --listen 127.0.0.1:0 >"$folder/address" &
server=$!
for _ in $(seq 100); do
  [[ -s $folder/address ]] && break
  kill -0 "$server" || exit 1
  sleep 0.05
done
address=$(head -1 "$folder/address")

# Raw requests that no client library would send; they ask for acme/probe.
"$python" tests/acceptance/hub/srvprobe.py --make "$folder" >/dev/null
HF_ENDPOINT=$address HF_TOKEN=$writer HF_HOME=$folder/home "$(dirname "$python")/hf" upload acme/probe \
  "$folder/root/acme/probe" . --quiet >/dev/null
probed=0
"$python" tests/acceptance/hub/srvprobe.py --url "$address" || probed=$?

"$python" tests/acceptance/hub/hub_conformance.py "$address" --token "$writer" --reader-token "$reader" \
  --trusted-org trusted --compiled "$@"
exit "$probed"
