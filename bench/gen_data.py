#!/usr/bin/env python3
"""The data of the file tests, the same bytes on every machine.

    gen_data.py DIR

DIR/tree        20,000 files in three levels of directories, 209 MB; 200 of them hold one needle line
DIR/big.txt     500 MB of numbered lines
DIR/edit10.txt  10 MB, one line of it is UNIQUE_MARKER_A
Does nothing when DIR/.done exists.
"""
import pathlib
import random
import sys

FILES = 20_000
NEEDLE_EVERY = 100
PARAGRAPHS = 400
BIG_BYTES = 500_000_000
EDIT_LINES = 113_000
# Forty percent of the tree is Python, so that a glob has a long answer.
SUFFIXES = ["py"] * 8 + ["js", "md", "rs"] * 3 + ["json"] * 2 + ["txt"]


def vocabulary(rng):
    return ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 10))) for _ in range(4000)]


def paragraph(rng, words):
    """About a kilobyte of indented lines."""
    lines, size = [], 0
    while size < 1132:
        line = "    " * rng.randint(0, 3) + " ".join(rng.choices(words, k=rng.randint(3, 12)))
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines) + "\n"


def write_tree(root, rng, paragraphs):
    total = 0
    for i in range(FILES):
        folder = root / f"pkg{i % 20:02}" / f"mod{i // 20 % 25:02}" / f"sub{i // 500 % 8}"
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(rng.choices(paragraphs, k=rng.randint(1, 17)))
        if i % NEEDLE_EVERY == 0:
            text += f"def needle_{i:05}_target(): pass\n"
        total += (folder / f"f{i:05}.{rng.choice(SUFFIXES)}").write_bytes(text.encode())
    return total


def write_big(path, paragraphs):
    endings = [p.split("\n", 1)[0].strip()[:60].ljust(60) for p in paragraphs]
    size = number = 0
    with path.open("wb") as out:
        while size < BIG_BYTES:
            block = [f"line {n:09} {endings[n % PARAGRAPHS]}\n" for n in range(number + 1, number + 1001)]
            size += out.write("".join(block).encode())
            number += 1000
    return number


def write_edit(path, words):
    lines = [f"row {k:08} {words[k % 4000]} {words[k * 7 % 4000]} {'x' * 60}" for k in range(EDIT_LINES)]
    lines[EDIT_LINES // 2] = "UNIQUE_MARKER_A"
    path.write_text("\n".join(lines) + "\n")
    return path.stat().st_size


def main(target):
    done = target / ".done"
    if done.exists():
        return
    target.mkdir(parents=True, exist_ok=True)
    rng = random.Random(61_803)
    words = vocabulary(rng)
    paragraphs = [paragraph(rng, words) for _ in range(PARAGRAPHS)]
    tree_bytes = write_tree(target / "tree", rng, paragraphs)
    big_lines = write_big(target / "big.txt", paragraphs)
    edit_bytes = write_edit(target / "edit10.txt", words)
    note = f"tree: {FILES} files, {tree_bytes} bytes; big.txt: {big_lines} lines; edit10.txt: {edit_bytes} bytes"
    done.write_text(note + "\n")
    print(note)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: gen_data.py DIR")
    main(pathlib.Path(sys.argv[1]))
