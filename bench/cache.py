"""How much of what is sent a provider has seen before: 50 turns with edits, notes changed by hand, and one compaction.

A provider's cache holds for the part of a prompt that is the same, from its first byte on, as one it was sent before.
A small server keeps every request; the marks that say where to cache are left out of the comparison, for they move on
with every request by design.
"""

import http.server
import json
import os
import re
import subprocess
import threading
import time

from common import TMP, number

TURNS = 50
COMPACTED_AFTER = 40
EDITED_BY_HAND = (10, 30)
MARK = re.compile(rb',?"cache_control":\{[^}]*\}')
SUMMARY = "## Intent\nChange the file line by line.\n## State\nForty lines were changed.\n## Next steps\nGo on."


class Recorder(http.server.BaseHTTPRequestHandler):
    """An Anthropic endpoint that edits a file on every turn."""

    protocol_version = "HTTP/1.1"
    bodies = []

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        type(self).bodies.append(body)
        messages = json.loads(body)["messages"]
        last = messages[-1]["content"]
        said = last if isinstance(last, str) else " ".join(block.get("text", "") for block in last)
        is_result = not isinstance(last, str) and any(block["type"] == "tool_result" for block in last)
        turn = re.search(r"turn (\d+)", said)
        if "exactly these sections" in said:
            self.answer({"type": "text", "text": SUMMARY}, {"type": "text_delta", "text": SUMMARY}, "end_turn")
        elif is_result or not turn:
            self.answer({"type": "text", "text": ""}, {"type": "text_delta", "text": "done"}, "end_turn")
        else:
            n = int(turn.group(1))
            args = {"file_path": "lines.txt", "old_string": f"line {n} old", "new_string": f"line {n} new"}
            call = {"type": "tool_use", "id": f"toolu_{n}", "name": "edit_file", "input": {}}
            self.answer(call, {"type": "input_json_delta", "partial_json": json.dumps(args)}, "tool_use")

    def answer(self, block, delta, stop):
        usage = {"input_tokens": 0, "output_tokens": 0}
        events = [
            {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": {**block, "text": ""} if "text" in block else block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage},
            {"type": "message_stop"},
        ]
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def shared(one, other):
    return len(os.path.commonprefix([one, other]))


def measure(options):
    """The requests of 50 turns, each a process of its own."""
    root = TMP / "cache"
    subprocess.run(["rm", "-rf", str(root)], check=True)
    root.mkdir(parents=True)
    (root / "AGENTS.md").write_text("You change files line by line.\n" * 20)
    (root / "MEMORY.md").write_text("- The person likes short answers.\n")
    (root / "agent.yaml").write_text("disable: [memory_hooks]\n")
    (root / "lines.txt").write_text("".join(f"line {n} old {'x' * 60}\n" for n in range(TURNS)))
    Recorder.bodies = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}"
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "none"}
    env["STEAD_BACKGROUND"] = "0"

    def stead(*args):
        argv = [str(options.stead.resolve()), *args]
        subprocess.run(argv, check=True, cwd=root, env=env, capture_output=True, timeout=60)

    compaction = None
    for turn in range(TURNS):
        if turn in EDITED_BY_HAND:
            with open(root / "MEMORY.md", "a") as memory:
                memory.write(f"- Written by hand before turn {turn}.\n")
        stead("run", "-m", "anthropic:claude-sonnet-4-5", "-s", "bench", f"Change the next line. This is turn {turn}.")
        if turn == COMPACTED_AFTER:
            compaction = len(Recorder.bodies)
            stead("sessions", "compact", "bench", "-m", "anthropic:claude-sonnet-4-5")
    server.shutdown()
    return [MARK.sub(b"", body) for body in Recorder.bodies], compaction


def section(options, machine):
    bodies, compaction = measure(options)
    total = sum(map(len, bodies))
    repeats = [0] + [max(shared(body, before) for before in bodies[max(0, i - 2) : i]) for i, body in enumerate(bodies) if i]
    share = lambda upto: 100 * sum(repeats[:upto]) / sum(map(len, bodies[:upto]))
    rows = [
        ("requests", number(len(bodies))),
        ("bytes sent", number(total)),
        ("of them the same as before, from the first byte on", f"{share(len(bodies)):.1f} %"),
        ("the same up to the compaction", f"{share(compaction):.1f} %"),
        ("of the request for the summary alone", f"{100 * repeats[compaction] / len(bodies[compaction]):.1f} %"),
        ("of the first request after it", f"{100 * repeats[compaction + 1] / len(bodies[compaction + 1]):.1f} %"),
    ]
    when = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    lines = [
        f"Measured {when} UTC on {machine}: {TURNS} turns, each a process of its own, each with one edit of a file; "
        f"MEMORY.md was changed by hand before turns {EDITED_BY_HAND[0]} and {EDITED_BY_HAND[1]}; the session was "
        f"compacted after turn {COMPACTED_AFTER}.",
        "",
        "| what | figure |",
        "|---|---|",
        *(f"| {what} | {figure} |" for what, figure in rows),
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    import argparse
    import pathlib

    parser = argparse.ArgumentParser()
    parser.add_argument("--stead", type=pathlib.Path, required=True)
    print(section(parser.parse_args(), "this machine"))
