#!/usr/bin/env python3
"""Makes the power and voltage numbers of the H200 from loads that lasted (measurements/h200/power/sustained_loads.jsonl).

The law is that of docs/model/clock-and-power.md. The idle power is what loads at the boost clock draw, extrapolated to no load.
The energies of an operation by type and of a byte, and the clock below which the voltage stays, are fitted together on the
rates (1 % each) and powers (5 %, the board's sensor) of loads that were busy part of the time. Without options they are
written into the hardware file; --check fails unless the file, and the numbers of the law and of the architecture that rest
on it, are what the loads make of them.
"""
import argparse
import json
import math
import pathlib
import re
import sys

from least_squares import solve, spreads

ROOT = pathlib.Path(__file__).resolve().parent.parent
HARDWARE = ROOT / "hw/nvidia-h200-sxm-141gb.yaml"
ARCHITECTURE = ROOT / "hw/architectures/hopper-9.0.yaml"
LAW = ROOT / "sim/timing/clock_law.cpp"
LOADS = ROOT / "measurements/h200/power/sustained_loads.jsonl"

RATE_SCALE, POWER_SCALE = 0.01, 0.05
LIMIT, BOOST, LOWEST, TENSOR = 700.0, 1980.0, 345.0, 1850.0  # W, MHz, MHz, MHz: measured, in the hardware file
KNEE_VOLTAGE = 0.75  # over that at the boost clock; stated in the hardware file with its source
FREE_FLOPS_A_BYTE = 500.0  # DRAM traffic below one byte for so many operations is in the energy of the operations
PRODUCTS = {"fp32 4096 random": "fp32", "fp16 8192 random": "tensor_fp16",
            "bf16 8192 random": "tensor_bf16", "tf32 8192 random": "tensor_tf32"}
COPIES = ("copy 1024 MiB", "sum 1024 MiB")
START = {"fp32": 10.0, "tensor_fp16": 1.0, "tensor_bf16": 1.0, "tensor_tf32": 2.0, "dram": 110.0,
         "knee": 1200.0}  # W, pJ, MHz
UNITS = {"idle": "W", "dram": "pJ/B", "knee": "MHz"}


def voltage(clock, knee):
    if clock <= knee:
        return KNEE_VOLTAGE
    return KNEE_VOLTAGE + (1 - KNEE_VOLTAGE) * (clock - knee) / (BOOST - knee)


class Law:
    def __init__(self, numbers, idle_share, l2_share):
        self.n, self.idle_share, self.l2_share = numbers, idle_share, l2_share

    def power(self, load, clock):
        """Watts of a load, and the seconds of its kernel, at a clock of the SMs."""
        squared = voltage(clock, self.n["knee"]) ** 2
        seconds = load["seconds"] * (max(1.0, load["own_clock"] / clock) if load["flops"] else 1.0)
        bytes_ = max(0.0, load["bytes"] - load["flops"] / FREE_FLOPS_A_BYTE) * self.n["dram"]
        operations = load["flops"] * self.n[load["type"]] if load["flops"] else 0.0
        energy = 1e-12 * ((operations + self.l2_share * bytes_) * squared + (1 - self.l2_share) * bytes_)
        idle = self.n["idle"] * (1 - self.idle_share * (1 - squared * clock / BOOST))
        return idle + load["duty"] * energy / seconds, seconds

    def settled(self, load):
        low, high = LOWEST, BOOST
        if self.power(load, high)[0] <= LIMIT:
            return self.power(load, high)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.power(load, middle)[0] <= LIMIT else (low, middle)
        return self.power(load, low)


def read_loads():
    rows = [json.loads(line) for line in LOADS.open()]
    loads = []
    for label, kind in list(PRODUCTS.items()) + [(label, "dram") for label in COPIES]:
        series = [row for row in rows if row.get("label") == label]
        fastest = max(row["flop_per_s"] or row["bytes_per_s"] for row in series)
        for row in series:
            rate = row["flop_per_s"] or row["bytes_per_s"]
            seconds = row["kernel_s_mean"]
            loads.append({"type": kind, "duty": row["duty"], "flops": row["flop_per_s"] * seconds,
                          "bytes": row["bytes_per_s"] * seconds, "measured_seconds": seconds, "watts": row["w"],
                          "seconds": seconds * rate / fastest, "own_clock": BOOST if kind == "fp32" else TENSOR})
    return rows, loads


def idle_power(rows):
    """Of each type of product, power over the rate of arithmetic at the boost clock, extrapolated to none; their mean."""
    intercepts = []
    for label in PRODUCTS:
        points = [(row["duty"] * row["flop_per_s"], row["w"]) for row in rows
                  if row.get("label") == label and row["sm_mhz"] > 0.99 * BOOST]
        rate, watts = (sum(point[i] for point in points) / len(points) for i in (0, 1))
        slope = sum((x - rate) * (y - watts) for x, y in points) / sum((x - rate) ** 2 for x, y in points)
        intercepts.append(watts - slope * rate)
    return sum(intercepts) / len(intercepts)


