"""What building takes in a clean clone: until the demo has run, until all tests have passed, and what comes out of it.

Downloads are not counted: the crates that Cargo.lock names are fetched before. Installed tools and servers are not, either.
"""

import dataclasses
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

from common import HERE, MB, TMP, busy_s, number

CHECKOUT = HERE.parent
DEMO = ["cargo", "run", "--release", "--locked", "--", "demo", "--fast"]
TESTS = ["scripts/test.sh"]
DIST = ["cargo", "build", "--profile", "dist", "--locked", "-p", "stead"]


@dataclasses.dataclass
class Timed:
    wall_min: float
    cpu_min: float
    foreign: float


def timed(argv, clone):
    """Runs a command in the clone, with all that it starts."""
    busy, begun = busy_s(), time.monotonic()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO_TARGET", "STEAD_TEST"))}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(argv, cwd=clone, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            raise RuntimeError(f"{' '.join(argv)}:\n{said.read().decode(errors='replace')[-3000:]}")
    wall, own = time.monotonic() - begun, usage.ru_utime + usage.ru_stime
    foreign = max(0.0, busy_s() - busy - own) / (wall * os.cpu_count())
    return Timed(wall / 60, own / 60, foreign)


def fresh_clone(name):
    clone = TMP / f"clone-{name}"
    shutil.rmtree(clone, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", str(CHECKOUT), str(clone)], check=True)
    subprocess.run(["cargo", "fetch", "--locked", "--quiet"], cwd=clone, check=True)
    return clone


def size_mb(clone, profile):
    return os.path.getsize(pathlib.Path(clone) / "target" / profile / "stead") / MB


def verdict(value, most):
    return "–" if most is None else "met" if value <= most else "**missed**"


def section(_options, machine):
    times, sizes = [], []

    def time_it(label, argv, clone, most):
        done = timed(argv, clone)
        budget = f"≤ {most}" if most else "–"
        times.append(f"| {label} | {budget} | {number(done.wall_min)} | {number(done.cpu_min)} | {done.foreign:.0%} | "
                     f"{verdict(done.wall_min, most)} |")

    def weigh(label, clone, profile, most):
        value = size_mb(clone, profile)
        budget = f"≤ {most}" if most else "–"
        sizes.append(f"| {label} | {budget} | {number(value)} | {verdict(value, most)} |")

    clone = fresh_clone("demo")
    time_it("clean clone → `cargo run --release -- demo --fast` has run", DEMO, clone, 6)
    weigh("profile `release`, default features", clone, "release", None)
    time_it("then `cargo build --profile dist`", DIST, clone, None)
    weigh("profile `dist`, default features", clone, "dist", 25)
    time_it("then the same with `--all-features`", [*DIST, "--all-features"], clone, None)
    weigh("profile `dist`, all features", clone, "dist", 45)
    shutil.rmtree(clone)
    clone = fresh_clone("tests")
    time_it("clean clone → `scripts/test.sh` has passed", TESTS, clone, 25)
    shutil.rmtree(clone)

    commit = subprocess.run(["git", "-C", str(CHECKOUT), "log", "-1", "--format=%h"], check=True, capture_output=True, text=True).stdout.strip()
    return "\n".join([
        f"Measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC at commit {commit} on {machine}. The crates had been "
        "downloaded before, and tools and servers were installed.",
        "",
        "| | budget, min | min | of CPUs, min | of the machine used by others | verdict |",
        "|---|---|---|---|---|---|",
        *times,
        "",
        "| the binary | budget, MB | MB | verdict |",
        "|---|---|---|---|",
        *sizes,
        "",
    ])
