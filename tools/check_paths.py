#!/usr/bin/env python3
"""Checks that every path of this repository that a comment or a document names exists, and that no merge was left half
done (lines that begin with its marks).

A path is a word with a slash that begins with one of the folders at the top level. Words with a placeholder (*, NAME,
<...>) stand for several files: the folder before it must exist. Braces {a,b} are written out."""
import itertools
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
folders = "bench cmake data docs fit hw measurements models scenarios sim tests tools web".split()
texts = {".md", ".h", ".cpp", ".cu", ".cuh", ".cc", ".yaml", ".txt", ".cmake", ".py", ".js", ".ts", ".tsx", ""}
# Written while the program is built or used, or examples of a user's own files.
made = re.compile(r"^(sim/timing/tables/|web/node_modules|web/page\.html|hw/(mine|my|my-chip|your|future|fast)\b)")
word = re.compile(r"(?<![\w/.<$}\":@-])((?:\./)?(?:%s)/[\w./*{},<>+-]*[\w*}>/])" % "|".join(folders))
listing = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True)
files = listing.stdout.split() if listing.returncode == 0 else []


def written_out(path):
    parts = [part[1:-1].split(",") if part.startswith("{") else [part] for part in re.split(r"(\{[^}]*\})", path)]
    return ["".join(choice) for choice in itertools.product(*parts)]


def exists(path):
    path = path.removeprefix("./")
    fixed = re.split(r"[*<]|NN|[A-Z]{4,}(?![\w.]*\.md)", path)[0]
    if fixed != path:  # a placeholder: what stands before it
        fixed = fixed.rsplit("/", 1)[0]
    place = root / fixed.rstrip("/")
    # A header and its source go by one name in comments; a program's name is its target.
    return place.exists() or any(place.parent.glob(place.name + ".*")) if place.parent.exists() else False


errors, checked = [], 0
for name in files:
    path = root / name
    if path.suffix not in texts or name.startswith(("measurements/", "tests/fuzz/corpus/", "tests/bad_inputs/")) and path.suffix != ".md":
        continue
    try:
        lines = path.read_text().splitlines()
    except (UnicodeDecodeError, FileNotFoundError):
        continue
    for number, line in enumerate(lines, 1):
        if line.startswith(("<<<<" "<<< ", ">>>>" ">>> ")):
            errors.append(f"{name}:{number}: a merge that was left half done")
        if path.suffix in {".h", ".cpp", ".cu", ".cuh", ".cc"}:
            line = line[line.find("//"):] if "//" in line else ""
        elif path.suffix in {".py", ".cmake", ".txt", ""}:
            line = line[line.find("#"):] if "#" in line else ""
        for match in word.finditer(line):
            for one in written_out(match.group(1)):
                checked += 1
                if not made.match(one.removeprefix("./")) and not exists(one):
                    errors.append(f"{name}:{number}: {one} does not exist")
print("\n".join(errors) if errors else f"{checked} paths exist")
sys.exit(1 if errors or not checked else 0)
