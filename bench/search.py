"""Searching memory and sessions: 100,000 lines of common and rare words, code and Chinese, questions of one to four words."""

import json
import statistics
import subprocess
import tempfile
import time

from common import TMP, number, wait_for_calm

LINES = 100_000
ROUNDS = 400
BUDGET_MS = 20


def measure(options):
    samples = []
    for _ in range(options.reps):
        wait_for_calm()
        with tempfile.TemporaryDirectory(dir=TMP) as folder:
            argv = [str(options.adapter), "search", "--workdir", folder, "--lines", str(LINES)]
            argv += ["--rounds", str(ROUNDS)]
            out = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=600).stdout
        samples.append(json.loads(out))
    return samples


def section(options, machine):
    samples = measure(options)
    middle = {key: statistics.median(sample[key] for sample in samples) for key in samples[0]}
    verdict = "met" if middle["p99_ms"] <= BUDGET_MS else "**missed**"
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    return "\n".join([
        f"Measured {when} UTC on {machine}; {options.reps} repetitions of {ROUNDS} questions to {LINES:,} lines. The "
        f"budget is {BUDGET_MS} ms, for 99 of 100 questions.",
        "",
        "| p50, ms | p99, ms | filling the index, s | its size, bytes | verdict |",
        "|---|---|---|---|---|",
        "| " + " | ".join(number(middle[key]) for key in ["p50_ms", "p99_ms", "fill_s", "bytes"]) + f" | {verdict} |",
        "",
    ])
