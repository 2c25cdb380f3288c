"""What a subagent costs beside its model: many of them in waves, with a model inside the process that answers at once."""

import json
import statistics
import subprocess
import tempfile
import time

from common import Workdir, number, wait_for_calm

BUDGET_MS = 2
BUDGET_GROWTH_MB = 16
WAVES, WIDTH = 20, 50


def sample(options, place):
    wait_for_calm()
    with place() as workdir:
        argv = [str(options.adapter), "children", "--workdir", str(workdir), "--waves", str(WAVES), "--width", str(WIDTH)]
        out = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=600).stdout
    return json.loads(out)


def in_memory():
    return tempfile.TemporaryDirectory(dir="/dev/shm")


def section(options, machine):
    def middle(place):
        samples = [sample(options, place) for _ in range(options.reps)]
        return {key: statistics.median(s[key] for s in samples) for key in ["child_ms", "session_ms", "growth_kb"]}

    rows = [("on the disk", middle(Workdir)), ("in memory", middle(in_memory))]
    growth_mb = max(figures["growth_kb"] for _, figures in rows) / 1024
    def verdict(figures):
        return "met" if figures["child_ms"] <= BUDGET_MS and growth_mb <= BUDGET_GROWTH_MB else "**missed**"

    return "\n".join([
        f"Measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC on {machine}; {options.reps} repetitions, medians. "
        f"{WAVES * WIDTH:,} subagents in {WAVES} waves of {WIDTH}, each one answer of a model that takes no time; beside "
        "them as many sessions that nobody hands work to. "
        f"The budget is {BUDGET_MS} ms a child, and {BUDGET_GROWTH_MB} MB more after the last wave than after the fifth.",
        "",
        "| journals | a child, ms | a session, ms | memory from wave 5 to the last, MB | verdict |",
        "|---|---|---|---|---|",
        *(f"| {where} | {number(f['child_ms'])} | {number(f['session_ms'])} | {number(f['growth_kb'] / 1024)} | {verdict(f)} |"
          for where, f in rows),
        "",
    ])
