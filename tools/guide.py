#!/usr/bin/env python3
"""Makes the outputs of docs/guide.md and README.md; with --check says whether they are what the program prints.

A block begins with `$ COMMAND`. The comment before it, `<!-- lines: A, B -->`, keeps the lines of the output in which one of
the words stands (with its numbers), `all` keeps all of them; what is left out becomes `...`, after `<!-- only: A, B -->`
nothing, and lines that go on below one are kept with it. README.md has fewer than 100 lines of at most 100 columns, and the words that people search for.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = {"docs/guide.md": 12, "README.md": 3}  # with the blocks that each has at least
BLOCK = re.compile(r"(<!-- (?P<keeps>lines|only): (?P<words>.*?) -->\n```console\n\$ (?P<command>.*)\n)(?P<output>(?:.*\n)*?)```")


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


def kept(lines, keeps, words):
    if words == "all":
        return lines
    wanted = [word.strip() for word in words.split(", ")]
    out, found, kept_before = [], set(), False
    for line in lines:
        if keeps == "only" and out and line.startswith(" " * 16) and kept_before:
            out.append(line.rstrip())  # goes on below the line that is kept
            continue
        here = [word for word in wanted if word in line]
        kept_before = bool(here)
        found.update(here)
        if here:
            out.append(line.rstrip())
        elif keeps == "lines" and (not out or out[-1] != "..."):
            out.append("...")
    missing = [word for word in wanted if word not in found]
    if missing:
        sys.exit(f"guide: no line says {missing}: {lines}")
    return out


def made(match):
    lines = kept(printed(match["command"]), match["keeps"], match["words"])
    return match.group(1) + "".join(line + "\n" for line in lines) + "```"


def check_page(page, text):
    lines = text.splitlines()
    if page == "README.md" and (len(lines) > 99 or max(map(len, lines)) > 100):
        sys.exit(f"README.md: {len(lines)} lines of at most {max(map(len, lines))} columns, 99 of 100 are allowed")
    missing = [word for word in ("LoRA", "GEMM", "VRAM", "throughput", "tensor parallel") if word not in text]
    if missing:
        sys.exit(f"{page} lacks the words {', '.join(missing)}")


def main():
    for page, least in PAGES.items():
        text = (ROOT / page).read_text()
        now = BLOCK.sub(made, text)
        blocks = len(BLOCK.findall(text))
        check_page(page, now)
        if blocks < least:
            sys.exit(f"{page}: {blocks} blocks found, at least {least} expected")
        if "--check" not in sys.argv:
            (ROOT / page).write_text(now)
        elif now != text:
            for old, new in zip(text.splitlines(), now.splitlines()):
                if old != new:
                    sys.exit(f"{page} says\n{old}\nthe program\n{new}\n(python3 tools/guide.py makes it anew)")
            sys.exit(f"{page} is not what the program prints")


if __name__ == "__main__":
    main()
