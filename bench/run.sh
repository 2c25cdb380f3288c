#!/usr/bin/env bash
# Builds, measures, writes RESULTS.md. Options of its own: --peers (install the peers into a venv first);
# all others go to bench.py: --quick, --tests a,b (places: stores and moving), --reps N, --harness a,b, --out FILE.
# Needs cargo and python3; rg for the limits of search. Everything made on the way is in $BENCH_TMP.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
export BENCH_TMP=${BENCH_TMP:-${TMPDIR:-/tmp}/stead-bench}
target=${CARGO_TARGET_DIR:-$here/../target}
mkdir -p "$BENCH_TMP"

options=()
for option in "$@"; do
  if [[ $option == --peers ]]; then
    [[ -x $BENCH_TMP/venv/bin/python ]] || python3 -m venv "$BENCH_TMP/venv"
    "$BENCH_TMP/venv/bin/pip" install -q deepagents==0.7.32 langchain-openai==1.7.3 langgraph-checkpoint-sqlite==3.1.2 \
      langchain-anthropic==1.7.7 anthropic==2.8.0 openai==3.49.0 agentscope==2.0.10
  else
    options+=("$option")
  fi
done

cargo build --profile dist --manifest-path "$here/../Cargo.toml" -p stead -p stead-bench -p stead-testkit --bin stead --bin stead-bench --bin fake-model
python3 "$here/gen_data.py" "$BENCH_TMP/data"
exec python3 "$here/bench.py" --stead "$target/dist/stead" --adapter "$target/dist/stead-bench" --fake-model "$target/dist/fake-model" "${options[@]}"
