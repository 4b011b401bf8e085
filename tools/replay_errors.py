#!/usr/bin/env python3
"""Errors of replays of recorded steps on the GPU of their recording.

    python3 tools/replay_errors.py build/ridgeline nvidia-t4 TRACE... nvidia-a100-sxm4-80gb TRACE... [--ops N]

Names of hw/ say which GPU the traces after them were recorded on. A line a trace: how much of its GPU time is
understood, what is predicted of that part, what was measured, and how far apart they are; what ran beside kernels of other
streams, the recording's clock and what it adds to each kernel (both seen on half of the calls), and under these the error of
the other half's calls that ran alone. Then median, mean and worst of the magnitudes of both errors. A trace that cannot be compared is
named and left out. --ops prints the operations that make most of a trace's error.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys


def replay(program, trace, hardware):
    command = [program, "replay", trace, "--no-advice", "--format", "json", "--hardware", hardware]
    command += ["--recorded-on", hardware]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return None, (done.stderr.strip().splitlines() or ["no message"])[-1]
    return json.loads(done.stdout), None


def worst_operations(answer, count):
    understood = [op for op in answer["ops"] if op["understood"]]
    understood.sort(key=lambda op: -abs(op["predicted_s"] - op["measured_s"]))
    for op in understood[:count]:
        share = (op["predicted_s"] - op["measured_s"]) / answer["understood_part"]["measured_s"]
        print(f"      {100 * share:+6.1f} points  {1e6 * op['predicted_s']:10.1f} us for {1e6 * op['measured_s']:10.1f}"
              f"  {op['count']:5d} {op['name']}")


def summary(what, errors):
    print(f"{what}, {len(errors)} traces: median {100 * statistics.median(errors):.1f} %,"
          f" mean {100 * statistics.fmean(errors):.1f}, worst {100 * max(errors):.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("traces", nargs="+", help="names of hw/, each before its traces")
    parser.add_argument("--ops", type=int, default=0)
    asked = parser.parse_args()
    errors, of_alone, hardware = [], [], ""
    for trace in asked.traces:
        if not pathlib.Path(trace).is_file():
            hardware = trace
            continue
        name = pathlib.Path(trace).name[:48]
        answer, failed = replay(asked.program, trace, hardware)
        part = answer["understood_part"] if answer else {"measured_s": None}
        if not part["measured_s"]:
            print(f"{name:50} left out: {failed or 'nothing of it is understood, or it has no measured kernels'}")
            continue
        error = part["predicted_s"] / part["measured_s"] - 1
        errors.append(abs(error))
        print(f"{name:50} {hardware:22} understood {100 * answer['understood']:5.1f} %"
              f"  {1e3 * part['predicted_s']:9.3f} ms for {1e3 * part['measured_s']:9.3f}  {100 * error:+6.1f} %", end="")
        alone = part["alone"]
        if alone["measured_s"]:
            of_alone.append(abs(alone["predicted_s"] / alone["measured_s"] - 1))
            print(f"; beside others {100 * part['beside_share']:4.1f} %, clock {100 * part['clock_share']:3.0f} %,"
                  f" adds {1e6 * part['added_per_kernel_s']:4.2f} us, other half"
                  f" {100 * (alone['predicted_s'] / alone['measured_s'] - 1):+6.1f} %", end="")
        print(flush=True)
        worst_operations(answer, asked.ops)
    if not errors:
        return 1
    summary("understood part", errors)
    if of_alone:
        summary("the other half of its calls, under the recording's conditions", of_alone)
    return 0


if __name__ == "__main__":
    sys.exit(main())