def residuals(loads, law):
    result = []
    for load in loads:
        watts, seconds = law.settled(load)
        result.append(math.log(watts / load["watts"]) / POWER_SCALE)
        if load["flops"]:
            result.append(math.log(seconds / load["measured_seconds"]) / RATE_SCALE)
    return result


def normal_equations(loads, numbers, idle, shares):
    names = list(numbers)
    base = residuals(loads, Law({**numbers, "idle": idle}, *shares))
    columns = []
    for name in names:
        sides = [residuals(loads, Law({**numbers, "idle": idle, name: numbers[name] * math.exp(step)}, *shares))
                 for step in (1e-3, -1e-3)]
        columns.append([(a - b) / 2e-3 for a, b in zip(*sides)])
    matrix = [[sum(a * b for a, b in zip(one, other)) for other in columns] for one in columns]
    return base, matrix, [-sum(a * b for a, b in zip(column, base)) for column in columns]


def fit(loads, idle, shares):
    """The numbers of least squares, and a standard deviation of each in percent."""
    numbers, damping = dict(START), 1e-3
    for _ in range(200):
        base, matrix, right = normal_equations(loads, numbers, idle, shares)
        damped = [[value * (1 + damping * (i == k)) for k, value in enumerate(row)] for i, row in enumerate(matrix)]
        step = solve(damped, right)
        moved = {name: numbers[name] * math.exp(max(-0.2, min(0.2, by))) for name, by in zip(numbers, step)}
        before, after = sum(r * r for r in base), sum(r * r for r in residuals(loads, Law({**moved, "idle": idle}, *shares)))
        if after <= before:
            numbers, damping = moved, max(1e-9, damping / 5)
            if max(map(abs, step)) < 1e-7:
                break
        elif damping > 1e9:
            break
        else:
            damping *= 5
    _, matrix, _ = normal_equations(loads, numbers, idle, shares)
    return numbers, {name: 100 * spread for name, spread in zip(numbers, spreads(matrix))}


def shares_of(rows, numbers):
    """Of idle power what the lowest clock does not draw, and what a byte of the L2 costs over one of the DRAM."""
    idle = next(row["w"] for row in rows if row.get("label") == "context, nothing run")
    idle_share = (1 - idle / numbers["idle"]) / (1 - KNEE_VOLTAGE ** 2 * LOWEST / BOOST)
    scale = next(row for row in rows if row.get("label", "").endswith("(L2)"))
    l2 = (scale["w"] - numbers["idle"]) / (scale["bytes_per_s"] * scale["duty"])
    return idle_share, l2 / (1e-12 * numbers["dram"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail unless the files are as the loads make them")
    parser.add_argument("--dry-run", action="store_true", help="print, and write nothing")
    parser.add_argument("--hardware", type=pathlib.Path, default=HARDWARE, help="the file with the numbers")
    arguments = parser.parse_args()
    rows, loads = read_loads()
    shares = (0.34, 0.47)
    idle = float(f"{idle_power(rows):.3g}")
    for _ in range(20):  # of shares and numbers that rest on each other
        numbers, spread = fit(loads, idle, shares)
        numbers["idle"] = idle
        shares = tuple(round(share, 2) for share in shares_of(rows, numbers))
    text = arguments.hardware.read_text()
    start, wrong = text.index("\nmeasured:"), []
    head, measured = text[:start], text[start:]
    for name, value in numbers.items():
        unit = UNITS.get(name, "pJ/FLOP")
        pattern = re.compile(rf"(\n    {name}: {{value: )([0-9.]+)( {unit}\b)")
        known = pattern.search(measured)
        if known is None:
            sys.exit(f"{arguments.hardware.name}: no measured {name} in {unit}")
        written = f"{value:.3g}" if name != "knee" else f"{round(value, -1):.0f}"
        known_to = f"sd {spread[name]:.1f} %" if name in spread else ""
        print(f"{name:12} {known[2]:>6} -> {written:>6} {unit:8} {known_to}")
        if float(known[2]) != float(written):
            wrong.append(f"{arguments.hardware.name}: {name} is {known[2]} {unit}; the loads give {written}")
        measured = pattern.sub(rf"\g<1>{written}\g<3>", measured, count=1)
    for what, place, share in (("kClockShareOfIdle", "idle", shares[0]), ("kCoreShareOfByte", "L2", shares[1])):
        known = re.search(rf"{what} = ([0-9.]+)", LAW.read_text())
        print(f"share {place:6} {known[1]:>6} -> {share:>6.2f}")
        if float(known[1]) != share:
            wrong.append(f"{LAW.name}: {what} is {known[1]}; the loads give {share:.2f}")
    for name in ("fp32", "tensor_fp16"):
        known = float(re.search(rf"\n  {name}: {{value: ([0-9.]+)", ARCHITECTURE.read_text())[1])
        if known != float(f"{numbers[name]:.2g}"):
            wrong.append(f"{ARCHITECTURE.name}: {name} is {known}; the H200 has {numbers[name]:.2g} pJ/FLOP")
    if not arguments.check and not arguments.dry_run:
        arguments.hardware.write_text(head + measured)
        return 0
    for line in wrong if arguments.check else []:
        print(line)
    return 1 if arguments.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
