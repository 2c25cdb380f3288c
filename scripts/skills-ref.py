#!/usr/bin/env python3
"""Makes crates/stead-skills/tests/data/skills.jsonl: SKILL.md files and the verdicts of the Agent Skills
standard's reference validator. The test `skills_standard` compares ours with them.

To make it again:

    python3 -m venv /tmp/skills-ref && /tmp/skills-ref/bin/pip install skills-ref==0.1.1
    /tmp/skills-ref/bin/python scripts/skills-ref.py > crates/stead-skills/tests/data/skills.jsonl

Each line: {"dir": the directory's name, "text": SKILL.md, "valid": the verdict}. The cases are generated, in a fixed
order and from a fixed seed, so the file changes only if this script or the validator does. Where the reference
fails instead of answering, the file counts as not valid.
"""

import json
import pathlib
import random
import sys
import tempfile

from skills_ref.validator import validate

GOOD = "description: Reads PDF files. Use it for PDF.\n"


def skill(fields, name="pdf", body="# Body\n"):
    return (name, f"---\nname: {name}\n{fields}---\n{body}")


def names():
    fine = ["a", "pdf", "a-b", "a1", "1a", "2024", "a" * 64, "a-" * 31 + "ab", "é", "straße", "日本語", "пример",
            "café-menü", "ñ", "abc-123-def", "ß", "ⅷ", "²", "½", "١٢٣", "ａ", "ﬁ", "한국어", "עברית", "ªb", "ʰ", "ς"]
    bad = ["A", "PDF", "a_b", "a.b", "a b", "-a", "a-", "--", "a--b", "-", "a" * 65, "a/b", "É", "İ", "हिन्दी", "a\u0301\u0302x",
           "e\u0301", "🙂", "a+b", "a@b", "a'b", "ǅ", "Ⅷ", "a\u200db", "a\u00adb", "K", "ΑΒΓ", "ﬁ-ﬂ", "x\u0345", "०", "ก้",
           "a\u00a0b", "ﾊﾟ", "㍿", "…", "·", "_", "", "a:b", "#a", "0x1f", "true", "null", "~", "1.5", "1e3", "no"]
    for name in fine + bad:
        yield skill(GOOD, name) if name and "/" not in name else ("dir", f"---\nname: {name}\n{GOOD}---\n")
        yield ("other", f"---\nname: {name}\n{GOOD}---\n")
        yield ("dir" if "/" in name or not name else name, f"---\nname: \"{name}\"\n{GOOD}---\n")
    for given, directory in [("é", "e\u0301"), ("e\u0301", "é"), ("ａ", "a"), ("a", "ａ"), ("ﬁ", "fi"), ("fi", "ﬁ"),
                             (" a ", "a"), ("'  a'", "a"), ("a", "a "), ("a", "A"), ("\"a\\n\"", "a"), ("'a'", "'a'"),
                             ("\"\\x1ca\\x1f\"", "a"), ("\"\\u3000a\"", "a")]:
        yield (directory, f"---\nname: {given}\n{GOOD}---\n")


def limits():
    for count in [1, 1023, 1024, 1025, 2000]:
        for letter in ["d", "é", "日", "🙂"]:
            yield skill(f"description: {letter * count}\n")
            yield skill(f"description: '{letter * count}'\n")
        yield skill(f"description: |\n  {'d' * count}\n")
        yield skill(f"description: >-\n  {'d' * count}\n")
        yield skill(f"description: \"{'d' * count}  \"\n")
    for count in [0, 1, 499, 500, 501]:
        yield skill(GOOD + f"compatibility: {'c' * count}\n")
        yield skill(GOOD + f"compatibility: \"{'é' * count}\"\n")
        yield skill(GOOD + f"license: {'l' * count}\n")
    for count in [63, 64, 65]:
        yield skill(GOOD, "n" * count)
        yield skill(GOOD, "é" * count)
        yield ("ﬁ" * count, f"---\nname: {'fi' * count}\n{GOOD}---\n")


def values():
    scalars = ["d", "", "'q'", "\"q\"", "''", "\"\"", "' '", "~", "null", "true", "1", "1.5", "0o17", "2001-01-01", "=", "<<", "-",
               "- x", "? x", "a: b", "a:b", "a #b", "#b", "a # b", "[x]", "[]", "{}", "{a: b}", "&x d", "*x", "!!str d", "!x d",
               "@d", "`d", "%d", "|", ">", "|x", "|2\n   d", ">-\n  d", "|+\n  d\n\n", "\n  d", "\n  - d", "\n- d", "\n  a: b",
               "'it''s'", "'a' b", "\"\\q\"", "\"\\x41\"", "\"unterminated", "'unterminated", "a\tb", "\td", "d\t", "'a\tb'",
               "|\n  a\tb", "d\n  more", "d\n  more: x", "d\nmore", "\"a\n  b\"", "'a\nb'", ",x", "x, y", "]x", "}x", "x]", "a---b",
               "'a --- b'", "d\x7f", "d\x01", "d\x85x", "d\u2028x", "d\ufeffx", "d\u00a0", "\u00a0", "\u3000", "\"\\x1c\"",
               "a:", "a : b", "http://x/y", "Bash(git:*) Read", "a\\b", "\\", "\"\\\\\"", "\\x41", "x: ", ": x", ":x", ":", "?x", "-x", "--x", "!",
               "&", "*", "|-", "'", "\"", "a'b", "a\"b", "{", "[", "}", "]", ">x", "> x", "$x", "${X}", "<b>", "d\\n", "%"]
    for field in ["description", "license", "compatibility", "metadata", "allowed-tools"]:
        for value in scalars:
            more = "" if field == "description" else GOOD
            yield skill(f"{more}{field}: {value}\n")
    for value in ["a: b", "a: 1\n  a: 2", "a:\n    b: c", "a:\n    b: c\n  d:\n      e: f", "a:\n    b: c\n  d:\n    e: f", "- a", "<<: x",
                  "1: 2", "a: {}", "? a\n  : b", "a b", "a:", "'a': \"b\"", "=: x", "\ta: b", "a:\tb", "a: b # c", "# c\n  a: b"]:
        yield skill(GOOD + f"metadata:\n  {value}\n")


