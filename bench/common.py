"""What every part of the benchmark needs: harnesses, the model server, processes, samples."""
import atexit
import dataclasses
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
TMP = pathlib.Path(os.environ.get("BENCH_TMP") or os.path.join(tempfile.gettempdir(), "stead-bench"))
DATA = TMP / "data"
VENV_PYTHON = TMP / "venv" / "bin" / "python"
MAX_FOREIGN = float(os.environ.get("BENCH_MAX_FOREIGN", "0.12"))
WAIT_S = float(os.environ.get("BENCH_WAIT_S", "0"))
MB = 1024 * 1024

# ---- harnesses: how they are started, and what their tools are called. {i} is the step, {root} the prefix of paths.

THREE_LINES = "line one\nline two\nline three\n"
EDIT = {"file_path": "{root}/edit10.txt", "old_string": "UNIQUE_MARKER_A", "new_string": "UNIQUE_MARKER_B"}
EDIT_BACK = {**EDIT, "old_string": EDIT["new_string"], "new_string": EDIT["old_string"]}
READ_BIG = {"file_path": "{root}/big.txt", "offset": 6_000_000, "limit": 100}
WRITE = {"file_path": "{root}/f{i}.txt", "content": THREE_LINES}
TREE = {"path": "{root}/tree"}

TOOLS = {
    "stead": {
        "write": ("write_file", WRITE),
        "read": ("read_file", {"file_path": "{root}/seed.txt"}),
        "glob": ("glob_files", {"pattern": "**/*.py", **TREE}),
        "grep_literal": ("grep_files", {"pattern": "_target(): pass", "literal": True, **TREE}),
        "grep_regex": ("grep_files", {"pattern": "needle_[0-9]+_target", **TREE}),
        "read_big": ("read_file", READ_BIG),
        "edit": ("edit_file", EDIT),
        "edit_back": ("edit_file", EDIT_BACK),
    },
    "deepagents": {
        "write": ("write_file", WRITE),
        "read": ("read_file", {"file_path": "{root}/seed.txt"}),
        "glob": ("glob", {"pattern": "**/*.py", **TREE}),
        "grep_literal": ("grep", {"pattern": "_target(): pass", **TREE}),
        "read_big": ("read_file", READ_BIG),
        "edit": ("edit_file", EDIT),
        "edit_back": ("edit_file", EDIT_BACK),
    },
    "agentscope": {
        "write": ("Write", WRITE),
        "read": ("Read", {"file_path": "{root}/seed.txt"}),
        "glob": ("Glob", {"pattern": "**/*.py", "head_limit": 0, **TREE}),
        "grep_literal": ("Grep", {"pattern": r"_target\(\): pass", "output_mode": "content", **TREE}),
        "grep_regex": ("Grep", {"pattern": "needle_[0-9]+_target", "output_mode": "content", **TREE}),
        "read_big": ("Read", READ_BIG),
        # This harness edits only what it has read.
        "edit_first": ("Read", {"file_path": "{root}/edit10.txt", "limit": 5}),
        "edit": ("Edit", EDIT),
        "edit_back": ("Edit", EDIT_BACK),
    },
}
ABSOLUTE_PATHS = {"agentscope"}
PEERS = ["agentscope@anthropic", "deepagents@anthropic"]


@dataclasses.dataclass
class Harness:
    """`name` may end in `@anthropic` or `@openai`: the same adapter on that wire."""

    name: str
    command: list

    @property
    def kind(self):
        return self.name.split("@")[0]

    @property
    def is_peer(self):
        return self.kind in ("agentscope", "deepagents")

    def call(self, key, workdir):
        if key not in TOOLS[self.kind]:
            return None
        name, args = TOOLS[self.kind][key]
        root = str(workdir) if self.kind in ABSOLUTE_PATHS else ""
        filled = {k: v.replace("{root}", root) if isinstance(v, str) else v for k, v in args.items()}
        return {"name": name, "args": filled}

    def argv(self, server, command, workdir, *more):
        api = self.name.partition("@")[2]
        wire = ["--api", api] if api else []
        return [*self.command, command, "--base-url", server.url, "--workdir", str(workdir), *wire, *map(str, more)]


def make_harness(name, adapter):
    kind = name.split("@")[0]
    if kind == "stead":
        return Harness(name, [str(adapter)])
    if kind not in TOOLS:
        sys.exit(f"unknown harness {name}; known: {', '.join(TOOLS)}")
    return Harness(name, [str(VENV_PYTHON), str(HERE / "peers" / f"{kind}_adapter.py")])


# ---- the fake model server


