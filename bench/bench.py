#!/usr/bin/env python3
"""Measures Stead, its peers and the limits of the machine in one run, and writes RESULTS.md.

How time is attributed: the fake model server logs, on CLOCK_MONOTONIC, when a request had been received and when
its answer was handed to the socket. The overhead of step k is received(k+1) - sent(k): parsing the answer, running
the tool, keeping the history, building and sending the next request. The server's own time is outside of it.

The machine may be shared: every sample carries `foreign`, the share of all CPU time that went to processes outside
of the benchmark. Samples above MAX_FOREIGN are left out where at least three quieter ones exist.
"""
import argparse
import dataclasses
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys
import time

from common import (
    DATA, HERE, MB, PEERS, TMP, VENV_PYTHON, Server, Workdir, check_answer, clean_data, fresh_id, fsync_ms, make_harness, median_of,
    median_run_ms, number, overheads_ms, prompt, quiet, run, session,
)
import build
import cache
import children
import day
import places
import search
import turns

TESTS = ["cold", "step", "growth", "rss", "thr", "files", "session", "listing", "size", "turns", "cache", "search", "children", "day",
         "places"]
ONLY_WHEN_NAMED = ["build"]
FILE_CALLS = ["glob", "grep_literal", "grep_regex", "read_big", "edit"]

# ---- tests: each gives lists of samples under a name


def test_cold(server, harness, options):
    samples = []
    for _ in range(options.reps + 1):
        with Workdir() as workdir:
            done, rows = session(server, harness, workdir, 1, [harness.call("read", workdir)])
            first_ms = (rows[0]["first"] - done.begun_ns) / 1e6
            samples.append({"ms": first_ms, "exit_ms": done.wall_s * 1e3, "foreign": done.foreign})
    return {"cold": samples[1:]}  # the first one only warms the page cache


def test_step(server, harness, options):
    steps = 20 if options.quick else 100
    found = {}
    for what in ("read", "write"):
        for how, flags in (("stream", ["--stream"]), ("whole", [])):
            samples = found[f"step_{what}_{how}"] = []
            for _ in range(options.reps):
                with Workdir() as workdir:
                    done, rows = session(server, harness, workdir, steps, [harness.call(what, workdir)], *flags)
                ms = overheads_ms(rows)[2:]
                samples.append({"ms": statistics.median(ms), "worst_ms": max(ms), "foreign": done.foreign})
    return found


def test_growth(server, harness, options):
    steps = 200 if options.quick else 1000
    found = {}
    for _ in range(1 if harness.is_peer or options.quick else min(options.reps, 3)):
        with Workdir() as workdir:
            calls = [harness.call("write", workdir), harness.call("read", workdir)]
            done, rows = session(server, harness, workdir, steps, calls, "--stream")
        ms = overheads_ms(rows)
        for at in (10, 100, 500, 1000):
            if at > steps:
                continue
            window = range(max(2, at - 20), min(at + 20, steps))
            for parity, what in enumerate(("write", "read")):
                value = statistics.median(ms[k] for k in window if k % 2 == parity)
                sample = {"ms": value, "bytes": rows[min(at, steps)]["bytes"], "foreign": done.foreign}
                found.setdefault(f"growth_{what}_{at}", []).append(sample)
        found.setdefault("growth_run", []).append({"wall_s": done.wall_s, "foreign": done.foreign})
    return found


