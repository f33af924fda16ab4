# Sourced by test.sh and acceptance.sh: runs named steps, goes on after a failure, and keeps what came of them.
#
# Sets results, a new folder for JUnit files and steps.tsv; test_summary.py makes the table of it.
results=$PWD/build/results/$suite
rm -rf "$results"
mkdir -p "$results"

# step NAME COMMAND...: runs the command, shows its time, and notes name, exit code and seconds for the summary.
step() {
  local name=$1 code=0 start=$SECONDS
  shift
  printf '\n==> %s: %s\n' "$name" "$*"
  "$@" || code=$?
  printf '%s\t%s\t%s\n' "$name" "$code" $((SECONDS - start)) >>"$results/steps.tsv"
  return $code
}
