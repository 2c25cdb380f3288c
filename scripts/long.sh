#!/usr/bin/env bash
# The tests that are worth repeating more often than CI can: fuzz targets, property tests, store and file system suites,
# and kills. Writes scripts/long-results.txt.
#
#   long.sh [SUITE...]    fuzz, properties, stores, crashes, release; all without arguments
#
# LONG_FUZZ_ROUNDS and LONG_ROUNDS multiply what CI runs (200 and 10), LONG_SEED chooses the inputs of the fuzz targets.
# With the defaults it takes some hours. A suite that fails does not stop the others; the exit code tells.
set -euo pipefail
cd "$(dirname "$0")/.."

FUZZ_ROUNDS=${LONG_FUZZ_ROUNDS:-200}
ROUNDS=${LONG_ROUNDS:-10}
SEED=${LONG_SEED:-$(date +%j)}
RESULTS=scripts/long-results.txt
SUITES=("$@")
[ ${#SUITES[@]} -gt 0 ] || SUITES=(fuzz properties stores crashes release)

work=$(mktemp -d)
trap '[ ! -d "$work/servers" ] || scripts/servers.sh stop "$work/servers"; rm -rf "$work"' EXIT
if [ -z "${STEAD_TEST_REDIS_URL:-}" ]; then
  mkdir "$work/servers"
  scripts/servers.sh start "$work/servers"
  source "$work/servers/env"
fi

tests() { cargo nextest run --no-fail-fast --status-level fail --final-status-level fail "$@"; }

fuzz() { STEAD_FUZZ_SEED=$SEED STEAD_TEST_ROUNDS=$FUZZ_ROUNDS tests -p stead-fuzz; }

properties() {
  local failed=0
  PROPTEST_CASES=$((256 * ROUNDS)) STEAD_TEST_ROUNDS=$ROUNDS tests -p stead-core -p stead-shell -p stead-model -p stead-skills || failed=1
  STEAD_TEST_ROUNDS=$ROUNDS tests -p stead-agent -E 'test(/manuals/)' || failed=1
  return "$failed"
}

stores() {
  PROPTEST_CASES=$((256 * ROUNDS)) STEAD_TEST_ROUNDS=$ROUNDS tests -p stead-store -p stead-vfs -p stead-search
}

crashes() { # Most kill at every operation once; what differs from time to time is when, so they are repeated as a whole.
  local failed=0
  for _ in $(seq "$ROUNDS"); do
    tests -p stead-agent -p stead -E 'test(/crash|kill|fault/)' || failed=1
  done
  return "$failed"
}

release() { scripts/release.sh "$work/release"; } # no test runner: it counts as no tests

rounds_of() { if [ "$1" = fuzz ]; then echo "$FUZZ_ROUNDS"; elif [ "$1" = release ]; then echo 1; else echo "$ROUNDS"; fi; }

cargo build --quiet --tests -p stead-fuzz # so that the first suite's time is not that of the compiler
{
  echo "date:    $(date -u +%Y-%m-%dT%H:%MZ)"
  echo "commit:  $(git describe --always --dirty='+changes')"
  echo "machine: $(nproc) cores, $(uname -sm)"
  echo "seed:    $SEED (fuzz)"
  echo "rounds:  how many times as much as in CI"
  echo
  printf '%-12s %7s %9s  %s\n' suite rounds seconds result
} >"$work/results"

status=0
for suite in "${SUITES[@]}"; do
  case $suite in fuzz | properties | stores | crashes | release) ;; *) echo "long.sh: no suite $suite" >&2; exit 2 ;; esac
  start=$SECONDS
  result=passed
  "$suite" 2>&1 | tee "$work/log" || result=failed status=1
  count=$(sed -n 's/.*Summary.* \([0-9][0-9]*\) tests\{0,1\} run.*/\1/p' "$work/log" | awk '{ sum += $1 } END { print sum + 0 }')
  printf '%-12s %7s %9s  %s, %s tests\n' "$suite" "$(rounds_of "$suite")" $((SECONDS - start)) "$result" "$count" >>"$work/results"
  grep -E '^ +(FAIL|TIMEOUT|SIGKILL|SIGABRT) ' "$work/log" | sort -u | sed 's/^ */  /' >>"$work/results" || true
done

cp "$work/results" "$RESULTS"
cat "$RESULTS"
exit "$status"
