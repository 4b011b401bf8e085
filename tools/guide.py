#!/usr/bin/env python3
"""Makes the outputs of docs/guide.md; with --check says whether they are what the program prints.

A block begins with `$ COMMAND`. The comment before it, `<!-- lines: A, B -->`, keeps the lines of the output in which one of
the words stands (with its numbers), `all` keeps all of them; what is left out becomes `...`.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guide.md"
BLOCK = re.compile(r"(<!-- lines: (?P<words>.*?) -->\n```console\n\$ (?P<command>.*)\n)(?P<output>(?:.*\n)*?)```")


def environment():
    """Without what a person's shell may say about languages, terminals and descriptions of their own."""
    said = ("LANG", "LANGUAGE", "COLUMNS", "LINES", "TERM", "NO_COLOR", "CLICOLOR_FORCE")
    kept = {name: value for name, value in os.environ.items() if name not in said and not name.startswith(("LC_", "RIDGELINE_"))}
    return {**kept, "LC_ALL": "C.UTF-8"}


def printed(command):
    run = subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300)
    if run.returncode != 0 or (run.stderr and "wrote" not in run.stderr):
        sys.exit(f"guide: $ {command}\nexit code {run.returncode}\n{run.stderr}")
    return run.stdout.splitlines()


def kept(lines, words):
    if words == "all":
        return lines
    wanted = [word.strip() for word in words.split(", ")]
    out, found = [], set()
    for line in lines:
        here = [word for word in wanted if word in line]
        found.update(here)
        if here:
            out.append(line.rstrip())
        elif not out or out[-1] != "...":
            out.append("...")
    missing = [word for word in wanted if word not in found]
    if missing:
        sys.exit(f"guide: no line says {missing}: {lines}")
    return out


def made(match):
    return match.group(1) + "".join(line + "\n" for line in kept(printed(match["command"]), match["words"])) + "```"


def main():
    text = GUIDE.read_text()
    now = BLOCK.sub(made, text)
    blocks = len(BLOCK.findall(text))
    if blocks < 12:
        sys.exit(f"guide: {blocks} blocks found, at least 12 expected")
    if "--check" not in sys.argv:
        GUIDE.write_text(now)
    elif now != text:
        for old, new in zip(text.splitlines(), now.splitlines()):
            if old != new:
                sys.exit(f"guide: docs/guide.md says\n{old}\nthe program\n{new}\n(python3 tools/guide.py makes it anew)")
        sys.exit("guide: docs/guide.md is not what the program prints")


main()
