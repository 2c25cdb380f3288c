#!/usr/bin/env bash
# The servers that tests of shared stores need, on private loopback ports, with all data in one folder.
#
#   servers.sh start DIR       starts all of them, waits until each answers, writes DIR/env
#   servers.sh stop DIR        stops them
#   servers.sh run KIND DIR    one server in the foreground (redis, postgres or mysql); again: same port and data
#   servers.sh url KIND DIR    waits until that server answers, then prints its URL
#
# With STEAD_SERVERS=durable, what PostgreSQL and MariaDB acknowledge survives a power cut too, as in production.
# `source DIR/env` sets STEAD_TEST_REDIS_URL, STEAD_TEST_POSTGRES_URL and STEAD_TEST_MYSQL_URL.
set -euo pipefail

KINDS="redis postgres mysql"
PASSWORD=for-tests-only
READY_SECONDS=60
STOP_SECONDS=20
# Without, a killed server loses nothing, only a machine without power does; tests are faster so.
PG_FSYNC=off INNODB_FLUSH=2
[ "${STEAD_SERVERS:-}" != durable ] || PG_FSYNC=on INNODB_FLUSH=1

die() { echo "servers.sh: $*" >&2; exit 1; }

free_port() { # below the range from which the kernel takes ports for outgoing connections
  local port
  for _ in $(seq 100); do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  die "no free port"
}

as() { # as USER COMMAND...: becomes COMMAND, as USER where one is root
  local user=$1; shift
  if [ "$(id -u)" -ne 0 ]; then exec "$@"; fi
  exec setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
}

pg_bin() { compgen -G '/usr/lib/postgresql/*/bin' | sort -V | tail -1; }

prepare() { # prepare KIND DIR USER: a folder of the server's own
  mkdir -p "$2/$1"
  [ -s "$2/$1.port" ] || free_port >"$2/$1.port"
  if [ "$(id -u)" -eq 0 ]; then
    chmod a+x "$2"
    chown "$3:" "$2/$1"
  fi
}

# What is acknowledged is on disk: tests kill this server and look for it.
run_redis() {
  prepare redis "$1" redis
  as redis redis-server --bind 127.0.0.1 --port "$(cat "$1/redis.port")" --dir "$1/redis" --save '' \
    --appendonly yes --appendfsync always --daemonize no
}

# The collation is a language's on purpose: it is what real servers have, and it is not the order of bytes.
run_postgres() {
  local bin; bin=$(pg_bin)
  [ -n "$bin" ] || die "PostgreSQL is not installed (package postgresql)"
  prepare postgres "$1" postgres
  if [ ! -e "$1/postgres/ready" ]; then
    echo "$PASSWORD" >"$1/postgres/password"
    (as postgres "$bin/initdb" -D "$1/postgres/data" -U stead -E UTF8 --locale=C.UTF-8 --locale-provider=icu \
      --icu-locale=en --auth=scram-sha-256 --pwfile="$1/postgres/password" --no-sync)
    (as postgres "$bin/postgres" --single -D "$1/postgres/data" postgres <<<"CREATE DATABASE stead")
    touch "$1/postgres/ready"
  fi
  as postgres "$bin/postgres" -D "$1/postgres/data" -p "$(cat "$1/postgres.port")" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= -c fsync=$PG_FSYNC -c max_connections=200
}

run_mysql() {
  local user=mysql
  [ "$(id -u)" -eq 0 ] || user=$(id -un)
  prepare mysql "$1" "$user"
  # Not the shared one: a server that starts removes the temporary tables it finds there, whose ever they are.
  mkdir -p "$1/mysql/tmp"
  [ "$(id -u)" -ne 0 ] || chown "$user:" "$1/mysql/tmp"
  if [ ! -e "$1/mysql/ready" ]; then
    mariadb-install-db --no-defaults --datadir="$1/mysql/data" --tmpdir="$1/mysql/tmp" --user="$user" \
      --skip-test-db --auth-root-authentication-method=normal
    cat >"$1/mysql/init.sql" <<SQL
CREATE DATABASE IF NOT EXISTS stead;
CREATE USER IF NOT EXISTS 'stead'@'127.0.0.1' IDENTIFIED BY '$PASSWORD';
GRANT ALL ON stead.* TO 'stead'@'127.0.0.1';
SQL
    touch "$1/mysql/ready"
  fi
  exec mariadbd --no-defaults --datadir="$1/mysql/data" --tmpdir="$1/mysql/tmp" --user="$user" \
    --bind-address=127.0.0.1 --port="$(cat "$1/mysql.port")" --socket="$1/mysql/socket" --pid-file="$1/mysql/pid" \
    --init-file="$1/mysql/init.sql" --skip-name-resolve --max-connections=200 \
    --innodb-flush-log-at-trx-commit=$INNODB_FLUSH --innodb-buffer-pool-size=64M
}

