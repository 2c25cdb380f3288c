"""Figures of places: operations per second beside the raw client's, moving a workspace, the price of undo, searching
under rules, and steps of an agent whose place is a store."""
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time
import urllib.parse

import raw
from common import (
    DATA, HERE, TMP, Workdir, busy_s, check_answer, clean_data, fresh_id, median_run_ms, number, overheads_ms, quiet,
    run, session, session_cpu_s, wait_for_calm,
)

PLACES = {
    "memory": "memory", "local": "local folder", "sqlite": "SQLite", "redis": "Redis", "postgres": "PostgreSQL",
    "mysql": "MariaDB",
}
SERVERS = ("redis", "postgres", "mysql")
STORES = ("sqlite", *SERVERS)
OPS = ["write", "overwrite", "read", "stat", "list", "append"]
LAYERED_OPS = ["write", "overwrite", "read", "stat", "list"]
CROWDS = (1, 16)
MOVED_FILES, MOVED_BYTES, MOVED_FOLDERS = 1024, 4096, 32
LARGE_BYTES = 10 * 1024 * 1024
SEARCHES = ("glob", "grep_literal", "grep_regex")
RG_FACTOR = 1.2

RULES = """permissions:
  - {operations: [write], paths: ["config/**"], mode: deny}
  - {operations: [read, write], paths: ["private/**", "**/*.pem"], mode: deny}
  - {operations: [write], paths: ["tree/d0*/**"], mode: ask}
  - {operations: [read], paths: ["drafts/**", "tree/**/[!a-z]*.tmp"], mode: ask}
  - {operations: [read, write], paths: ["tree/**/*.{key,crt}"], mode: deny}
"""


class StoreServer:
    """One server that `scripts/servers.sh` started."""

    def __init__(self, kind, folder):
        self.url = (folder / "env").read_text().split(f"STEAD_TEST_{kind.upper()}_URL=")[1].split("\n")[0]
        parts = urllib.parse.urlsplit(self.url)
        self.port, self.user, self.password = parts.port, parts.username, parts.password
        self.database = parts.path.strip("/")
        self.leader = int((folder / f"{kind}.pid").read_text())


