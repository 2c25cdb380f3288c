#!/usr/bin/env python3
"""man-pages.py STEAD FOLDER: writes a manual page for `stead` and for each of its commands, from their `--help`.

The pages say what the help says, so they cannot differ from the binary that they are packed with.
"""
import os
import pathlib
import re
import subprocess
import sys

SECTION = re.compile(r"(?:(Usage|Exit codes): (.*)|([A-Z][A-Za-z ]*):)$")
TERM = re.compile(r" {2,6}(\S.*?)(?: {2,}(\S.*))?$")
WIDE = {**os.environ, "COLUMNS": "1000"}  # no line of the help is broken


def roff(text):
    """Text as roff shows it: no line is a request, no hyphen is broken or changed."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)


def sections(text):
    """The help as pairs of a heading and lines. What is before the first heading is the description."""
    found = [("DESCRIPTION", [])]
    for line in text.splitlines():
        heading = SECTION.match(line)
        if heading:
            found.append(((heading[1] or heading[3]).upper(), [heading[2]] if heading[2] else []))
        else:
            found[-1][1].append(line)
    return found


def entries(lines):
    """The terms of a list (arguments, options, commands), each with its explanation."""
    found = []
    for line in filter(str.strip, lines):
        term = TERM.match(line)
        if term and len(line) - len(line.lstrip()) <= 6:
            found.append((term[1], [term[2]] if term[2] else []))
        elif found:
            found[-1][1].append(line.strip())
    return found


def body(heading, lines):
    if heading in ("ARGUMENTS", "OPTIONS", "COMMANDS"):
        for term, explanation in entries(lines):
            yield from (".TP", f"\\fB{roff(term)}\\fR", *map(roff, explanation))
    elif heading == "DESCRIPTION":
        for line in lines:
            yield roff(line) if line.strip() else ".PP"
    else:  # the usage, examples, exit codes: as they are
        yield from (".nf", *map(roff, lines), ".fi")


def page(words, text, version):
    name = "-".join(words)
    parts = sections(text)
    summary = next(line for line in parts[0][1] if line.strip())
    yield f'.TH "{name.upper()}" 1 "" "stead {version}" "Stead"'
    yield from (".ad l", ".SH NAME", f"{roff(name)} \\- {roff(summary)}")
    for heading, lines in parts:
        yield f".SH {'SYNOPSIS' if heading == 'USAGE' else heading}"
        yield from body(heading, lines)


def write_pages(stead, folder, words, version):
    text = subprocess.run([stead, *words[1:], "--help"], env=WIDE, check=True, capture_output=True, text=True).stdout
    path = folder / f"{'-'.join(words)}.1"
    path.write_text("\n".join(page(words, text, version)) + "\n")
    commands = next((lines for heading, lines in sections(text) if heading == "COMMANDS"), [])
    for name, _ in entries(commands):
        if name != "help":
            write_pages(stead, folder, [*words, name], version)


def main():
    stead, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    version = subprocess.run([stead, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    write_pages(stead, folder, ["stead"], version)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main()
