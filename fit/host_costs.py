#!/usr/bin/env python3
"""Makes costs of the host (hw/hosts/default.yaml) from steps whose host was timed by parts, on an empty device.

measurements/h200/compile/steps.jsonl.gz says what forward, backward, clipping, optimizer and zeroing cost the host in ten
steps of 39 to 393 parameter tensors, compile/sequences what their compiled graphs launch. Each part is a sum of a fixed
cost and costs for each tensor, generated kernel or library call; least squares of relative errors, divided by the scale
that the file states. Compiled graphs were timed in host/compiled.jsonl.gz too, with the speed of the host beside each.
Hosts differ in more than their speed, so those that are not held out and the ten weigh the same; large errors, which a
busy neighbour makes, count by their size instead of its square. Costs of eager operations and nodes are those of data/laws/host_classes.yaml, of the wrappers of
several GPUs those of data/laws/wrappers.yaml, both of which ridgeline_fit makes; those that no step says by itself come from
operations timed alone (single_host_costs.py). Without options the numbers are written
into the file; --check fails unless they are what the steps make of them. The held-out steps beside them say how well the
sums hold.
"""
import argparse
import gzip
import json
import math
import pathlib
import re
import statistics
import sys

import single_host_costs
from least_squares import relative_fit, robust_relative_fit

ROOT = pathlib.Path(__file__).resolve().parent.parent
HOST = ROOT / "hw/hosts/default.yaml"
SPEED = ROOT / "sim/study/validation/host_speed.cpp"
COMPILED = ROOT / "measurements/h200/compile"
TIMED = ROOT / "measurements/h200/host/compiled.jsonl.gz"
COST = r"\n  (\w+): {value: ([0-9.]+) us"
THREADS = ROOT / "measurements/h200/host/threads.jsonl"
TABLES = [ROOT / "data/laws" / name for name in ("host_classes.yaml", "wrappers.yaml")]


def tensors(model):
    """Parameter tensors of a network of tests and measurements."""
    kind = model["kind"]
    if kind == "gpt":  # blocks of two norms and four products; two embeddings and a norm; the output is the embedding
        return model["L"] * (12 if model["bias"] else 6) + (4 if model["bias"] else 3)
    if kind == "llama":  # seven products and two norms; embedding, norm, output
        return model["L"] * 9 + 3
    layers = {"base": 12, "large": 24}.get(model["size"]) or model["L"]
    head = {"mlm": 5, "qa": 2}.get(model.get("head"), 4)  # a transform, its norm and a bias; or pooler and classifier
    return layers * 16 + 5 + head


def steps(name, scale):
    result = []
    with gzip.open(COMPILED / name, "rt") as file:
        for line in file:
            row = json.loads(line)
            parts = {part: 1000 * ms / scale for part, ms in row["host_parts_ms"].items()}
            result.append({"name": row["name"], "tensors": tensors(row["model"]), "optimizer": row["opt"],
                           "scaled": "fp16amp" in row["name"], "us": parts})
    return result


def launches(step, phase):
    """Generated kernels and library calls of a compiled graph."""
    with gzip.open(COMPILED / "sequences" / f"{step['name']}.{phase}.txt.gz", "rt") as file:
        kinds = [line.strip()[:2] for line in file]
    return kinds.count("T ") + kinds.count("X ")


def systems(all_steps):
    """Of each sum: names of its costs, rows of their counts, and what was measured [us]."""
    unscaled = [step for step in all_steps if not step["scaled"]]
    yield ("clip_fixed", "per_parameter_clip"), [(1, s["tensors"]) for s in unscaled], [s["us"]["clip"] for s in unscaled]
    for optimizer in ("foreach", "fused"):
        chosen = [step for step in unscaled if step["optimizer"] == optimizer]
        yield ((f"{optimizer}_fixed", f"per_parameter_{optimizer}"), [(1, s["tensors"]) for s in chosen],
               [s["us"]["optimizer"] for s in chosen])
    yield ("per_parameter_zero_grad",), [(s["tensors"],) for s in all_steps], [s["us"]["zero_grad"] for s in all_steps]


COMPILED_COSTS = ("compiled_forward", "compiled_backward", "generated_kernel", "per_parameter_compiled_forward",
                  "per_parameter_compiled_backward")


def compiled_row(phase, launched, count):
    """A launch of generated code costs the same whether its kernel is generated or the library's: no difference is seen
    that is larger than its uncertainty."""
    forward = int(phase == "forward")
    return forward, 1 - forward, launched, count * forward, count * (1 - forward)


def compiled_system(all_steps):
    rows, values = [], []
    for step in all_steps:
        for phase in ("forward", "backward"):
            rows.append(compiled_row(phase, launches(step, phase), step["tensors"]))
            values.append(step["us"][phase])
    return rows, values


def timed_system(heldout):
    """Compiled steps timed with their host's speed; steps in which the host waits for the GPU say nothing."""
    rows, values, weights = [], [], []
    with gzip.open(TIMED, "rt") as file:
        for step in map(json.loads, file):
            if step["heldout"] != heldout or step["gpu_ms"] > 0.8 * sum(step["host_ms"].values()):
                continue
            for phase in ("forward", "backward"):
                rows.append(compiled_row(phase, step["launches"][phase], step["parameter_tensors"]))
                values.append(1000 * step["host_ms"][phase] / step["scale"])
                weights.append(1.0 if step["quiet"] >= 3 else 0.5)
    return rows, values, weights


def compiled_costs(fitted):
    rows, values = compiled_system(fitted)
    timed_rows, timed_values, weights = timed_system(heldout=False)
    each = sum(weights) / len(rows)
    return robust_relative_fit(rows + timed_rows, values + timed_values, [each] * len(rows) + weights)