@contextlib.contextmanager
def store_servers():
    """The servers on private ports, durable; stopped and gone afterwards."""
    script = str(HERE.parent / "scripts" / "servers.sh")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="servers", dir=TMP))
    subprocess.run([script, "start", folder], check=True, env={**os.environ, "STEAD_SERVERS": "durable"})
    try:
        yield {kind: StoreServer(kind, folder) for kind in SERVERS}
    finally:
        subprocess.run([script, "stop", folder], check=True)
        shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """Measures; keeps every sample under its name."""

    def __init__(self, server, harness, options, servers):
        self.server, self.harness, self.options, self.servers = server, harness, options, servers
        self.stead = str(options.stead)
        self.adapter = harness.command[0]
        self.samples = {}

    def leaders(self, place):
        return [self.servers[place].leader] if place in self.servers else []

    def keep(self, name, value, foreign):
        self.samples.setdefault(name, []).append({"value": value, "foreign": foreign})

    def settle(self, workdir, place, namespace, file=None):
        """Writes the settings that put the workspace into a place."""
        if place == "local":
            return
        urls = {"memory": "memory:", "sqlite": f"sqlite:{file or workdir / 'agents' / 'store.db'}"}
        url = self.servers[place].url if place in self.servers else urls[place]
        (workdir / "agent.yaml").write_text(f'filesystem: {{mode: store, url: "{url}", namespace: {namespace}}}\n')

    def rates(self, place, layers, ops, clients, **more):
        with Workdir() as workdir:
            self.settle(workdir, place, fresh_id("n"))
            argv = [self.adapter, "place", "--workdir", workdir, "--layers", layers, "--ops", ",".join(ops)]
            argv += ["--clients", clients, "--ms", 300 if self.options.quick else 1000]
            argv += [text for name, value in more.items() for text in (f"--{name}", value)]
            done = run(None, [*map(str, argv)], self.leaders(place))
            return done.last_json(), done.foreign

    def operations(self):
        for place in PLACES:
            for clients in CROWDS:
                if place in raw.CLIENTS:
                    found, foreign = foreign_share(
                        self.leaders(place), lambda: raw.CLIENTS[place](self.servers.get(place), clients)
                    )
                    for op, rate in found.items():
                        self.keep(("raw", place, clients, op), rate, foreign)
                found, foreign = self.rates(place, "bare", OPS, clients)
                for op, rate in found.items():
                    self.keep(("bare", place, clients, op), rate, foreign)
            for layers in ("recorded", "agent"):
                found, foreign = self.rates(place, layers, LAYERED_OPS, 1)
                for op, rate in found.items():
                    self.keep((layers, place, 1, op), rate, foreign)

    def undo(self):
        for layers in ("bare", "recorded"):
            found, foreign = self.rates("local", layers, ["overwrite"], 1, bytes=LARGE_BYTES, files=1)
            self.keep(("large", layers), 1000 / found["overwrite"], foreign)

    def moves(self):
        for place in STORES:
            with Workdir() as home, Workdir() as other, Workdir() as kept:
                namespace, file = fresh_id("n"), kept / "store.db"
                fill(home)
                for workdir in (home, other):
                    self.settle(workdir, place, namespace, file)
                for way, workdir in (("push", home), ("pull", other)):
                    for state in ("cold", "warm"):
                        argv = [self.stead, "workspace", way, "--trust", "-C", str(workdir), "--json"]
                        done = run(None, argv, self.leaders(place))
                        moved = sum(step["action"] == "create" for step in done.last_json()["steps"])
                        expected = MOVED_FILES if state == "cold" else 0
                        if not expected <= moved <= expected + 2:
                            raise RuntimeError(f"{way} of a {state} {place} moved {moved} files")
                        self.keep(("move", place, way, state), done.wall_s * 1e3, done.foreign)

    def steps(self):
        count = 20 if self.options.quick else 100
        for place in ("local", *STORES):
            for what in ("read", "write"):
                with Workdir() as workdir:
                    self.settle(workdir, place, fresh_id("n"))
                    calls = [self.harness.call(what, workdir)]
                    leaders = self.leaders(place)
                    done, rows = session(self.server, self.harness, workdir, count, calls, "--stream", leaders=leaders)
                self.keep(("step", place, what), statistics.median(overheads_ms(rows)[2:]), done.foreign)

    def searches(self):
        for rules in ("none", "five"):
            clean_data()
            if rules == "five":
                (DATA / "agent.yaml").write_text(RULES)
            for key in SEARCHES:
                calls = [self.harness.call("read", DATA), *[self.harness.call(key, DATA)] * 2]
                if ("search", key, rules) not in self.samples:
                    check_answer(self.server, self.harness, key, calls)
                done, rows = session(self.server, self.harness, DATA, 3, calls)
                self.keep(("search", key, rules), overheads_ms(rows)[1], done.foreign)
        clean_data()
        if shutil.which("rg"):
            tree = str(DATA / "tree")
            for key, argv in (
                ("glob", ["rg", "--files", "-g", "*.py", tree]),
                ("grep_literal", ["rg", "-n", "-F", "_target(): pass", tree]),
                ("grep_regex", ["rg", "-n", "needle_[0-9]+_target", tree]),
            ):
                self.keep(("search", key, "rg"), median_run_ms(argv, 3), 0.0)


def foreign_share(leaders, work):
    """What `work` gives, and the share of the machine that others used meanwhile."""

    def own_s():
        return sum(os.times()[:4]) + sum(map(session_cpu_s, leaders))

    wait_for_calm()
    busy, own, begun = busy_s(), own_s(), time.monotonic()
    found = work()
    foreign_s = (busy_s() - busy) - (own_s() - own)
    return found, round(max(0.0, foreign_s) / ((time.monotonic() - begun) * os.cpu_count()), 3)


def fill(folder):
    for n in range(MOVED_FILES):
        path = folder / f"d{n % MOVED_FOLDERS:02}" / f"f{n:04}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.urandom(MOVED_BYTES))


def measure(server, harness, options):
    with store_servers() as servers:
        bench = Bench(server, harness, options, servers)
        for _ in range(options.reps):
            for part in (bench.operations, bench.undo, bench.moves, bench.steps, bench.searches):
                print(f"{time.strftime('%H:%M:%S')}   {part.__name__}", flush=True)
                part()
    return bench.samples


# ---- the section of the report


class Figures:
    def __init__(self, samples):
        self.samples = samples

    def __call__(self, *name):
        kept = self.samples.get(name)
        return statistics.median(s["value"] for s in quiet(kept)) if kept else None

    def span(self, *name):
        values = [s["value"] for s in quiet(self.samples.get(name, []))]
        if not values:
            return "–"
        span = f" ({number(min(values))}–{number(max(values))})" if len(values) > 1 else ""
        return number(statistics.median(values)) + span


def share(part, whole):
    return f"{number(part / whole)} ×" if part and whole else "–"


def table(*lines):
    rows = ["| " + " | ".join(line) + " |" for line in lines]
    return "\n".join([rows[0], "|---" * len(lines[0]) + "|", *rows[1:]])