url() { # url KIND PORT
  case $1 in
    redis) echo "redis://127.0.0.1:$2/" ;;
    postgres) echo "postgres://stead:$PASSWORD@127.0.0.1:$2/stead" ;;
    mysql) echo "mysql://stead:$PASSWORD@127.0.0.1:$2/stead" ;;
    *) die "unknown server $1; there are $KINDS" ;;
  esac
}

answers() { # answers KIND PORT
  case $1 in
    redis) [ "$(redis-cli -h 127.0.0.1 -p "$2" ping)" = PONG ] ;;
    postgres) "$(pg_bin)/psql" "$(url postgres "$2")" -c 'SELECT 1' ;;
    mysql) mariadb --no-defaults -h 127.0.0.1 -P "$2" -u stead -p"$PASSWORD" -e 'SELECT 1' stead ;;
    *) die "unknown server $1; there are $KINDS" ;;
  esac >/dev/null 2>&1
}

await() { # await KIND DIR
  local end=$((SECONDS + READY_SECONDS))
  until [ -s "$2/$1.port" ] && answers "$1" "$(cat "$2/$1.port")"; do
    if [ $SECONDS -ge $end ] || { [ -s "$2/$1.pid" ] && ! lives "$(cat "$2/$1.pid")"; }; then
      [ ! -e "$2/$1.log" ] || tail -20 "$2/$1.log" >&2
      die "$1 does not answer"
    fi
    sleep 0.05
  done
}

lives() { # lives PID: not if it only waits to be reaped, as it may do for ever in a container
  local state
  state=$(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$1/status" 2>/dev/null) && [ -n "$state" ] && [ "$state" != Z ]
}

refuse_twice() {
  local kind
  for kind in $KINDS; do
    [ ! -s "$1/$kind.pid" ] || ! lives "$(cat "$1/$kind.pid")" || die "$kind runs in $1 already; stop it first"
  done
}

start() {
  local kind
  mkdir -p "$1"
  for kind in $KINDS; do
    # A session of its own, so that it can be stopped with all that it started.
    setsid "$0" run "$kind" "$1" >"$1/$kind.log" 2>&1 </dev/null &
    echo $! >"$1/$kind.pid"
  done
  : >"$1/env"
  for kind in $KINDS; do
    await "$kind" "$1"
    echo "export STEAD_TEST_${kind^^}_URL=$(url "$kind" "$(cat "$1/$kind.port")")" >>"$1/env"
  done
}

stop() {
  local kind pid signal end
  for kind in $KINDS; do
    [ -s "$1/$kind.pid" ] || continue
    # To PostgreSQL, SIGTERM means to wait until every client has left.
    signal=TERM; [ "$kind" != postgres ] || signal=INT
    kill -s "$signal" -- "-$(cat "$1/$kind.pid")" 2>/dev/null || true
  done
  end=$((SECONDS + STOP_SECONDS))
  for kind in $KINDS; do
    [ -s "$1/$kind.pid" ] || continue
    pid=$(cat "$1/$kind.pid")
    while lives "$pid" && [ $SECONDS -lt $end ]; do sleep 0.05; done
    kill -KILL -- "-$pid" 2>/dev/null || true
    rm -f "$1/$kind.pid"
  done
}

usage() { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }

case "${1:-} $#" in
  "start 2") refuse_twice "$(realpath -m "$2")"; (start "$(realpath -m "$2")") || { stop "$(realpath -m "$2")"; exit 1; } ;;
  "stop 2") stop "$(realpath -m "$2")" ;;
  "run 3")
    case $2 in
      redis | postgres | mysql) "run_$2" "$(realpath -m "$3")" ;;
      *) die "unknown server $2; there are $KINDS" ;;
    esac ;;
  "url 3")
    await "$2" "$(realpath -m "$3")"
    url "$2" "$(cat "$3/$2.port")" ;;
  *) usage ;;
esac
