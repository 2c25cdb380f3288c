#!/usr/bin/env bash
# Every check, from a fresh Debian machine with a Rust toolchain: installs what is missing, then
# formatting, lints, dependencies, tests, doc tests, docs, the demo. Ends with the number of tests.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*"; }

need() { # need COMMAND PACKAGE: installs PACKAGE unless COMMAND is there
  command -v "$1" >/dev/null 2>&1 && return
  say "installing $2"
  if [ "$(id -u)" -ne 0 ]; then echo "missing $1: install $2, or run this as root" >&2; exit 1; fi
  [ -n "${APT_UPDATED:-}" ] || { apt-get update -qq; APT_UPDATED=1; }
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
}

need cc gcc
need script bsdutils
need setsid util-linux
need unshare util-linux
need bwrap bubblewrap
need rg ripgrep
need python3 python3
need git git
need redis-server redis-server
need "$(compgen -G '/usr/lib/postgresql/*/bin/postgres' | tail -1)" postgresql
need mariadbd mariadb-server

tool() { # tool NAME: a cargo subcommand that no package of Debian has; a debug build is fast enough here
  cargo "$1" --version >/dev/null 2>&1 && return
  say "installing cargo-$1"
  cargo install --locked --quiet --debug "cargo-$1"
}

tool nextest
tool deny

say "formatting"
cargo fmt --all --check

say "the figures in the README are those measured"
python3 scripts/figures.py --check

say "lints"
cargo clippy --workspace --all-targets --quiet -- -D warnings

say "dependencies: licences, banned crates, sources"
cargo deny --log-level error check bans licenses sources

say "servers"
log=$(mktemp)
servers=$(mktemp -d)
trap 'scripts/servers.sh stop "$servers"; rm -rf "$log" "$servers"' EXIT
scripts/servers.sh start "$servers"
source "$servers/env"

say "tests"
cargo nextest run --workspace --no-fail-fast 2>&1 | tee "$log"

say "doc tests"
cargo test --workspace --doc --quiet 2>&1 | tee -a "$log"

say "docs"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

say "the binary with its default features: no warnings, the demo, and what it says about a store that it lacks"
warnings=$(cargo build --quiet 2>&1) && [ -z "$warnings" ] || { echo "$warnings"; exit 1; }
target=${CARGO_TARGET_DIR:-target}/debug/stead
"$target" demo --fast >/dev/null
scripts/release.sh pieces "$target" "$servers/pieces"
for piece in completions/stead.bash completions/_stead completions/stead.fish man/man1/stead.1 man/man1/stead-sessions-show.1; do
  grep -q stead "$servers/pieces/$piece" || { echo "release.sh made no $piece"; exit 1; }
done
bash -n "$servers/pieces/completions/stead.bash"
mkdir "$servers/workspace"
for feature in redis postgres mysql; do
  printf 'filesystem: {mode: store, url: "%s://user@127.0.0.1:1/name"}\n' "$feature" >"$servers/workspace/agent.yaml"
  said=$(XDG_CONFIG_HOME=$servers/config "$target" --trust -C "$servers/workspace" sessions list 2>&1) && { echo "it opened a store of $feature"; exit 1; }
  grep -qF -- "--features $feature" <<<"$said" || { echo "$said"; exit 1; }
done

tests=$(sed -n 's/.*Summary.* \([0-9][0-9]*\) passed.*/\1/p' "$log" | tail -1)
doctests=$(awk '/^test result: ok\./ { sum += $4 } END { print sum + 0 }' "$log")
echo "$((tests + doctests)) passed, 0 failed"