def operations_table(at):
    lines = [["place", "clients", "", *OPS]]
    for place, title in PLACES.items():
        for clients in CROWDS:
            rates = [at("bare", place, clients, op) for op in OPS]
            lines.append([title, str(clients), "stead", *map(number, rates)])
            if place in raw.CLIENTS:
                limits = [at("raw", place, clients, op) for op in OPS]
                lines.append(["", "", raw.CLIENT_NAMES[place], *map(number, limits)])
                lines.append(["", "", "of it", *map(share, rates, limits)])
    return table(*lines)


def layers_table(at):
    lines = [["place", "layers", *LAYERED_OPS]]
    names = {"bare": "the place itself", "recorded": "+ memory of undo", "agent": "all that an agent has"}
    for place, title in PLACES.items():
        for layers, name in names.items():
            lines.append([title, name, *(number(at(layers, place, 1, op)) for op in LAYERED_OPS)])
            title = ""
    return table(*lines)


def moves_table(at):
    lines = [["place", "push, cold", "push, nothing changed", "pull, cold", "pull, nothing changed", "raw writes", "raw reads and local writes"]]
    for place in STORES:
        times = [at.span("move", place, way, state) for way in ("push", "pull") for state in ("cold", "warm")]
        written = at("raw", place, 16, "write")
        limits = [MOVED_FILES / written * 1e3] if written else [None]
        read, local = at("raw", place, 16, "read"), at("raw", "local", 16, "write")
        limits.append((MOVED_FILES / read + MOVED_FILES / local) * 1e3 if read and local else None)
        lines.append([PLACES[place], *times, *map(number, limits)])
    return table(*lines)


def undo_table(at):
    lines = [["", "unit", "without", "with undo", "share of undo"]]

    def line(label, without, recorded):
        part = f"{(recorded - without) / recorded:.0%}" if without and recorded else "–"
        lines.append([label, "ms", number(without), number(recorded), part])

    for op, label in (("write", "write a new file of 4 KiB"), ("overwrite", "overwrite a file of 4 KiB")):
        rates = [at(layers, "local", 1, op) for layers in ("bare", "recorded")]
        line(label, *(1000 / rate if rate else None for rate in rates))
    line("overwrite a file of 10 MB", at("large", "bare"), at("large", "recorded"))
    return table(*lines)


def steps_table(at):
    lines = [["place", "step that reads", "step that writes"]]
    for place in ("local", *STORES):
        lines.append([PLACES[place], at.span("step", place, "read"), at.span("step", place, "write")])
    return table(*lines)


def search_table(at):
    lines = [["", "no rules", "five rules", "rg", "of rg", "of rg, five rules", "verdict"]]
    for key, label in (("glob", "glob"), ("grep_literal", "grep, literal"), ("grep_regex", "grep, regex")):
        plain, ruled, rg = (at("search", key, rules) for rules in ("none", "five", "rg"))
        met = rg and max(plain, ruled) <= RG_FACTOR * rg
        verdict = "–" if not rg else "met" if met else "**missed**"
        spans = [at.span("search", key, rules) for rules in ("none", "five", "rg")]
        lines.append([label, *spans, share(plain, rg), share(ruled, rg), verdict])
    return table(*lines)


def section(samples, machine, options):
    at = Figures(samples)
    foreign = [s["foreign"] for kept in samples.values() for s in quiet(kept)]
    return "\n".join([
        f"Measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC on {machine}; {options.reps} repetitions, medians.",
        f"Share of the machine used by others during the samples counted: median {statistics.median(foreign):.0%}, at most {max(foreign):.0%}.",
        "Every write is durable: Redis has `appendfsync always`, PostgreSQL `fsync=on`, MariaDB "
        "`innodb_flush_log_at_trx_commit=1`, SQLite WAL with `synchronous=FULL`; all on this machine, over loopback.",
        "",
        "### Operations per second",
        "",
        "Files and journal entries of 4 KiB; a listing has 100 files; each client works in its own directory. Below, "
        "the raw client of the same server in the same run: it writes one row and checks nothing.",
        "",
        operations_table(at),
        "",
        "### Operations per second through the layers, one client",
        "",
        layers_table(at),
        "",
        "### 1,024 files of 4 KiB, moved by `stead workspace`, in ms",
        "",
        "Median (least–most), the start of the process included. Beside it, what the raw client takes for as many "
        "operations, 16 at once.",
        "",
        moves_table(at),
        "",
        "### What undo costs in a local folder",
        "",
        undo_table(at),
        "",
        "### Steps of an agent by place, in ms",
        "",
        "Overhead as in the table above, journal in the same place: median (least–most).",
        "",
        steps_table(at),
        "",
        "### Searching 20,000 files under rules, in ms",
        "",
        f"As an agent's tools run, guarded and recorded; the budget is {RG_FACTOR} × `rg`.",
        "",
        search_table(at),
        "",
    ])
