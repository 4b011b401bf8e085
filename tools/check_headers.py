#!/usr/bin/env python3
"""Checks that every header compiles alone: whoever includes it needs to include nothing before.

usage: check_headers.py COMPILER ROOT [--all | HEADER...]; without a list those of include/, with --all those of sim/, fit/, bench/ and
tests/ too (four minutes on two cores). GENERATED in the environment is the folder of generated headers."""
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile

compiler, root = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
chosen = sys.argv[3:]
folders = ["include", "sim", "fit", "bench", "tests"] if chosen == ["--all"] else ["include"]
headers = [root / name for name in chosen] if chosen and chosen != ["--all"] else sorted(
    path for folder in folders for path in (root / folder).rglob("*.h"))
paths = [f"-I{root}", f"-I{root / 'include'}"] + [f"-I{os.environ[key]}" for key in ("GENERATED",) if key in os.environ]
defines = [f'-D{name}="x"' for name in ("RIDGELINE_SOURCE_DIR", "RIDGELINE_BINARY", "RIDGELINE_FIT_BINARY")]  # of tests


def mistakes(header):
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write(f'#include "{header}"\n')
        source.flush()
        result = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-O0", *defines, *paths, source.name], capture_output=True, text=True)
    lines = [line for line in result.stderr.splitlines() if "error" in line]
    return [f"{header.relative_to(root)}: {line}" for line in lines[:3]] or (
        [f"{header.relative_to(root)}: cannot be compiled"] if result.returncode else [])


with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    errors = [line for found in pool.map(mistakes, headers) for line in found]
print("\n".join(errors) if errors else f"{len(headers)} headers compile alone")
sys.exit(1 if errors or not headers else 0)
