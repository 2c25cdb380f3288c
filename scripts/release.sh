#!/usr/bin/env bash
# Builds the binary that needs nothing of the system that it runs on, tries it in an empty root, and packs it.
#
#   release.sh [OPTION...] OUT        everything; the folder OUT gets the archive and its checksum
#     --target TRIPLE, --features LIST, --profile PROFILE    dev is built sooner, to try this script
#   release.sh pieces STEAD FOLDER    completions and manual pages only, of the binary STEAD
#
# The target is musl where rustup has it, else gnu with a static C library. Without --features, every store is built in.
# Needs cargo, python3, and root or user namespaces for the empty root.
set -euo pipefail
scripts=$(cd "$(dirname "$0")" && pwd)
cd "$scripts/.."
DEFAULT_MAX_MB=25 ALL_MAX_MB=45

die() { echo "release.sh: $*" >&2; exit 1; }

pieces() { # pieces STEAD FOLDER
  mkdir -p "$2/completions" "$2/man/man1"
  "$1" completions bash >"$2/completions/stead.bash"
  "$1" completions zsh >"$2/completions/_stead"
  "$1" completions fish >"$2/completions/stead.fish"
  python3 "$scripts/man-pages.py" "$1" "$2/man/man1"
}

installed() { [ -d "$(rustc --print target-libdir --target "$1" 2>/dev/null)" ]; }

default_target() {
  local host
  host=$(rustc -vV | sed -n 's/^host: //p')
  if installed "${host%%-*}-unknown-linux-musl" && command -v musl-gcc >/dev/null; then
    echo "${host%%-*}-unknown-linux-musl"
  else
    echo "$host"
  fi
}

in_root() { # in_root ROOT VARIABLE=VALUE... COMMAND...: the program sees the files of ROOT and no others
  local root=$1 user=(--user --map-root-user) variables=()
  shift
  [ "$(id -u)" -ne 0 ] || user=()
  while [[ $1 == *=* ]]; do variables+=("$1"); shift; done
  env -i HOME=/ "${variables[@]}" "$(command -v unshare)" "${user[@]}" --mount "$(command -v chroot)" "$root" "$@"
}

answer_as_a_model() { # prints its port; whatever it is asked, it answers "pong"
  python3 -u -c '
import http.server
def event(delta, reason):
    return "data: " + __import__("json").dumps({"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "x",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}) + "\n\n"
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write((event({"role": "assistant", "content": "pong"}, None) + event({}, "stop") + "data: [DONE]\n\n").encode())
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port)
server.serve_forever()' >"$work/port" &
  model=$!
  until [ -s "$work/port" ]; do sleep 0.1; done
}

try_in_empty_root() { # try_in_empty_root STEAD
  local root=$work/root said
  mkdir -p "$root/tmp" "$root/workspace" "$root/etc"
  cp "$1" "$root/stead"
  said=$(in_root "$root" /stead --version) || die "--version does not work in an empty root"
  echo "in an empty root: $said"
  in_root "$root" /stead demo --fast >"$work/demo" 2>&1 || { cat "$work/demo"; die "the demo does not work in an empty root"; }
  echo "in an empty root: the demo, $(wc -l <"$work/demo") lines"
  # A static C library finds the addresses of names in its own way.
  echo "127.0.0.1 model.example" >"$root/etc/hosts"
  answer_as_a_model
  said=$(in_root "$root" OPENAI_API_KEY=none "OPENAI_BASE_URL=http://model.example:$(cat "$work/port")/v1" \
    /stead run -C /workspace -m openai:x ping) || die "a run does not work in an empty root"
  [ "$said" = pong ] || die "a run in an empty root said: $said"
  echo "in an empty root: a run with a model at model.example"
}

pack() { # pack STEAD TARGET OUT: an archive with the same bytes whenever it is made of the same files
  local version name folder
  version=$("$1" --version | cut -d' ' -f2)
  name=stead-$version-$2
  folder=$work/$name
  mkdir -p "$folder"
  cp "$1" README.md CHANGELOG.md SECURITY.md LICENSE-MIT LICENSE-APACHE "$folder"
  pieces "$1" "$folder"
  tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -cf - "$name" |
    gzip -9 -n >"$3/$name.tar.gz"
  (cd "$3" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256" && sha256sum --check --quiet "$name.tar.gz.sha256")
  echo "$3/$name.tar.gz"
}

check_size() { # check_size STEAD MAX_MB
  local bytes
  bytes=$(stat -c %s "$1")
  echo "the binary: $((bytes / 1048576)) MB of at most $2"
  [ "$bytes" -le $(($2 * 1048576)) ] || die "the binary is larger than that"
}

[ $# -gt 0 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
if [ "$1" = pieces ]; then
  [ $# -eq 3 ] || die "pieces takes a binary and a folder"
  pieces "$2" "$3"
  exit
fi

features=(--all-features) max_mb=$ALL_MAX_MB profile=dist target= out=
while [ $# -gt 0 ]; do
  case $1 in
    --target) target=$2; shift 2 ;;
    --profile) profile=$2; shift 2 ;;
    --features) features=(--features "$2") max_mb=$([ -n "$2" ] && echo $ALL_MAX_MB || echo $DEFAULT_MAX_MB); shift 2 ;;
    -*) die "no option $1" ;;
    *) out=$1; shift ;;
  esac
done
[ -n "$out" ] || die "where to? release.sh OUT"
mkdir -p "$out"
out=$(cd "$out" && pwd)
target=${target:-$(default_target)}
installed "$target" || die "the target $target is not installed: rustup target add $target"
work=$(mktemp -d)
model=
trap '[ -z "$model" ] || kill "$model"; rm -rf "$work"' EXIT

# With --target, the flags are for the binary alone and not for the programs that help to build it. Without the second,
# a static binary finds no getrandom() of its C library and needs /dev/urandom.
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static --cfg getrandom_backend=\"linux_getrandom\"" \
  cargo build --locked --profile "$profile" --target "$target" -p stead "${features[@]}"
built=${CARGO_TARGET_DIR:-target}/$target/${profile/#dev/debug}/stead
[ "$profile" != dist ] || check_size "$built" "$max_mb"
try_in_empty_root "$built"
pack "$built" "$target" "$out"
