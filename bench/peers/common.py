"""What the peers' adapters share: the command line of the contract in ../README.md."""
import argparse
import asyncio
import gc
import json
import os
import sys
import time


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=["run", "dump", "many", "hold", "save", "restore"])
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--api", default="openai", choices=["openai", "anthropic"])
    parser.add_argument("--stream", action="store_true")
    parser.add_argument("--prompt")
    parser.add_argument("--prompts-file")
    parser.add_argument("--clip", type=int, default=200)
    parser.add_argument("--dir")
    parser.add_argument("--messages", type=int, default=1000)
    return parser.parse_args()


def prompts(args):
    if not args.prompts_file:
        return []
    with open(args.prompts_file) as file:
        return json.load(file)


async def all_at_once(runs):
    """Runs the coroutines together -> seconds taken, how many failed."""
    begun = time.perf_counter()
    results = await asyncio.gather(*runs, return_exceptions=True)
    failed = [r for r in results if isinstance(r, BaseException)]
    for error in failed[:1]:
        print(f"{len(failed)} failed, the first with {error!r}"[:500], file=sys.stderr)
    return time.perf_counter() - begun, len(failed)


async def hold(errors):
    """Everything is live: say so, and stay until a line comes."""
    gc.collect()
    print("READY", errors, flush=True)
    await asyncio.to_thread(sys.stdin.readline)


def line(text, clip):
    return str(text)[:clip].replace("\n", "\\n")


def timed(act):
    begun = time.perf_counter()
    result = act()
    return time.perf_counter() - begun, result


def folder_bytes(folder):
    return sum(entry.stat().st_size for entry in os.scandir(folder))


def say(**fields):
    print(json.dumps(fields))