class Server:
    def __init__(self, binary):
        self.binary = str(binary)
        self.process = subprocess.Popen([self.binary, "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split()[1])
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as answer:
            return answer.read().decode()

    def log(self, prefix):
        """The requests of the scenarios whose id begins with `prefix`, by id, in the order of steps."""
        rows = {}
        for line in self.get("/log").splitlines():
            name, *numbers = line.split(" ")
            if name.startswith(prefix):
                rows.setdefault(name, []).append(dict(zip(("step", "first", "received", "sent", "bytes"), map(int, numbers))))
        return {name: sorted(found, key=lambda row: row["step"]) for name, found in rows.items()}

    def ping(self, connections, body_kb, *more):
        argv = [self.binary, "--ping", self.port, "--connections", connections, "--body-kb", body_kb, "--seconds", 2, *more]
        return json.loads(subprocess.run([*map(str, argv)], check=True, capture_output=True, text=True).stdout)


def overheads_ms(rows):
    return [(after["received"] - before["sent"]) / 1e6 for before, after in zip(rows, rows[1:])]


def prompt(name, steps, calls, **more):
    return "Please do the task. [[bench " + json.dumps({"id": name, "n": steps, "calls": calls, **more}) + "/bench]]"


# ---- running processes, and who else used the machine meanwhile

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def busy_s():
    fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS_PER_S


def cpu_s(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def wait_for_calm():
    """Waits until the machine was idle for a moment, for at most as long as was allowed."""
    give_up = time.monotonic() + WAIT_S
    while time.monotonic() < give_up:
        busy, begun = busy_s(), time.monotonic()
        time.sleep(0.3)
        if busy_s() - busy <= MAX_FOREIGN * os.cpu_count() * (time.monotonic() - begun):
            return


def session_cpu_s(leader):
    """Of all processes of one session, and of those of them that have ended."""
    total = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        if int(fields[3]) == leader:
            total += sum(int(field) for field in fields[11:15])
    return total / TICKS_PER_S


@dataclasses.dataclass
class Run:
    begun_ns: int
    wall_s: float
    foreign: float
    out: str

    def last_json(self):
        return json.loads(self.out.strip().splitlines()[-1])


def run(server, argv, leaders=(), env=None):
    """Runs a command to its end; stops the benchmark if it fails. The sessions of `leaders` work for it."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        watched = [os.getpid()] + ([server.process.pid] if server else [])

        def own_s():
            return sum(map(cpu_s, watched)) + sum(map(session_cpu_s, leaders))

        wait_for_calm()
        busy, own = busy_s(), own_s()
        begun_ns = time.monotonic_ns()
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = (time.monotonic_ns() - begun_ns) / 1e9
        process.returncode = os.waitstatus_to_exitcode(status)
        used_s = usage.ru_utime + usage.ru_stime
        foreign_s = busy_s() - busy - used_s - (own_s() - own)
        err.seek(0)
        out.seek(0)
        if process.returncode != 0:
            words = err.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{' '.join(argv[:4])} … ended with {process.returncode}:\n{words}")
        foreign = max(0.0, foreign_s) / (wall_s * os.cpu_count())
        text = out.read().decode(errors="replace")
        return Run(begun_ns, wall_s, round(foreign, 3), text)


def write_seed(folder):
    (folder / "seed.txt").write_text("".join(f"seed line {i} some text here\n" for i in range(20)))


class Workdir:
    """A fresh folder with one small file in it, gone when the benchmark ends, and not before: a disk that discards what
    was freed does so in the next syncs, which may be those of the next sample."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="work", dir=TMP))
        atexit.register(shutil.rmtree, self.path, ignore_errors=True)
        write_seed(self.path)
        return self.path

    def __exit__(self, *_):
        pass


def fresh_id(kind):
    fresh_id.count = getattr(fresh_id, "count", 0) + 1
    return f"{kind}{os.getpid()}x{fresh_id.count}x"


def session(server, harness, workdir, steps, calls, *more, leaders=()):
    """One run of `steps` steps -> the process and the log of its requests."""
    name = fresh_id("s")
    done = run(server, harness.argv(server, "run", workdir, *more, "--prompt", prompt(name, steps, calls)), leaders)
    rows = server.log(name).get(name, [])
    if len(rows) != steps + 1:
        raise RuntimeError(f"{harness.name}: {len(rows)} requests for {steps} steps")
    return done, rows


def clean_data():
    """As generated: without what an earlier harness left, its half of an edit included."""
    for entry in DATA.iterdir():
        if entry.name not in ("tree", "big.txt", "edit10.txt", ".done"):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    edited = DATA / "edit10.txt"
    text = edited.read_text()
    if "UNIQUE_MARKER_B" in text:
        edited.write_text(text.replace("UNIQUE_MARKER_B", "UNIQUE_MARKER_A"))
    write_seed(DATA)


# What only a working call has in its answer. One peer's grep lists files instead of lines.
ANSWERS = {
    "glob": r"f\d{5}\.py",
    "grep_literal": r"needle_\d{5}_target|f\d{5}\.\w+",
    "grep_regex": r"needle_\d{5}_target",
    "read_big": r"line 00600\d{4}",
}


def check_answer(server, harness, key, calls):
    """A call that fails is fast: look at what it does before it is timed."""
    argv = harness.argv(server, "dump", DATA, "--clip", 4000, "--prompt", prompt(fresh_id("d"), 2, calls))
    out = run(server, argv).out
    if key == "edit":
        worked = "UNIQUE_MARKER_B" in (DATA / "edit10.txt").read_text()
        clean_data()
    else:
        worked = re.search(ANSWERS[key], out)
    if not worked:
        raise RuntimeError(f"{harness.name}: {key} did not work:\n{out[-2000:]}")


# ---- limits and samples


def median_run_ms(argv, reps):
    times = sorted(run(None, argv).wall_s * 1e3 for _ in range(reps + 1))
    return statistics.median(times[: reps + 1])


def fsync_ms(reps=50):
    with tempfile.NamedTemporaryFile(dir=TMP) as file:
        times = []
        for _ in range(reps):
            begun = time.perf_counter()
            file.write(b"x" * 400)
            file.flush()
            os.fdatasync(file.fileno())
            times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


def quiet(samples):
    calm = [s for s in samples if s["foreign"] <= MAX_FOREIGN]
    return calm if len(calm) >= 3 else samples


def median_of(raw, name, field):
    samples = raw.get(name)
    return statistics.median(s[field] for s in quiet(samples)) if samples else None


def number(value):
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
