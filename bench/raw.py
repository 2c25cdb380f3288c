"""What the machine and the servers do when nothing of Stead is in the way: the same operations by the servers' own
benchmark clients, by SQLite in a loop, and by plain system calls.

Each function gives operations per second, by name: write (a new row or file of 4 KiB), overwrite, read, stat (a few
hundred bytes of the same row), list (a hundred of these at once) and append. All writes are durable.
"""
import csv
import os
import pathlib
import re
import shutil
import sqlite3
import tempfile
import threading
import time

from common import TMP, run

BODY = os.urandom(2048).hex()
META = os.urandom(100).hex()
LISTED = 100
SECONDS = 1.0


def loop(work, clients):
    """How often `work(client, n)` is done per second by so many threads."""
    counts = [0] * clients
    begun = time.perf_counter()

    def client(number):
        while time.perf_counter() - begun < SECONDS:
            work(number, counts[number])
            counts[number] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - begun)


# ---- the local disk


def local(_server, clients):
    """A file is written beside the old one, synced, renamed over it, and its directory is synced."""
    body = BODY.encode()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="raw", dir=TMP))
    journals = []
    for client in range(clients):
        for name in ("old", "new"):
            (folder / f"{name}{client}").mkdir(parents=True)
        for n in range(LISTED):
            (folder / f"old{client}" / str(n)).write_bytes(body)
        journals.append(os.open(folder / f"journal{client}", os.O_CREAT | os.O_WRONLY | os.O_APPEND))
    directories = {name: os.open(folder / name, os.O_RDONLY) for name in os.listdir(folder) if "journal" not in name}

    def write(name):
        def one(client, n):
            directory = directories[f"{name}{client}"]
            n = n % LISTED if name == "old" else n
            file = os.open(f"{n}.tmp", os.O_CREAT | os.O_WRONLY | os.O_EXCL, dir_fd=directory)
            os.write(file, body)
            os.fdatasync(file)
            os.close(file)
            os.rename(f"{n}.tmp", str(n), src_dir_fd=directory, dst_dir_fd=directory)
            os.fdatasync(directory)

        return one

    def read(client, n):
        file = os.open(str(n % LISTED), os.O_RDONLY, dir_fd=directories[f"old{client}"])
        os.read(file, 8192)
        os.close(file)

    def stat(client, n):
        os.stat(str(n % LISTED), dir_fd=directories[f"old{client}"])

    def listing(client, _n):
        with os.scandir(directories[f"old{client}"]) as entries:
            for entry in entries:
                entry.stat()

    def append(client, _n):
        os.write(journals[client], body)
        os.fdatasync(journals[client])

    work = {
        "write": write("new"), "overwrite": write("old"), "read": read, "stat": stat, "list": listing, "append": append,
    }
    found = {name: loop(one, clients) for name, one in work.items()}
    for file in [*directories.values(), *journals]:
        os.close(file)
    shutil.rmtree(folder)
    return found


# ---- SQLite


