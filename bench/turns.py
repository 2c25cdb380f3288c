"""What a turn begins with: the prompt of a small and of a huge workspace, cold and warm, beside a bare walk."""

import json
import os
import statistics
import subprocess
import time

from common import TMP, number, wait_for_calm

HUGE = {"knowledge files": 10_000, "skills": 1_000, "MB of MEMORY.md": 10}
BUDGET_MS = 50
ROUNDS = 20


def put(root, name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def make(root, huge):
    """A workspace, made once."""
    if (root / "made").exists():
        return
    put(root, "AGENTS.md", "You are thorough.\n")
    put(root, "MEMORY.md", "".join(f"- fact {i} {'x' * 40}\n" for i in range(200_000 if huge else 20)))
    put(root, "knowledge/KNOWLEDGE.md", "# What we know\n")
    for i in range(HUGE["knowledge files"] if huge else 5):
        put(root, f"knowledge/d{i % 100}/f{i}.md", "x\n")
    for i in range(HUGE["skills"] if huge else 5):
        text = f"---\nname: skill-{i}\ndescription: Does {i} things. {'y' * 200}\n---\nBody.\n"
        put(root, f"skills/skill-{i}/SKILL.md", text)
    put(root, "made", "")


def bare_walk_ms(root):
    """The names and versions of everything a turn looks at, by plain system calls."""
    begun = time.perf_counter()
    for folder in ["skills", "knowledge"]:
        for above, _, files in os.walk(root / folder):
            if folder == "skills":
                for name in files:
                    os.stat(os.path.join(above, name))
    return (time.perf_counter() - begun) * 1000


def measure(harness, options):
    samples = {}
    for kind in ["small", "huge"]:
        root = TMP / f"turns-{kind}"
        make(root, kind == "huge")
        for _ in range(options.reps):
            wait_for_calm()
            argv = [str(options.adapter), "turn", "--workdir", str(root), "--rounds", str(ROUNDS)]
            out = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=300).stdout
            sample = json.loads(out)
            sample["walk_ms"] = bare_walk_ms(root)
            samples.setdefault(kind, []).append(sample)
    return samples


def section(samples, machine, options):
    lines = [
        f"Measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC on {machine}; {options.reps} repetitions, medians "
        f"of {ROUNDS} turns each. The huge workspace has "
        + ", ".join(f"{count:,} {what}" for what, count in HUGE.items())
        + f". The budget is {BUDGET_MS} ms, warm.",
        "",
        "| workspace | prompt, bytes | first turn, ms | warm turn, ms | a bare walk from Python, ms | verdict |",
        "|---|---|---|---|---|---|",
    ]
    for kind, found in samples.items():
        middle = {key: statistics.median(s[key] for s in found) for key in ["bytes", "cold_ms", "warm_ms", "walk_ms"]}
        verdict = "met" if middle["warm_ms"] <= BUDGET_MS else "**missed**"
        cells = [number(middle[key]) for key in ["bytes", "cold_ms", "warm_ms", "walk_ms"]]
        lines.append(f"| {kind} | " + " | ".join(cells) + f" | {verdict} |")
    return "\n".join([*lines, ""])