def memory_mb(pid, field):
    """A field of the process's status; none once its memory is gone."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    found = [int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith(field + ":")]
    return found[0] if found else None


def peak_mb(server, harness, steps, calls):
    """The most memory a run ever had. `ru_maxrss` will not do: it counts what this process had when it forked.
    The answers are slowed down so that the last reading comes after the last step."""
    name = fresh_id("p")
    asked = prompt(name, steps, calls, delay_ms=30, nolog=True)
    argv = harness.argv(server, "run", DATA, "--prompt", asked)
    peak = None
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        while process.poll() is None:
            peak = memory_mb(process.pid, "VmHWM") or peak
            time.sleep(0.002)
    if process.returncode != 0 or peak is None:
        raise RuntimeError(f"{harness.name}: a run for its memory ended with {process.returncode}")
    return peak


def held(server, harness, sessions):
    """The memory of a process that holds this many live sessions of three steps each."""
    with Workdir() as workdir:
        more = []
        if sessions:
            name = fresh_id("h")
            calls = [harness.call("read", workdir)]
            prompts = [prompt(f"{name}{i}", 3, calls, nolog=True) for i in range(sessions)]
            file = workdir / "prompts.json"
            file.write_text(json.dumps(prompts))
            more = ["--prompts-file", file]
        argv = harness.argv(server, "hold", workdir, *more)
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            ready = next((line.split() for line in process.stdout if line.startswith("READY")), None)
            if ready is None:
                raise RuntimeError(f"{harness.name}: hold ended without READY")
            time.sleep(0.3)
            # A service may name the process whose memory counts.
            resident_mb = memory_mb(int(ready[2]) if len(ready) > 2 else process.pid, "VmRSS")
            process.stdin.write("\n")
            process.stdin.close()
            process.wait()
        return {"mb": resident_mb, "errors": int(ready[1]), "foreign": 0.0}


def test_rss(server, harness, options):
    counts = (0, 1, 100) if options.quick else (0, 1, 100, 1000)
    reps = 1 if harness.is_peer else min(options.reps, 3)
    return {f"rss_{n}": [held(server, harness, n) for _ in range(reps)] for n in counts}


def test_thr(server, harness, options):
    found = {}
    for n in (1, 16) if options.quick else (1, 16, 128, 1000):
        samples = found[f"thr_{n}"] = []
        for _ in range(1 if harness.is_peer and n > 16 else options.reps):
            with Workdir() as workdir:
                name = fresh_id("t")
                calls = [harness.call("read", workdir)]
                file = workdir / "prompts.json"
                file.write_text(json.dumps([prompt(f"{name}{i}", 10, calls) for i in range(n)]))
                server.get("/reset")
                done = run(server, harness.argv(server, "many", workdir, "--stream", "--prompts-file", file))
                rows = [row for found_rows in server.log(name).values() for row in found_rows]
            span_s = (max(row["sent"] for row in rows) - min(row["first"] for row in rows)) / 1e9
            steps = sum(row["step"] > 0 for row in rows)
            missing = 10 * n - steps
            samples.append({
                "steps_per_s": steps / span_s,
                "errors": done.last_json()["errors"] + missing,
                "foreign": done.foreign,
            })
    server.get("/reset")
    return found


def test_files(server, harness, options):
    """Each process warms up with a small read, then makes the call twice."""
    found = {}
    clean_data()
    warm = harness.call("read", DATA)
    for key in FILE_CALLS:
        call = harness.call(key, DATA)
        if call is None:
            continue
        calls = [warm, call, harness.call("edit_back", DATA) if key == "edit" else call]
        if first := harness.call(f"{key}_first", DATA):
            calls[0] = first
        check_answer(server, harness, key, calls)
        for _ in range(options.reps):
            done, rows = session(server, harness, DATA, 3, calls)
            ms = overheads_ms(rows)
            found.setdefault(key, []).append({"first_ms": ms[1], "again_ms": ms[2], "foreign": done.foreign})
        more_mb = peak_mb(server, harness, 3, calls) - peak_mb(server, harness, 3, [warm])
        found[f"{key}_memory"] = [{"more_mb": more_mb, "foreign": 0.0}]
    return found


def test_session(server, harness, options):
    found = {}
    for count in (1000,) if options.quick else (1000, 10000):
        samples = found[f"session_{count}"] = []
        for _ in range(options.reps):
            with Workdir() as workdir:
                folder = workdir / "session"
                saved = run(server, harness.argv(server, "save", workdir, "--dir", folder, "--messages", count))
                loaded = run(server, harness.argv(server, "restore", workdir, "--dir", folder))
            both = {**saved.last_json(), **loaded.last_json()}
            if both["messages"] < count:
                raise RuntimeError(f"{harness.name}: {both['messages']} of {count} messages restored")
            samples.append({**both, "foreign": max(saved.foreign, loaded.foreign)})
    return found


def test_listing(server, harness, options):
    """A folder with one session and one with very many: listing them, following one of them."""
    if harness.is_peer:
        return {}
    found = {}
    for count in (1, 1000) if options.quick else (1, 10000):
        with Workdir() as workdir:
            (workdir / "agent.yaml").write_text("description: many sessions\n")
            adapter = [options.adapter]
            sizes = ["--workdir", workdir, "--sessions", count]
            run(server, [*adapter, "make-sessions", *sizes])
            listed = [options.stead, "sessions", "list", "-C", workdir]
            samples = found[f"listing_{count}"] = []
            for _ in range(options.reps):
                followed = run(server, [*adapter, "follow", *sizes])
                page_ms = median_run_ms(listed, 5)
                samples.append({**followed.last_json(), "page_ms": page_ms, "foreign": followed.foreign})
    return found


def test_size(_server, harness, options):
    if harness.is_peer:
        return {}
    return {"size": [{"mb": os.path.getsize(options.stead) / MB, "foreign": 0.0}]}


# ---- limits of the machine


def measure_limits(server, tests, options, results):
    found = {}
    if {"cold"} & tests:
        found["exec_ms"] = median_run_ms(["true"], 2 * options.reps)
    if {"step", "growth"} & tests:
        found["round_trip_ms"] = server.ping(1, 10)["median_us"] / 1e3
        found["fsync_ms"] = fsync_ms()
    for at in (10, 1000):
        sizes = [s["bytes"] for s in ours(results).get(f"growth_read_{at}", [])]
        if sizes:
            found[f"round_trip_{at}_ms"] = server.ping(1, sizes[0] // 1024)["median_us"] / 1e3
    if {"thr"} & tests:
        found["answers_per_s"] = server.ping(16, 10, "--stream")["answers_per_s"]
    if {"session"} & tests:
        found["fsync_ms"] = fsync_ms()
    if {"files"} & tests:
        tree, reps = str(DATA / "tree"), 2 * options.reps
        if shutil.which("rg"):
            found["rg_files_ms"] = median_run_ms(["rg", "--files", "-g", "*.py", tree], reps)
            found["rg_regex_ms"] = median_run_ms(["rg", "-n", "needle_[0-9]+_target", tree], reps)
            found["rg_literal_ms"] = median_run_ms(["rg", "-n", "-F", "_target(): pass", tree], reps)
        sed = "6000000,6000099p;6000099q"
        found["sed_ms"] = median_run_ms(["sed", "-n", sed, str(DATA / "big.txt")], reps)
        copy = TMP / "copy.txt"
        found["copy_ms"] = median_run_ms(["dd", f"if={DATA}/edit10.txt", f"of={copy}", "bs=1M", "conv=fsync"], reps)
        copy.unlink()
    return found


# ---- the table


def per_session_kb(raw):
    most = next((n for n in (1000, 100) if f"rss_{n}" in raw), None)
    if most is None:
        return None
    return (median_of(raw, f"rss_{most}", "mb") - median_of(raw, "rss_1", "mb")) / (most - 1) * 1024


def throughput(raw):
    """Steps per second with the most sessions measured; nothing if any of them failed."""
    most = next((n for n in (1000, 128, 16) if f"thr_{n}" in raw), None)
    if most is None:
        return None
    failed = sum(s["errors"] for s in raw[f"thr_{most}"])
    return median_of(raw, f"thr_{most}", "steps_per_s") if not failed else 0.0


def kept_throughput(raw):
    """The steps per second with the most sessions, as a share of those with 16."""
    few = median_of(raw, "thr_16", "steps_per_s")
    return throughput(raw) / few if few and "thr_1000" in raw else None


def beyond_sending(name):
    """The time of a late step without what sending its longer request takes on this machine."""

    def value(raw, limits):
        late = median_of(raw, f"growth_{name}_1000", "ms")
        if late is None or "round_trip_1000_ms" not in limits:
            return late
        return late - (limits["round_trip_1000_ms"] - limits["round_trip_10_ms"])

    return value


def more_memory(raw, _limits):
    many, one = (median_of(raw, f"listing_{count}", "mb") for count in (10000, 1))
    return None if many is None or one is None else many - one


def of(name, field="ms"):
    return lambda raw, _limits: median_of(raw, name, field)


def fixed(budget):
    return lambda _limits: budget


def times(factor, limit):
    return lambda limits: factor * limits[limit] if limit in limits else None


@dataclasses.dataclass
class Row:
    key: str
    label: str
    unit: str
    value: object
    budget: object
    budget_text: str
    limit: str = ""
    limit_text: str = ""
    more_is_better: bool = False


ROWS = [
    Row("cold", "process start → first model request", "ms", of("cold"), fixed(6), "≤ 6", "exec_ms", "exec of `true`"),
    Row("step_read_stream", "step that reads, streamed", "ms", of("step_read_stream"), fixed(0.25), "≤ 0.25", "round_trip_ms", "loopback round trip"),
    Row("step_read_whole", "step that reads, whole answers", "ms", of("step_read_whole"), fixed(0.25), "≤ 0.25", "round_trip_ms", "loopback round trip"),
    Row("step_write_stream", "step that writes durably, streamed", "ms", of("step_write_stream"), fixed(0.8), "≤ 0.8", "fsync_ms", "one fsync"),
    Row("step_write_whole", "step that writes durably, whole answers", "ms", of("step_write_whole"), fixed(0.8), "≤ 0.8", "fsync_ms", "one fsync"),
    Row("growth_read_10", "reading step at step 10 of 1000", "ms", of("growth_read_10"), fixed(0.25), "≤ 0.25", "round_trip_10_ms", "round trip of that request"),
    Row("growth_read_1000", "reading step at step 1000, beyond sending the longer request", "ms", beyond_sending("read"), fixed(0.25), "≤ 0.25", "round_trip_10_ms", "round trip at step 10"),
    Row("growth_write_1000", "writing step at step 1000, beyond sending the longer request", "ms", beyond_sending("write"), fixed(0.8), "≤ 0.8", "fsync_ms", "one fsync"),
    Row("rss_idle", "memory of one idle agent process", "MB", of("rss_0", "mb"), fixed(12), "≤ 12"),
    Row("rss_session", "memory per extra live session", "KB", lambda raw, _: per_session_kb(raw), fixed(24), "≤ 24"),
    Row("thr", "1,000 sessions × 10 steps at once, no errors", "steps/s", lambda raw, _: throughput(raw), fixed(8000), "≥ 8,000", "answers_per_s", "server alone, streamed", True),
    Row("thr_kept", "that, of the steps at 16 sessions", "×", lambda raw, _: kept_throughput(raw), fixed(1), "≥ 1", more_is_better=True),
    Row("grep_literal", "grep, literal, 20,000 files", "ms", of("grep_literal", "first_ms"), times(1, "rg_literal_ms"), "≤ 1 × rg", "rg_literal_ms", "rg -F"),
    Row("grep_regex", "grep, regex, 20,000 files", "ms", of("grep_regex", "first_ms"), times(1, "rg_regex_ms"), "≤ 1 × rg", "rg_regex_ms", "rg"),
    Row("glob", "glob, 20,000 files", "ms", of("glob", "first_ms"), times(1, "rg_files_ms"), "≤ 1 × rg", "rg_files_ms", "rg --files"),
    Row("read_big_first", "100 lines at line 6,000,000 of 500 MB", "ms", of("read_big", "first_ms"), times(0.5, "sed_ms"), "≤ 0.5 × sed", "sed_ms", "sed"),
    Row("read_big_again", "the same again", "ms", of("read_big", "again_ms"), fixed(2), "≤ 2", "round_trip_ms", "loopback round trip"),
    Row("read_big_rss", "memory that took", "MB", of("read_big_memory", "more_mb"), fixed(4), "≤ 4"),
    Row("edit", "edit one line of a 10 MB file", "ms", of("edit", "first_ms"), times(2, "copy_ms"), "≤ 2 × copy", "copy_ms", "copy with fsync"),
    Row("session_append", "10,000-message session: append durably", "ms", lambda raw, _: scaled(raw, "append_s"), lambda limits: 0.6 + limits["fsync_ms"] if "fsync_ms" in limits else None, "≤ 0.6 + fsync", "fsync_ms", "one fsync"),
    Row("session_restore", "10,000-message session: resume", "ms", lambda raw, _: scaled(raw, "restore_s"), fixed(10), "≤ 10"),
    Row("listing_page", "10,000 sessions: `sessions list`, process start to exit", "ms", of("listing_10000", "page_ms"), fixed(30), "≤ 30"),
    Row("listing_follow", "10,000 sessions: subscribe to one, until its first entry", "ms", of("listing_10000", "subscribe_ms"), fixed(5), "≤ 5"),
    Row("listing_memory", "10,000 sessions: memory of an idle process beyond that with one", "MB", more_memory, fixed(1), "≤ 1"),
    Row("size", "release binary, all features", "MB", of("size", "mb"), fixed(45), "≤ 45"),
]


def scaled(raw, field):
    seconds = median_of(raw, "session_10000", field)
    return None if seconds is None else seconds * 1e3


def ours(results):
    return next((raw for name, raw in results.items() if name.startswith("stead")), {})


def best_peer(row, results, limits, figures):
    """The fastest peer of this run; where none was measured, of the earlier figures."""
    pick = max if row.more_is_better else min
    here = {name: row.value(raw, limits) for name, raw in results.items() if not name.startswith("stead")}
    here = {name: value for name, value in here.items() if value}
    if here:
        name = pick(here, key=here.get)
        return here[name], f"{number(here[name])} ({name})"
    earlier = figures["peers"].get(row.key)
    if not earlier:
        return None, "–"
    name = pick(earlier, key=earlier.get)
    return earlier[name], f"{number(earlier[name])} ({name}) †"


def table_line(row, results, limits, measured_limits, figures):
    value = row.value(ours(results), limits)
    budget = row.budget(limits)
    peer, peer_text = best_peer(row, results, limits, figures)
    limit = limits.get(row.limit)
    mark = "" if row.limit in measured_limits else " †"
    limit_text = f"{number(limit)}{mark} ({row.limit_text})" if limit else "–"
    to_peer = to_limit = verdict = "–"
    if value is not None:
        ratio = (value / peer if row.more_is_better else peer / value) if peer and value > 0 else None
        to_peer = f"{number(ratio)} ×" if ratio else "–"
        to_limit = f"{number(value / limit)} ×" if limit else "–"
        met = budget is not None and (value >= budget if row.more_is_better else value <= budget)
        verdict = "–" if budget is None else "met" if met else "**missed**"
    cells = [row.label, row.unit, row.budget_text, number(value), peer_text, limit_text, to_peer, to_limit, verdict]
    return "| " + " | ".join(cells) + " |"


def first_line(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def versions(harnesses):
    found = [first_line([harness.command[0], "--version"]) for harness in harnesses if not harness.is_peer]
    if any(harness.is_peer for harness in harnesses):
        script = "import importlib.metadata as m; print(', '.join(f'{n} {m.version(n)}' for n in ('deepagents','agentscope','anthropic','openai')))"
        found.append(first_line([str(VENV_PYTHON), "-c", script]))
    found += [first_line(["rg", "--version"]), f"Python {platform.python_version()}"]
    return "; ".join(text for text in found if text)


def machine():
    memory_kb = int(pathlib.Path("/proc/meminfo").read_text().split()[1])
    return f"{os.cpu_count()} cores, {memory_kb / 1024 / 1024:.0f} GiB, Linux {platform.release()}"


def details(results):
    """Every sample that was counted, by harness."""
    names = list(results)
    keys = dict.fromkeys((name, field) for raw in results.values() for name, samples in raw.items() for field in samples[0])
    for name, field in keys:
        cells = []
        for harness in names:
            values = [s[field] for s in quiet(results[harness].get(name, [])) if field in s]
            span = f" ({number(min(values))}–{number(max(values))}, {len(values)})" if len(values) > 1 else ""
            cells.append(number(statistics.median(values)) + span if values else "–")
        if field != "foreign":
            yield f"| {name} {field} | " + " | ".join(cells) + " |"


QUICK_NOTE = (
    ". A quick run: 16 sessions instead of 1,000, memory per session from 100 of them, 200 steps instead of 1,000; "
    "its verdicts are hints."
)


def report(results, limits, harnesses, options):
    figures = json.loads((HERE / "peers" / "figures.json").read_text())
    known = {**figures["limits"], **limits}
    wanted = [row for row in ROWS if row.value(ours(results), known) is not None or not options.partial]
    foreign = [s["foreign"] for raw in results.values() for samples in raw.values() for s in quiet(samples)]
    lines = [
        "# Results",
        "",
        f"Measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC on {machine()}; {options.reps} repetitions"
        + (QUICK_NOTE if options.quick else "."),
        f"Versions: {versions(harnesses)}.",
        f"Share of the machine used by others during the samples counted: median {statistics.median(foreign):.0%}, at most {max(foreign):.0%}.",
        "",
        "Values are medians. † is an earlier figure, not of this run: " + figures["measured"] + ".",
        "",
        "| | unit | budget | stead | fastest peer | limit | faster or smaller than the peer | of the limit | verdict |",
        "|---|---|---|---|---|---|---|---|---|",
        *(table_line(row, results, known, limits, figures) for row in wanted),
        "",
        "## All samples",
        "",
        "Median (least–most, samples counted).",
        "",
        "| | " + " | ".join(results) + " |",
        "|---" * (len(results) + 1) + "|",
        *details(results),
        "",
    ]
    return "\n".join(lines)


TURNS_HEADING = "## Turns\n\n"
CACHE_HEADING = "## Prompt caching\n\n"
SEARCH_HEADING = "## Searching memory and sessions\n\n"
CHILDREN_HEADING = "## Subagents\n\n"
DAY_HEADING = "## A day's side calls\n\n"
PLACES_HEADING = "## Places\n\n"
BUILD_HEADING = "## Building\n\n"
MISSES_HEADING = "## Where a budget is missed"


def earlier_sections(text):
    """The parts of an earlier report: the main table, and each section by its heading."""
    text = text.partition(MISSES_HEADING)[0]
    text, _, build_section = text.partition(BUILD_HEADING)
    text, _, places_section = text.partition(PLACES_HEADING)
    text, _, day_section = text.partition(DAY_HEADING)
    text, _, children_section = text.partition(CHILDREN_HEADING)
    text, _, search_section = text.partition(SEARCH_HEADING)
    text, _, cache_section = text.partition(CACHE_HEADING)
    main, _, turns_section = text.partition(TURNS_HEADING)
    return main, {
        TURNS_HEADING: turns_section, CACHE_HEADING: cache_section, SEARCH_HEADING: search_section,
        CHILDREN_HEADING: children_section, DAY_HEADING: day_section, PLACES_HEADING: places_section,
        BUILD_HEADING: build_section,
    }


def first_cell(line):
    """The name of a row of a table; nothing for other lines and for headings."""
    cell = line.split("|")[1].strip() if line.startswith("|") else ""
    return None if not cell or cell.startswith("---") else cell


def merged(earlier, report_now, results):
    """The earlier report with the rows that were measured now in the place of those with the same name."""
    now = {first_cell(line): line for line in report_now.splitlines() if first_cell(line)}
    lines = [now.pop(first_cell(line), line) if first_cell(line) else line for line in earlier.splitlines()]
    samples_at = next((at for at, line in enumerate(lines) if line.startswith("## All samples")), len(lines))
    for is_sample in (True, False):
        fitting = [line for line in now.values() if (line.count("|") < 10) == is_sample]
        rows = [at for at, line in enumerate(lines) if first_cell(line) and (at > samples_at) == is_sample]
        lines[rows[-1] + 1 : rows[-1] + 1] = fitting
    foreign = [s["foreign"] for raw in results.values() for samples in raw.values() for s in quiet(samples)]
    commit = first_line(["git", "-C", str(HERE), "log", "-1", "--format=%h"])
    tests = ", ".join(sorted({name.split("_")[0] for raw in results.values() for name in raw}))
    note = (f"Measured again {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC at commit {commit}: {tests}; others used "
            f"{statistics.median(foreign):.0%} of the machine (median), at most {max(foreign):.0%}.")
    at = next(at for at, line in enumerate(lines) if line.startswith("Values are medians"))
    return "\n".join([*lines[:at], note, "", *lines[at:]]) + "\n\n"


def whole_report(results, turn_samples, new_sections, place_samples, limits, harnesses, options):
    """The report. What was not measured now stays as it is in the file."""
    main, sections = earlier_sections(options.out.read_text() if options.out.exists() else "")
    if any(results.values()):
        report_now = report(results, limits, harnesses, options) + "\n"
        main = merged(main, report_now, results) if options.partial and main else report_now
    if turn_samples:
        sections[TURNS_HEADING] = turns.section(turn_samples, machine(), options) + "\n"
    sections.update({heading: text + "\n" for heading, text in new_sections.items()})
    if place_samples:
        sections[PLACES_HEADING] = places.section(place_samples, machine(), options) + "\n"
    misses = HERE / "misses.md"  # written by hand: figures do not explain themselves
    return main + "".join(heading + text for heading, text in sections.items() if text) + misses.read_text()


# ---- main


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stead", required=True, type=pathlib.Path, help="the release binary")
    parser.add_argument("--adapter", required=True, type=pathlib.Path, help="the benchmark's adapter to it, stead-bench")
    parser.add_argument("--fake-model", required=True, type=pathlib.Path, help="the model server")
    parser.add_argument("--tests", default=",".join(TESTS))
    parser.add_argument("--harness", help="default: stead, and the peers if their venv exists")
    parser.add_argument("--peer-tests", help="only these for the peers, whose longer runs take many minutes")
    parser.add_argument("--reps", type=int)
    parser.add_argument("--quick", action="store_true", help="two repetitions, shorter runs, fewer sessions")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "RESULTS.md")
    options = parser.parse_args()
    options.reps = options.reps or (2 if options.quick else 5)
    options.tests = options.tests.split(",")
    if unknown := set(options.tests) - set(TESTS + ONLY_WHEN_NAMED):
        parser.error(f"unknown tests {', '.join(sorted(unknown))}; known: {', '.join(TESTS + ONLY_WHEN_NAMED)}")
    options.peer_tests = options.peer_tests.split(",") if options.peer_tests else options.tests
    options.partial = set(options.tests) != set(TESTS)
    default = ["stead"] + (PEERS if VENV_PYTHON.exists() else [])
    options.harness = options.harness.split(",") if options.harness else default
    return options


def main():
    options = parse()
    TMP.mkdir(parents=True, exist_ok=True)
    harnesses = [make_harness(name, options.adapter) for name in options.harness]
    server = Server(options.fake_model)
    results, turn_samples, place_samples, failed = {harness.name: {} for harness in harnesses}, {}, {}, False
    new_sections = {}
    made = {
        "build": (BUILD_HEADING, build), "cache": (CACHE_HEADING, cache), "search": (SEARCH_HEADING, search),
        "children": (CHILDREN_HEADING, children), "day": (DAY_HEADING, day),
    }
    try:
        for test in options.tests:
            for harness in harnesses:
                if harness.is_peer and test not in options.peer_tests:
                    continue
                print(f"{time.strftime('%H:%M:%S')} {test}: {harness.name}", flush=True)
                server.get("/reset")
                try:
                    if test == "turns":
                        turn_samples = turn_samples if harness.is_peer else turns.measure(harness, options)
                        continue
                    if test in made:
                        heading, module = made[test]
                        if not harness.is_peer:
                            new_sections[heading] = module.section(options, machine())
                        continue
                    if test == "places":
                        place_samples = place_samples if harness.is_peer else places.measure(server, harness, options)
                        continue
                    results[harness.name].update(globals()[f"test_{test}"](server, harness, options))
                except (RuntimeError, json.JSONDecodeError) as error:
                    # One broken test must not cost the others; the exit code tells.
                    print(f"FAILED {test} of {harness.name}: {error}", file=sys.stderr)
                    failed = True
        limits = measure_limits(server, set(options.tests), options, results)
    finally:
        server.stop()
    if not any(results.values()) and not place_samples and not turn_samples and not new_sections:
        sys.exit("nothing could be measured")
    named = {" ".join(map(str, name)): samples for name, samples in place_samples.items()}
    (TMP / "samples.json").write_text(json.dumps({"results": results, "limits": limits, "places": named}, indent=1))
    text = whole_report(results, turn_samples, new_sections, place_samples, limits, harnesses, options)
    options.out.write_text(text)
    print(text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
