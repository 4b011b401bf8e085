#!/usr/bin/env python3
"""Counts how often the kernels of the menus of Hopper ran in the committed profiles of an H200.

The menus (sim/kernels/products/hopper_menus.h, sim/kernels/convolution/convolution_tiles.h) list tiles of library kernels: m, n, k, stages,
threads, registers. A profile names them (fit/kernel_name.h says how) and says threads and registers. What it has of each
menu is written into docs/kernel-menus.md, with the entries that it does not bear out and the sources of menus that no
committed profile carries. --check fails where the document is another one.
"""
import argparse
import collections
import gzip
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRODUCTS, CONVOLUTIONS = ("mm", "bmm", "addmm"), ("conv2d", "conv2d_backward")
HALF, TF32, FP32 = ("fp16", "bf16"), ("tf32",), ("fp32",)
# Of each menu: ops, types, family, and what its entries state of a kernel.
MENUS = {
    "kWgmmaHalf": (PRODUCTS, HALF, "wgmma", ("m", "n")),
    "kWgmmaTf32": (PRODUCTS, TF32, "wgmma", ("m", "n", "k")),
    "kHalfAlign4": (PRODUCTS, HALF, "mma", ("m", "n", "k", "stages", "threads", "registers")),
    "kHalfAlign2": (PRODUCTS, HALF, "mma", ("m", "n", "k", "stages", "threads", "registers")),
    "kTf32": (PRODUCTS, TF32, "mma", ("m", "n", "k", "stages", "threads", "registers")),
    "kTf32Align4": (PRODUCTS, TF32, "mma", ("m", "n", "k", "stages", "threads", "registers")),
    "kSimt": (PRODUCTS, FP32, "simt", ("m", "n", "k", "stages", "threads", "registers")),
    "kWgmmaHalfTiles": (CONVOLUTIONS, HALF, "wgmma", ("m", "n", "k")),
    "kWgmmaHalfWeightTiles": (CONVOLUTIONS, HALF, "wgmma", ("m", "n", "k")),
    "kWgmmaTf32Tiles": (CONVOLUTIONS, TF32, "wgmma", ("m", "n", "k")),
    "kWgmmaTf32InputTiles": (CONVOLUTIONS, TF32, "wgmma", ("m", "n", "k")),
    "kWgmmaTf32WeightTiles": (CONVOLUTIONS, TF32, "wgmma", ("m", "n", "k")),
    "kMmaHalfTiles": (CONVOLUTIONS, HALF, "mma", ("m", "n", "k", "threads", "registers")),
    "kMmaTf32Tiles": (CONVOLUTIONS, TF32, "mma", ("m", "n", "k", "threads", "registers")),
    "kCudaCoreTiles": (CONVOLUTIONS, FP32, "simt", ("m", "n", "k", "threads", "registers")),
}


def named(name):
    """Family, m, n, k and stages of a kernel's name, or None."""
    if found := re.search(r"nvjet_sm90_.*?_(\d+)x(\d+)_(\d+)x(\d+)_", name):
        n, m, k, stages = map(int, found.groups())
        return "wgmma", m, n, k, stages
    if found := re.search(r"tilesize(\d+)x(\d+)x(\d+)_", name):
        m, n, k = map(int, found.groups())
        stages = re.search(r"_stage(\d+)_", name)
        family = "wgmma" if "warpgroupsize" in name else "simt" if "_ffma" in name else "mma"
        return family, m, n, k, int(stages[1]) if stages else 0
    if "cutlass" in name and "wmma_tensorop" not in name:
        if found := re.search(r"gemm_(?:[a-z0-9]+_)*?(\d+)x(\d+)_(\d+)x(\d+)_", name):
            n, m, k, stages = map(int, found.groups())
        elif found := re.search(r"cutlass_75_.*gemm_(?:[a-z0-9]+_)*?(\d+)x(\d+)_", name):
            (n, m), k, stages = map(int, found.groups()), 32, 2
        else:
            return None
        return "simt" if "simt" in name else "mma", m, n, k, stages
    return None


def profiled():
    """Kernels of the H200's rows: how often each (product or convolution, type, family, tile) ran, and with what."""
    blocks = {}  # a file states threads and registers of a kernel once
    counts, resources = collections.Counter(), collections.defaultdict(set)
    for path in sorted((ROOT / "measurements/h200").rglob("*.jsonl.gz")):
        with gzip.open(path, "rt") as file:
            for line in file:
                if '"kernels"' not in line or '"op"' not in line:
                    continue
                row = json.loads(line)
                kind = PRODUCTS if row["op"] in PRODUCTS else CONVOLUTIONS if row["op"] in CONVOLUTIONS else None
                if kind is None or not isinstance(row["kernels"], list):
                    continue
                for kernel in row["kernels"]:
                    tile = named(kernel["name"]) if isinstance(kernel, dict) else None
                    if tile is None:
                        continue
                    key = (kind, row.get("dtype") or row["params"].get("dtype")) + tile
                    counts[key] += 1
                    if "block" in kernel:
                        x, y, z = kernel["block"]
                        blocks[kernel["name"]] = (x * y * z, kernel["regs"])
                    if kernel["name"] in blocks:
                        resources[key].add(blocks[kernel["name"]])
    return counts, resources