def fields():
    for name in ["version", "author", "tags", "Name", "DESCRIPTION", "allowed_tools", "allowed-tool", "licence", "meta data", "1", "''",
                 "name ", "'license'", "\"metadata\"", "model", "disable-model-invocation", "-", "é"]:
        yield skill(GOOD + f"{name}: x\n")
    yield skill("")
    yield ("pdf", f"---\n{GOOD}---\n")
    yield ("pdf", "---\nname: pdf\n---\n")
    yield skill(GOOD + GOOD)
    yield skill(GOOD + "name: pdf\n")
    yield skill(GOOD + "license:\n  - MIT\ncompatibility: x\nmetadata:\n  a: b\nallowed-tools: Read\n")
    yield skill(GOOD + "compatibility:\n  - x\n")
    yield skill(GOOD + "compatibility:\n  a: b\n")
    yield ("pdf", "---\nname:\n  - pdf\n" + GOOD + "---\n")
    yield ("pdf", "---\nname:\n  pdf: x\n" + GOOD + "---\n")
    yield ("pdf", "---\nname: pdf\ndescription:\n  - x\n---\n")
    yield ("pdf", "---\nname: pdf\ndescription:\n  x: y\n---\n")


def fences():
    head = "name: pdf\n" + GOOD
    for text in ["", "body", "---", "------", "---\n---", "---\n---\n", f"---\n{head}", f"---\n{head}--", f"---\n{head}---", f"---\n{head}----\n",
                 f"----\n{head}---\n", f"--- \n{head}--- \n", f" ---\n{head}---\n", f"\n---\n{head}---\n", f"\ufeff---\n{head}---\n",
                 f"---\n\n{head}\n---\n", f"---\n# c\n{head}---\n", "---\n# c\n---\n", f"---{head}---\n", f"---\n{head} ---\n", f"---\n{head}...\n---\n",
                 f"---\n{head}...\nx: y\n---\n", f"--- # c\n{head}---\n", f"---\n{head}---\n---\nmore\n---\n", "---\n- a\n- b\n---\n", "---\ntext\n---\n",
                 "---\n'text'\n---\n", f"+++\n{head}+++\n", f"---\n  name: pdf\n  {GOOD}---\n", f"---\n  name: pdf\n{GOOD}---\n", f"---\nname: pdf\n  {GOOD}---\n",
                 f"---\n%YAML 1.2\n{head}---\n", f"---\n{{name: pdf}}\n---\n", f"---yaml\n{head}---\n", f"---\n{head}\n\n\n---\n\n\nbody --- text\n"]:
        for ends in ["\n", "\r\n", "\r"]:
            yield ("pdf", text.replace("\n", ends))


def mixed():
    """Random mixtures of pieces that are fine and pieces that are not."""
    chance = random.Random(20260101)
    pieces = ["license: MIT\n", "license: [MIT]\n", "compatibility: Linux\n", "compatibility:\n", "metadata:\n  a: b\n", "metadata:\n    a: b\n    c:\n      d: e\n",
              "allowed-tools: Read\n", "allowed-tools:\n  - Read\n", "# comment\n", "\n", "version: 1\n", "metadata: &a x\n", "license: 'a: b'\n",
              "license: a: b\n", "compatibility: |\n  one\n  two\n", "  \n", "license: \"x\\ty\"\n"]
    for _ in range(120):
        chosen = chance.sample(pieces, chance.randint(1, 4))
        lines = ["name: pdf\n", GOOD] + chosen
        chance.shuffle(lines)
        ends = chance.choice(["\n", "\n", "\r\n"])
        yield ("pdf", ("---\n" + "".join(lines) + "---\nbody\n").replace("\n", ends))


def verdict(directory, text):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / directory
        folder.mkdir()
        (folder / "SKILL.md").write_bytes(text.encode())
        try:
            return not validate(folder)
        except Exception:
            return False


def main():
    seen = set()
    for make in [names, limits, values, fields, fences, mixed]:
        for directory, text in make():
            if (directory, text) not in seen:
                seen.add((directory, text))
                case = {"dir": directory, "text": text, "valid": verdict(directory, text)}
                sys.stdout.write(json.dumps(case, ensure_ascii=True) + "\n")


main()
