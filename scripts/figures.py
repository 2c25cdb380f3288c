#!/usr/bin/env python3
"""figures.py [--check]: writes the figures of README.md as bench/RESULTS.md has them. With --check it changes nothing and
fails if they differ."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
README, RESULTS = ROOT / "README.md", ROOT / "bench" / "RESULTS.md"
COLUMNS = {"stead": 3, "peer": 4}

# Lines of the README by how they begin. {label|column} is a cell of the main table of RESULTS.md, without what is in
# brackets.
LINES = {
    "| time of a step besides the model |": "| time of a step besides the model | {step that reads, streamed|peer} ms "
    "(fastest peer measured) | {step that reads, streamed|stead} ms if it reads, "
    "{step that writes durably, streamed|stead} ms if it writes durably |",
    "| requirements |": "| requirements | a JVM, Python or Node; {memory of one idle agent process|peer} MB of memory per "
    "idle process (smallest peer measured) | one binary of {release binary, all features|stead} MB; "
    "{memory of one idle agent process|stead} MB of memory |",
}


def table(results):
    """The rows of the main table by label, as lists of cells."""
    rows = {}
    for line in results.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 9:
            rows[cells[0]] = cells
    return rows


def filled(template, rows):
    """The template with the figures."""
    for name in {part.split("}")[0] for part in template.split("{")[1:]}:
        label, column = name.rsplit("|", 1)
        if label not in rows:
            sys.exit(f"{RESULTS}: no row {label!r}; {README.name} needs it (scripts/figures.py)")
        figure = rows[label][COLUMNS[column]].split(" ")[0]
        if not figure[:1].isdigit():
            sys.exit(f"{RESULTS}: {label}: {figure!r} is no figure; measure it with bench/run.sh")
        template = template.replace("{" + name + "}", figure)
    return template


def main():
    rows = table(RESULTS.read_text())
    lines, found = README.read_text().splitlines(), set()
    for at, line in enumerate(lines):
        for beginning, template in LINES.items():
            if line.startswith(beginning):
                found.add(beginning)
                lines[at] = filled(template, rows)
                if sys.argv[1:] == ["--check"] and lines[at] != line:
                    sys.exit(f"{README.name}:{at + 1} is not what bench/RESULTS.md says; run scripts/figures.py:\n- {line}\n+ {lines[at]}")
    if lost := LINES.keys() - found:
        sys.exit(f"{README.name} has no line {', '.join(sorted(lost))}: change it in scripts/figures.py")
    if sys.argv[1:] != ["--check"]:
        README.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    main()
