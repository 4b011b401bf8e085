#!/usr/bin/env python3
"""Small mistakes drawn by chance, which nobody chose: a list that mutate.py takes.

usage: draw_mutations.py SOURCE SEED COUNT [--rooms A,B] > list.yaml

Each is one token of one line of a .cpp file under sim/: a sign or a comparison turned round, the lesser for the
greater, a condition denied, a statement that does not happen. The same seed draws the same list from the same sources.
What only says something (messages of errors, texts), what only fills a table, and what only makes room or checks what
cannot be (reserve, assert) are left alone; so is part of a statement of several lines, which would not compile.
"""
import argparse
import pathlib
import random
import re
import sys

import yaml

# What is tried on a line: the mistake in words, what is found, what stands there instead.
TURNS = [
    ("adds for subtracts", r" - ", " + "),
    ("subtracts for adds", r" \+ ", " - "),
    ("divides for multiplies", r" \* ", " / "),
    ("multiplies for divides", r" / ", " * "),
    ("less for greater", r" > ", " < "),
    ("greater for less", r"(?<!<) < ", " > "),
    ("leaves the equal case out", r" <= ", " < "),
    ("leaves the equal case out", r" >= ", " > "),
    ("unequal for equal", r" == ", " != "),
    ("equal for unequal", r" != ", " == "),
    ("either for both", r" && ", " || "),
    ("both for either", r" \|\| ", " && "),
    ("the lesser for the greater", r"std::max\b", "std::min"),
    ("the greater for the lesser", r"std::min\b", "std::max"),
    ("takes away for adds", r" \+= ", " -= "),
    ("sets for adds", r" \+= ", " = "),
    ("yes for no", r"\bfalse\b", "true"),
    ("no for yes", r"\btrue\b", "false"),
    ("a condition denied", r"\bif \(!", "if ("),
    ("a condition denied", r"\bif \((?=[a-z_.]+(\(\))?\) )", "if (!"),
    ("does not go on to the next", r"\bcontinue;", ";"),
    ("one more", r"(?<=[ (])1(?=[;,) ])", "2"),
    ("one for none", r"(?<=[ (])0(?=[;,) ])", "1"),
]
STATEMENT = re.compile(r"^ +[a-z_][\w.\->\[\]]*(\(.*\)| (\+=|-=|\*=|=) .*);$")
SAYS_ONLY = re.compile(r"throw |Error\(|fmt::|\"|std::cerr|static_assert|#|operator|template|using |assert\(|reserve\(|enum ")


def mistakes(lines, number):
    """All that can be done to a line: (what, new line)."""
    line = lines[number]
    code = line.split("//")[0].rstrip()
    if not code.strip() or SAYS_ONLY.search(code) or re.match(r"^ *[{},.\d\s-]*$", code):
        return []
    found = []
    for what, old, new in TURNS:
        for place in re.finditer(old, code):
            found.append((what, code[:place.start()] + new + code[place.end():]))
    before = lines[number - 1].split("//")[0].rstrip()
    if STATEMENT.match(code) and not code.strip().startswith("return") and (not before.strip() or before.endswith((";", "{", "}"))):
        found.append(("a statement does not happen", ""))
    return found


def tests_of(path, source):
    """The test program of its room, then those of all rooms; measured steps and kernels, the longest, come last."""
    rooms = {folder.name for folder in (source / "tests").iterdir() if any(folder.rglob("*_test.cpp"))} - {"package"}
    order = sorted(rooms, key=lambda room: (room != path.parts[1], room in ("fit", "app"), room == "study", room))
    return [f"test_{room}" for room in order]


def main():
    arguments = argparse.ArgumentParser(usage=__doc__)
    arguments.add_argument("source", type=pathlib.Path)
    arguments.add_argument("seed", type=int)
    arguments.add_argument("count", type=int)
    arguments.add_argument("--rooms", default="")
    asked = arguments.parse_args()
    chance = random.Random(asked.seed)
    rooms = set(filter(None, asked.rooms.split(",")))
    places = []
    for path in sorted((asked.source / "sim").rglob("*.cpp")):
        name = path.relative_to(asked.source)
        if rooms and name.parts[1] not in rooms:
            continue
        lines = path.read_text().split("\n")
        for number in range(1, len(lines)):
            for what, new in mistakes(lines, number):
                places.append((name, number, what, new, lines))
    drawn = []
    for name, number, what, new, lines in chance.sample(places, min(len(places), 4 * asked.count)):
        old = "\n".join(lines[number - 1:number + 1])
        if "\n".join(lines).count(old) != 1 or any(one["file"] == str(name) for one in drawn):
            continue
        drawn.append({"what": f"{name.name}:{number + 1} {what}", "file": str(name), "old": old,
                      "new": lines[number - 1] + "\n" + new, "tests": tests_of(name, asked.source)})
        if len(drawn) == asked.count:
            break
    yaml.safe_dump(drawn, sys.stdout, sort_keys=False, width=1000)


if __name__ == "__main__":
    main()
