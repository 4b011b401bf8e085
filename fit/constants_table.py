#!/usr/bin/env python3
"""Writes the table of docs/refit.md that says of every file of constants how many there are, what makes them and what
checks them. The numbers are counted in the files; --check fails where the table says something else."""
import argparse
import pathlib
import re
import sys

import host_costs
import single_host_costs
import kernel_menus
import power

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs/refit.md"
BEGIN, END = "<!-- constants: written by fit/constants_table.py -->\n", "<!-- end of constants -->\n"
DATA = {"memory_bound": "kernels of an H200 and single calls of an H100 that are no products", "split_reduction": "second kernels of split products",
        "products": "products of an H200; serving libraries on an A100; fp8 on an H100", "attention": "attention of an H200; packed sequences of an H100",
        "convolution": "convolutions of an H200", "network": "collectives of two and four H200; published ones of one node",
        "overlap": "collectives beside kernels on two and four H200",
        "host_classes": "forward and backward passes that an H200 waits for",
        "wrappers": "steps of two and four H200 that wait for the host",
        "collective_range": "collectives that no fit saw; published ones over nodes"}
# The h200-virtual-machine has the default's costs and scale; fast and slow are estimates, as they say.
HOSTS = ("default", "fast", "slow", "h100-virtual-machine", "h200-virtual-machine", "vtrain-a100", "megatron-ci",
         "megatron-ci-h100")


def without_program():
    """Files of constants that nothing here says the making of, and entries without a file."""
    for folder, known in (("data/laws", DATA), ("hw/hosts", HOSTS)):
        there = {path.stem for path in (ROOT / folder).glob("*.yaml")}
        yield from (f"{folder}/{name}.yaml: no program is known that makes it" for name in sorted(there - set(known)))
        yield from (f"{folder}/{name}.yaml is no file" for name in sorted(set(known) - there))


def law_rows():
    for table, data in DATA.items():
        text = (ROOT / f"data/laws/{table}.yaml").read_text()
        constants = re.findall(r"^      \w[\w.]*: {value: .*}$", text, re.M)
        fitted, frozen, tied = (sum(bool(re.search(note, line)) for line in constants)
                                for note in ("sd: |at its bound|note: quantile", "note: frozen", "note: tied"))
        kept = len(constants) - fitted - frozen - tied
        made = f"{fitted} fitted, {frozen} frozen, {tied} tied, {kept} kept"
        yield f"data/laws/{table}.yaml", len(constants), made, f"ridgeline_fit {table}", data, f"fit: data/laws/{table}.yaml"


def host_row():
    text = host_costs.HOST.read_text()
    values = re.findall(r"^ *(\w+): {value: ([\d.]+)", text, re.M)
    scale = float(re.search(r"\nscale: {value: ([0-9.]+)", text)[1])
    steps = host_costs.steps("steps.jsonl.gz", scale)
    made = {name for names in [*(s[0] for s in host_costs.systems(steps)), host_costs.COMPILED_COSTS] for name in names}
    made |= {"compiled_call", "thread_products", *single_host_costs.NAMES}
    tables = [(len(host_costs.costs_of(table)), table.name) for table in host_costs.TABLES]
    rest = len(values) - len(made) - sum(count for count, _ in tables)
    copied = " and ".join(f"{count} of data/laws/{name}" for count, name in tables)
    return ("hw/hosts/default.yaml", len(values), f"{len(made)} fitted; {copied}; {rest} estimates or from traces, by a class "
            "table that no program here makes, as each says", "fit/host_costs.py", "steps timed by parts, operations timed alone",
            "fit: host costs")


def scale_row():
    return ("hw/hosts/default.yaml, h100-virtual-machine.yaml, vtrain-a100.yaml, megatron-ci.yaml, megatron-ci-h100.yaml (scale)", 5, "5 fitted", "ridgeline_fit "
            "host_scale says what the steps ask for", "host-bound eager steps beside an H200 and an H100; published ones", "fit: scales of hosts")


def power_row():
    count = len(power.START) + 1 + 2  # with the idle power, and two shares of the law
    return ("hw/nvidia-h200-sxm-141gb.yaml (power, knee), sim/timing/clock_law.cpp (shares)", count, f"{count} fitted",
            "fit/power.py", "28 loads of falling duty on an H200", "fit: power")


def menu_row():
    numbers = sum(len(fields) * len(entries) for *_, fields, entries in kernel_menus.menus())
    return ("sim/kernels/products/hopper_menus.h, sim/kernels/convolution/convolution_tiles.h", numbers, "counted in profiles; written by hand",
            "fit/kernel_menus.py says how often each ran", "kernel names of an H200", "fit: menus")


def table():
    rows = [*law_rows(), host_row(), scale_row(), power_row(), menu_row()]
    lines = ["| file | numbers | of which | program | data | check (ctest) |", "|---|---|---|---|---|---|"]
    lines += [f"| {file} | {count} | {made} | {program} | {data} | {check} |" for file, count, made, program, data, check in rows]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(". ")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail unless the table is what the files say")
    arguments = parser.parse_args()
    unknown = list(without_program())
    for line in unknown:
        print(line)
    text = DOCUMENT.read_text()
    start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    if not arguments.check:
        DOCUMENT.write_text(text[:start] + table() + text[end:])
        return 1 if unknown else 0
    if text[start:end] == table():
        return 1 if unknown else 0
    print(f"{DOCUMENT.name}: the table of constants is not what fit/constants_table.py counts")
    return 1


if __name__ == "__main__":
    sys.exit(main())
