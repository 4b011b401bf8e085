#!/usr/bin/env python3
"""Would the tests notice? Small mistakes are put into a copy of the sources, one at a time.

usage: mutate.py SOURCE [--in COPY] [--list FILE] [--part I/N] [--check] [WORD...]

Of each entry of tests/mutations.yaml (those whose sentence has all the words): replaces `old` by `new` in `file` of the
copy, builds the test programs it names there, runs them, and says whether they killed it; then puts the file back.
Generated tables count for nothing: tests that only compare a document with what the program says are left out. The copy
is made where it is not there (build/mutate; then the first build is a long one), and follows the sources. Another list,
such as draw_mutations.py's, is given by --list; --part 2/4 takes the second of four shares of it. --check only says whether
each mistake can still be made. Tests that fail without any mistake are named before the first one. Exit status 1 where a mutation survives.
"""
import argparse
import filecmp
import pathlib
import shutil
import subprocess
import sys

import yaml

# Tests of documents and tables that the program makes itself: any change of a number is a change of them.
GENERATED = "Schema.*:ConstantsTable.*:*Documents*:*WrittenDown*"


def run(command, folder, **more):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def make_copy(source, copy):
    """The tracked files as they stand, and a configured build."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=source, stdout=subprocess.PIPE, check=True).stdout.decode()
    for name in filter(None, names.split("\0")):
        now, there = source / name, copy / name
        if not now.is_file() or (there.is_file() and filecmp.cmp(now, there, shallow=False)):
            continue
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(now, there)
    if (copy / "build" / "build.ninja").exists():
        return
    made = run(["cmake", "--preset", "release", "-Wno-dev"], copy)
    if made.returncode:
        sys.exit(made.stdout)


def build(copy, programs):
    return run(["cmake", "--build", "--preset", "release", "--target", *programs], copy)


def test(copy, programs, only):
    """The first test that fails, or nothing."""
    for program in programs:
        filters = f"--gtest_filter={only or '*'}-{GENERATED}"
        try:
            ran = run([f"build/tests/{program}", filters, "--gtest_fail_fast", "--gtest_brief=1"], copy, timeout=900)
        except subprocess.TimeoutExpired:
            return f"{program} does not end"
        if ran.returncode:
            failed = [line for line in ran.stdout.splitlines() if line.startswith("[  FAILED  ]") and "." in line]
            return failed[0].split("]", 1)[1].split("(")[0].strip() if failed else f"{program} ends with {ran.returncode}"
    return None


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("source", type=pathlib.Path)
    arguments.add_argument("--in", dest="copy", type=pathlib.Path)
    arguments.add_argument("--list", type=pathlib.Path)
    arguments.add_argument("--part", default="1/1")
    arguments.add_argument("--check", action="store_true", help="only whether each mistake can still be made")
    arguments.add_argument("words", nargs="*")
    asked = arguments.parse_intermixed_args()
    source = asked.source.resolve()
    copy = (asked.copy or source / "build" / "mutate").resolve()
    entries = yaml.safe_load((asked.list or source / "tests" / "mutations.yaml").read_text())
    if asked.check:
        wrong = [entry for entry in entries if (source / entry["file"]).read_text().count(entry["old"]) != 1]
        for entry in wrong:
            print(f"{entry['what']}: {entry['file']} does not have its line once")
        print(f"{len(entries) - len(wrong)} of {len(entries)} can be made")
        return bool(wrong) or not entries
    part, parts = map(int, asked.part.split("/"))
    entries = [entry for entry in entries if all(word in entry["what"] for word in asked.words)][part - 1::parts]
    if copy == source:
        sys.exit("mutate: the copy must not be the source")
    make_copy(source, copy)
    programs = list(dict.fromkeys(program for entry in entries for program in entry["tests"]))
    if not programs:
        sys.exit("mutate: no mistake of the list has these words")
    made = build(copy, programs)
    if made.returncode:
        sys.exit(made.stdout[-2000:])
    # What fails as it is would be said to kill every mistake.
    if by := test(copy, programs, None):
        sys.exit(f"mutate: {by} fails without a mistake: mend it first")
    survived = 0
    for entry in entries:
        path = copy / entry["file"]
        text = path.read_text()
        if text.count(entry["old"]) != 1:
            print(f"{entry['what']}: {entry['file']} has its line {text.count(entry['old'])} times", flush=True)
            survived += 1
            continue
        try:
            path.write_text(text.replace(entry["old"], entry["new"]))
            made = build(copy, entry["tests"])
            if made.returncode:
                verdict = "does not compile"
                print(made.stdout[-2000:], file=sys.stderr)
                survived += 1
            else:
                by = test(copy, entry["tests"], entry.get("only"))
                verdict = f"killed by {by}" if by else "SURVIVED"
                survived += by is None
        finally:
            path.write_text(text)
        print(f"{entry['what']}: {verdict}", flush=True)
    print(f"{len(entries) - survived} of {len(entries)} killed")
    return survived > 0


if __name__ == "__main__":
    sys.exit(main())