def sqlite(_server, clients):
    """One transaction for each write. SQLite has one writer at a time, so the writers share one connection."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="raw", dir=TMP))

    def connect():
        made = sqlite3.connect(folder / "raw.db", isolation_level=None, check_same_thread=False)
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("PRAGMA synchronous=FULL")
        return made

    writer, turn = connect(), threading.Lock()
    writer.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, meta BLOB, body BLOB)")
    body, meta = BODY.encode(), META.encode()
    for client in range(clients):
        rows = [(client * LISTED + n, meta, body) for n in range(LISTED)]
        writer.executemany("INSERT INTO raw VALUES (?, ?, ?)", rows)
    readers = [connect() for _ in range(clients)]
    insert = "INSERT INTO raw (meta, body) VALUES (?, ?)"

    def write(_client, _n):
        with turn:
            writer.execute(insert, (meta, body))

    def overwrite(client, n):
        fresh = b"%016x" % n + body[16:]  # the same again would be no write at all
        with turn:
            writer.execute("UPDATE raw SET body = ? WHERE id = ?", (fresh, client * LISTED + n % LISTED))

    def query(sql):
        return lambda client, n: readers[client].execute(sql, (client * LISTED + n % LISTED,)).fetchall()

    def listing(client, _n):
        readers[client].execute(f"SELECT id, meta FROM raw WHERE id >= ? LIMIT {LISTED}", (client * LISTED,)).fetchall()

    work = {
        "write": write, "overwrite": overwrite, "read": query("SELECT meta, body FROM raw WHERE id = ?"),
        "stat": query("SELECT meta FROM raw WHERE id = ?"), "list": listing, "append": write,
    }
    found = {name: loop(one, clients) for name, one in work.items()}
    for connection in [writer, *readers]:
        connection.close()
    shutil.rmtree(folder)
    return found


# ---- Redis


def redis(server, clients):
    """redis-benchmark, for each operation the command that does as much as is needed and no more."""
    def measured(*command):
        def rate(requests):
            argv = ["redis-benchmark", "-h", "127.0.0.1", "-p", str(server.port), "-c", str(clients), "-r", "100000"]
            argv += ["-n", str(requests), "--csv", *command]
            rows = list(csv.reader(run(None, argv, [server.leader]).out.splitlines()))
            return float(rows[-1][1])

        rough = rate(20 * clients)
        return rate(max(50, int(rough * SECONDS)))

    run(None, ["redis-cli", "-p", str(server.port), "DEL", "raw:list", "raw:journal"])
    run(None, ["redis-cli", "-p", str(server.port), "RPUSH", "raw:list", *[META] * LISTED])
    run(None, ["redis-cli", "-p", str(server.port), "MSET", "raw:body", BODY, "raw:meta", META])
    found = {
        "write": measured("SET", "raw:__rand_int__", BODY),
        "overwrite": measured("SET", "raw:body", BODY),
        "read": measured("GET", "raw:body"),
        "stat": measured("GET", "raw:meta"),
        "list": measured("LRANGE", "raw:list", "0", str(LISTED - 1)),
        "append": measured("RPUSH", "raw:journal", BODY),
    }
    run(None, ["redis-cli", "-p", str(server.port), "DEL", "raw:journal"])
    return found


# ---- PostgreSQL

PG_ROWS = 1600
PG_SCRIPTS = {
    "write": "INSERT INTO raw VALUES (nextval('raw_ids'), :meta, :body);",
    "overwrite": "UPDATE raw SET body = :body WHERE id = :id;",
    "read": "SELECT meta, body FROM raw WHERE id = :id;",
    "stat": "SELECT meta FROM raw WHERE id = :id;",
    "list": f"SELECT id, meta FROM raw WHERE id >= :id - {LISTED} ORDER BY id LIMIT {LISTED};",
    "append": "INSERT INTO raw VALUES (nextval('raw_ids'), :meta, :body);",
}


def postgres(server, clients):
    """pgbench with prepared statements, each a transaction."""
    env = {**os.environ, "PGPASSWORD": server.password}
    where = ["-h", "127.0.0.1", "-p", str(server.port), "-U", server.user, server.database]
    setup = (
        "DROP TABLE IF EXISTS raw; DROP SEQUENCE IF EXISTS raw_ids; CREATE SEQUENCE raw_ids START 1000000; "
        "CREATE TABLE raw (id bigint PRIMARY KEY, meta bytea, body bytea); "
        f"INSERT INTO raw SELECT n, '{META}', '{BODY}' FROM generate_series(1, {PG_ROWS}) n"
    )
    run(None, ["psql", "-q", "-c", setup, *where], env=env)
    found = {}
    with tempfile.NamedTemporaryFile("w", dir=TMP, suffix=".sql") as script:
        for name, sql in PG_SCRIPTS.items():
            script.seek(0)
            script.truncate()
            script.write(f"\\set id random(1, {PG_ROWS})\n{sql}\n")
            script.flush()
            argv = ["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", "1", "-T", str(round(SECONDS))]
            argv += ["-f", script.name, "-D", f"meta={META}", "-D", f"body={BODY}", *where]
            out = run(None, argv, [server.leader], env).out
            found[name] = float(re.search(r"tps = ([0-9.]+)", out).group(1))
    return found


# ---- MariaDB

# Every client of the tool runs the same statements, so rows are told apart by the connection; and what is written
# is never what was there, for that would be no write at all.
MARIADB_QUERIES = {
    "write": "INSERT INTO raw (meta, body) VALUES ('{meta}', '{body}')",
    "overwrite": "INSERT INTO raw VALUES (1000000000 + 1000 * CONNECTION_ID() + {n}, '{meta}', "
    "INSERT('{body}', 1, 36, UUID())) ON DUPLICATE KEY UPDATE body = VALUES(body)",
    "read": "SELECT meta, body FROM raw WHERE id = {n} + 1",
    "stat": "SELECT meta FROM raw WHERE id = {n} + 1",
    "list": f"SELECT id, meta FROM raw WHERE id > {{n}} ORDER BY id LIMIT {LISTED}",
    "append": "INSERT INTO raw (meta, body) VALUES ('{meta}', '{body}')",
}


def mysql(server, clients):
    """mariadb-slap; each statement is a transaction."""
    where = ["--no-defaults", "-h", "127.0.0.1", "-P", str(server.port), "-u", server.user, f"-p{server.password}"]
    setup = (
        "DROP TABLE IF EXISTS raw; CREATE TABLE raw (id bigint AUTO_INCREMENT PRIMARY KEY, meta blob, body longblob); "
        f"INSERT INTO raw (meta, body) SELECT '{META}', '{BODY}' FROM seq_1_to_{2 * LISTED}"
    )
    run(None, ["mariadb", *where, server.database, "-e", setup])
    found = {}
    with tempfile.NamedTemporaryFile("w", dir=TMP, suffix=".sql") as script:
        for name, query in MARIADB_QUERIES.items():
            script.seek(0)
            script.truncate()
            script.write(";".join(query.format(n=n, meta=META, body=BODY) for n in range(LISTED)))
            script.flush()

            def rate(queries):
                argv = ["mariadb-slap", *where, f"--create-schema={server.database}", "--no-drop", "--csv"]
                argv += [f"--query={script.name}", "--delimiter=;", f"--concurrency={clients}"]
                out = run(None, [*argv, f"--number-of-queries={queries}"], [server.leader]).out
                if not out.strip():  # it says nothing, and succeeds, if a statement fails
                    raise RuntimeError(f"mariadb-slap cannot {name}")
                seconds = float(out.strip().splitlines()[-1].split(",")[2])
                return queries / max(seconds, 0.001)

            rough = rate(100 * clients)
            per_client = max(100, int(rough * SECONDS / clients) // LISTED * LISTED)
            found[name] = rate(per_client * clients)
    return found


CLIENTS = {"local": local, "sqlite": sqlite, "redis": redis, "postgres": postgres, "mysql": mysql}
CLIENT_NAMES = {
    "local": "system calls, from Python", "sqlite": "SQLite, from Python", "redis": "redis-benchmark",
    "postgres": "pgbench", "mysql": "mariadb-slap",
}
