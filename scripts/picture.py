#!/usr/bin/env python3
"""Draws docs/demo.svg: the terminal as `stead demo` leaves it. Usage: scripts/picture.py path/to/stead"""
import html, re, subprocess, sys

COLOURS = {"1": "font-weight:bold", "2": "fill:#7f848e", "31": "fill:#e06c75", "32": "fill:#98c379", "33": "fill:#e5c07b", "36": "fill:#56b6c2"}
COLUMNS, LINE_PX, CHAR_PX, MARGIN_PX = 88, 19, 8.4, 18

def screen(stead):
    command = f"stty cols {COLUMNS} rows 60; {stead} demo --fast"
    out = subprocess.run(["script", "-qec", command, "/dev/null"], capture_output=True, check=True).stdout.decode()
    lines = []
    for line in out.replace("\r\n", "\n").split("\n"):
        lines.append(line.split("\r\x1b[K")[-1].rstrip())  # what a status line leaves behind
    return lines

def spans(line):
    style = ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        code = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if code:
            style = COLOURS.get(code[1], "")
        elif part:
            yield f'<tspan style="{style}">{html.escape(part)}</tspan>' if style else f"<tspan>{html.escape(part)}</tspan>"

def main():
    lines = ["\x1b[2m$\x1b[0m stead demo"] + screen(sys.argv[1])
    lines = lines[:next(i for i, line in enumerate(lines) if "What is left" in line) - 1]
    width, height = int(COLUMNS * CHAR_PX + 2 * MARGIN_PX), len(lines) * LINE_PX + 2 * MARGIN_PX
    rows = "\n".join(f'<text x="{MARGIN_PX}" y="{MARGIN_PX + (i + 1) * LINE_PX - 5}">{"".join(spans(l))}</text>' for i, l in enumerate(lines) if l)
    with open("docs/demo.svg", "w") as f:
        f.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
                f'<rect width="100%" height="100%" rx="8" fill="#1e2127"/>\n'
                f'<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="14" fill="#d7dae0" xml:space="preserve">\n{rows}\n</g>\n</svg>\n')

main()
