"""The model calls of a day of use, by purpose: facts looked for after each run, and by default."""

import json
import pathlib
import subprocess
import tempfile
import time

from common import TMP

MODES = [("after each run (`flush_after: run`)", "run"), ("idle sessions together (the default)", "idle")]


def measure(options, after):
    with tempfile.TemporaryDirectory(dir=TMP) as folder:
        pathlib.Path(folder, "AGENTS.md").write_text("You help.\n")
        argv = [str(options.adapter), "day", "--workdir", folder, "--after", after]
        out = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=600).stdout
    return json.loads(out)


def section(options, machine):
    days = [(what, measure(options, after)) for what, after in MODES]
    when = time.strftime("%Y-%m-%d", time.gmtime())

    def row(what, day):
        side = day["purposes"]["memory"]
        answers = day["purposes"]["answer"]
        return f"| {what} | {answers['calls']} | {side['calls']} | {side['input']:,} | {side['output']:,} | {day['waiting']} |"

    return "\n".join([
        f"Counted {when}: {days[0][1]['inputs']} inputs in 18 one-shot runs and three chats, over eight hours and until the "
        "next morning, with a clock that is set and a model that finds a fact in every part that it looks through. "
        "A call of the model for memory looks for facts or merges them.",
        "",
        "| facts are looked for | calls for answers | calls for memory | their input, tokens | their output, tokens | sessions that still wait |",
        "|---|---|---|---|---|---|",
        *(row(what, day) for what, day in days),
        "",
    ])