def thread_products():
    """What each new thread adds to the forward passes of networks whose one shape of attention cuDNN computes [us]: its plan of
    cuDNN, which PyTorch keeps by thread. It does not move with the host's speed: over hosts that change it by two within these
    passes the slope of the logarithms is 0.07."""
    with open(THREADS) as file:
        rows = [row for row in map(json.loads, file) if row["products"] and row["precision"] == "amp-fp16"]
    added = [(row["beside_each_other_ms"] - row["one_after_the_other_ms"]) / row["threads"] for row in rows]
    middle = statistics.median(added)
    print(f"thread_products: {len(added)} passes, mean error {100 * statistics.mean(abs(middle / a - 1) for a in added):.1f} %")
    return f"{1000 * middle:.0f}"


def reading_off(costs):
    """Standard deviation of the logarithm of the scale that clipping, optimizer and zeroing of a step ask for over the one that
    a loop on the same host gave. `costs` [us] by name."""
    off = []
    with gzip.open(TIMED, "rt") as file:
        for step in map(json.loads, file):
            if step["heldout"]:
                continue
            count, host, optimizer = step["parameter_tensors"], step["host_ms"], step["optimizer"]
            expected = (costs[f"{optimizer}_fixed"] + count * costs[f"per_parameter_{optimizer}"] +
                        count * costs["per_parameter_zero_grad"])
            taken = host["optimizer"] + host["zero_grad"]
            if step["clip"] > 0:
                expected += costs["clip_fixed"] + count * costs["per_parameter_clip"]
                taken += host["clipping"]
            off.append(math.log(1000 * taken / expected / step["scale"]))
    print(f"kReadingOff: {len(off)} steps, mean logarithm {statistics.mean(off):+.3f}")
    return f"{statistics.stdev(off):.2g}"


def costs_of(table):
    """What ridgeline_fit made: cost by name [us]."""
    return dict(re.findall(r"^      (\w+): {value: ([0-9.]+)", table.read_text(), re.M))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail unless the file is as the steps make it")
    parser.add_argument("--dry-run", action="store_true", help="print, and write nothing")
    parser.add_argument("--host", type=pathlib.Path, default=HOST, help="the file with the costs")
    parser.add_argument("--speed", type=pathlib.Path, default=SPEED, help="the source with kReadingOff")
    arguments = parser.parse_args()
    text = arguments.host.read_text()
    scale = float(re.search(r"\nscale: {value: ([0-9.]+)", text)[1])
    fitted, held_out = steps("steps.jsonl.gz", scale), steps("heldout.jsonl.gz", scale)
    others = {names: (rows, values) for names, rows, values in systems(held_out)}
    wrong = []
    for names, rows, values in [*systems(fitted), (COMPILED_COSTS, [], [])]:
        if names == COMPILED_COSTS:
            found, deviations, errors = compiled_costs(fitted)
        else:
            found, deviations, errors = relative_fit(rows, values)
        print(f"{', '.join(names)}: {len(errors)} parts, mean error {100 * statistics.mean(map(abs, errors)):.1f} %")
        if names in others:
            ratios = [value / sum(a * b for a, b in zip(found, row)) for row, value in zip(*others[names])]
            print(f"  held out: {len(ratios)} parts took {statistics.median(ratios):.2f} times as long on a slower host")
        costs = list(zip(names, found, deviations))
        if names == COMPILED_COSTS:
            unseen, times, _ = timed_system(heldout=True)
            off = [sum(a * b for a, b in zip(found, row)) / value - 1 for row, value in zip(unseen, times)]
            print(f"  held out: {len(off)} parts, error {100 * statistics.median(map(abs, off)):.1f} % at the median, "
                  f"{100 * statistics.mean(map(abs, off)):.1f} % on average")
            costs.append(("compiled_call", found[2], deviations[2]))
        for name, cost, deviation in costs:
            pattern = re.compile(rf"(\n  {name}: {{value: )([0-9.]+)( us)")
            known, written = pattern.search(text)[2], f"{cost:.3g}" if cost < 1000 else f"{cost:.0f}"
            print(f"  {name:32} {known:>6} -> {written:>6} us  {f'sd {deviation:.0f} %' if deviation > 0 else 'as many costs as parts'}")
            if known != written:
                wrong.append(f"{arguments.host.name}: {name} is {known} us; the steps give {written}")
            text = pattern.sub(rf"\g<1>{written}\g<3>", text, count=1)
    tables = {table.name: costs_of(table) for table in TABLES} | {THREADS.name: {"thread_products": thread_products()}}
    for source in [*tables, "operations timed alone"]:  # these last: they rest on the costs of eager operations
        made = tables.get(source) or single_host_costs.report({n: float(v) for n, v in re.findall(COST, text)})
        for name, written in made.items():
            pattern = re.compile(rf"(\n  {name}: {{value: )([0-9.]+)( us)")
            known = pattern.search(text)[2]
            if known != written:
                wrong.append(f"{arguments.host.name}: {name} is {known} us; {source} say {written}")
            text = pattern.sub(rf"\g<1>{written}\g<3>", text, count=1)
    speed = arguments.speed.read_text()
    pattern = re.compile(r"(kReadingOff = )([0-9.]+)")
    known, off = pattern.search(speed)[2], reading_off({name: float(value) for name, value in re.findall(COST, text)})
    if known != off:
        wrong.append(f"{arguments.speed.name}: kReadingOff is {known}; the steps give {off}")
    if not arguments.check and not arguments.dry_run:
        arguments.host.write_text(text)
        if known != off:
            arguments.speed.write_text(pattern.sub(rf"\g<1>{off}", speed, count=1))
        return 0
    if arguments.check:
        for line in wrong:
            print(line)
    return 1 if arguments.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