def menus():
    """Entries of the menus as the headers list them."""
    text = "".join((ROOT / "sim/kernels" / name).read_text()
                   for name in ("products/hopper_menus.h", "convolution/convolution_tiles.h"))
    for name, (kind, types, family, fields) in MENUS.items():
        body = re.search(rf"\b{name}\s*{{(.*?)}};", text, re.S)[1]
        body = re.sub(r"{{[^{}]*}}", "", body)
        entries = [[int(n) for n in re.findall(r"\d+", entry)] for entry in re.findall(r"[{(]([\d, ]+)[,})]", body)]
        yield name, kind, types, family, fields, entries


def register_text(found):
    """The registers of kernels with as many threads, as a range."""
    registers = sorted(registers for _, registers in found)
    return f"{registers[0]} to {registers[-1]}" if registers else "not stated"


def lines_of(name, kind, types, family, fields, entries, counts, resources):
    """A line of the table of menus, and one for each entry that profiles do not bear out."""
    matches = {key: n for key, n in counts.items() if key[0] == kind and key[1] in types and key[2] == family}
    covered, seen, exceptions, least = set(), 0, [], None
    for entry in entries:
        stated = dict(zip(fields, entry))
        tiles = ("m", "n", "k", "stages")
        has = [key for key in matches if all(stated.get(field, value) == value for field, value in zip(tiles, key[3:]))]
        covered.update(has)
        times = sum(matches[key] for key in has)
        seen += times > 0
        least = times if least is None else min(least, times)
        shape = " x ".join(str(stated[field]) for field in ("m", "n", "k") if field in stated)
        shape += f", {stated['stages']} stages" if "stages" in stated else ""
        if times == 0:
            exceptions.append(f"| {name} | {shape} | 0 | |")
        elif "threads" in stated:
            found = {one for key in has for one in resources[key] if one[0] == stated["threads"]}
            registers = [one[1] for one in found]
            if not registers or not min(registers) <= stated["registers"] <= max(registers):
                exceptions.append(f"| {name} | {shape} | {times} | {stated['registers']}; profiles: {register_text(found)} |")
    share = 100 * sum(matches[key] for key in covered) / sum(matches.values())
    numbers = len(entries) * len(fields)
    return f"| {name} | {len(entries)} | {numbers} | {seen} | {least} | {share:.0f} % |", exceptions


HEADER = """# Menus of library kernels, and what the committed profiles have of them

Written by `fit/kernel_menus.py`; a test fails where it would write something else. The menus of Hopper
(`sim/kernels/products/hopper_menus.h`, `sim/kernels/convolution/convolution_tiles.h`) are tiles of kernels that PyTorch 2.11 ran on an H200; the
profiles are the rows of products and convolutions in `measurements/h200`. Kernels of the kind: of the same types of numbers and
the same instructions, whatever the alignment. What a menu leaves out is rare, or as fast as a neighbour.

| menu | entries | numbers | entries seen | least seen | kernels of the kind that have a tile of it |
|---|---|---|---|---|---|
"""
EXCEPTIONS = """
Entries that no profile has, or whose registers lie outside those of kernels with their tile and threads (profiles state them once a
kernel, older ones not at all):

| menu | tile | seen | registers |
|---|---|---|---|
"""
OTHERS = """
Menus that no committed profile carries (`sim/kernels/products/tile_menu.cpp`, `sim/kernels/products/small_tiles.cpp`, `sim/kernels/attention/attention_tiles.cpp`):

| menu | entries | source |
|---|---|---|
| kAmpereHalf, kHalfAlign4, kHalfAlign2, kTf32, kTf32Align4, kSimt on Ampere and Ada | 44 | kernels that cuBLAS 13 has for sm80, as an H200 ran them; each also turned round |
| kTwoBuffers, kSimtTwoBuffers: Volta and Turing | 10 | published kernel names (volta_s884gemm, turing_s1688gemm, sgemm) |
| kVoltaTiles: fp32 convolutions on Volta and Turing | 3 | published kernel names (volta_scudnn_128x128 and 128x64 of a ResNet-50's trace in pytorch/kineto) |
| batched fp32 on Ampere | 1 | 138 kernel names of an A100 (NeuSight) |
| attention | all | FlashAttention's and PyTorch's sources: tiles by head size; cuDNN's by names of an H200's kernels |
| Runs: layouts and modes of a Hopper kernel | 4 an entry | the rows above, with the rule that `hopper_menus.h` states; no program makes them |
"""


def document():
    counts, resources = profiled()
    table, exceptions = [], []
    for menu in menus():
        line, others = lines_of(*menu, counts, resources)
        table.append(line)
        exceptions += others
    return HEADER + "\n".join(table) + "\n" + EXCEPTIONS + "\n".join(exceptions) + "\n" + OTHERS


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail unless the document says what the profiles do")
    parser.add_argument("--dry-run", action="store_true", help="print, and write nothing")
    parser.add_argument("--document", type=pathlib.Path, default=ROOT / "docs/kernel-menus.md", help="the file to write")
    arguments = parser.parse_args()
    text = document()
    if arguments.dry_run:
        print(text)
        return 0
    if not arguments.check:
        arguments.document.write_text(text)
        return 0
    if arguments.document.read_text() == text:
        return 0
    print(f"{arguments.document.name} is not what fit/kernel_menus.py makes of menus and profiles")
    return 1


if __name__ == "__main__":
    sys.exit(main())
