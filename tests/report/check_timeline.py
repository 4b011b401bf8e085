#!/usr/bin/env python3
"""Checks that `predict --timeline` writes what HolisticTraceAnalysis and Perfetto need of a PyTorch profiler trace.

HolisticTraceAnalysis reads the complete ("X") events into one table, takes args "stream", "correlation" and
"External id" as columns, joins kernels to launches by correlation, takes steps from ProfilerStep# and wants the rank of
distributedInfo; Perfetto draws the flows. Usage: check_timeline.py PROGRAM SOURCE_TREE
"""
import gzip
import json
import os
import subprocess
import sys
import tempfile

# What HolisticTraceAnalysis takes for a launch, and the kinds of events it takes for work of the GPU.
LAUNCHES = {"cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemsetAsync", "cudaGraphLaunch"}
WORK = {"kernel", "gpu_memcpy", "gpu_memset"}
CASES = [
    ("eager, fp32", "scenarios/bert-large-fp32.yaml", [], "json"),
    ("waits for an overflow flag, compressed", "scenarios/huggingface-v100/4-fp16.yaml", [], "json.gz"),
    ("a CUDA graph", "scenarios/nanogpt/flash-attention.yaml", ["training.cuda_graphs=true"], "json"),
    ("compiled", "scenarios/nanogpt/flash-attention.yaml", ["training.compile=true"], "json.gz"),
]


def trace_of(program, source, scenario, changes, ending):
    handle, path = tempfile.mkstemp("." + ending)
    os.close(handle)
    try:
        arguments = [program, "predict", os.path.join(source, scenario), "--timeline", path]
        for change in changes:
            arguments += ["--set", change]
        subprocess.run(arguments, check=True, stdout=subprocess.DEVNULL, cwd=source)
        with open(path, "rb") as f:
            compressed = f.read(2) == b"\x1f\x8b"
        assert compressed == ending.endswith(".gz"), "compressed when asked for, and only then"
        with (gzip.open if compressed else open)(path, "rt", encoding="utf-8") as f:
            return json.load(f)
    finally:
        os.unlink(path)


def need_head(trace, need):
    """What stands before the events."""
    need(isinstance(trace.get("schemaVersion"), int), "schemaVersion")
    need(isinstance(trace.get("baseTimeNanoseconds"), int), "baseTimeNanoseconds")
    need(isinstance(trace.get("distributedInfo", {}).get("rank"), int), "distributedInfo.rank")
    devices = trace.get("deviceProperties") or []
    need(devices, "deviceProperties")
    for device in devices:
        for key in ("id", "name", "totalGlobalMem", "computeMajor", "computeMinor", "numSms", "warpSize"):
            need(key in device, f"deviceProperties.{key}")


def problems_of(trace):
    found = []

    def need(holds, what):
        if not holds and len(found) < 20:
            found.append(what)

    need_head(trace, need)
    events = trace.get("traceEvents") or []
    need(events, "traceEvents")

    launches, kernels, starts, ends, steps, externals = {}, [], {}, {}, [], set()
    for event in events:
        kind = event.get("ph")
        need(kind in {"X", "M", "C", "s", "f"}, f"ph {kind}")
        for key in ("name", "pid", "tid", "ts"):
            need(key in event, f"{key} of {event}")
        if kind == "M":
            continue
        need(isinstance(event["ts"], (int, float)) and event["ts"] >= 0, f"ts of {event}")
        if kind in ("s", "f"):
            need(event.get("cat") == "ac2g", f"cat of flow {event}")
            into = starts if kind == "s" else ends
            # One launch of a graph leads to all of its kernels.
            need(event["id"] not in into or kind == "f", f"flow {event['id']} twice")
            into[event["id"]] = event
            need(kind == "s" or event.get("bp") == "e", f"bp of {event}")
        if kind != "X":
            continue
        for key in ("cat", "dur", "args"):
            need(key in event, f"{key} of {event}")
        need(event["dur"] >= 0, f"dur of {event}")
        category, arguments = event["cat"], event["args"]
        if category in WORK:
            for key in ("stream", "correlation", "External id", "device"):
                need(isinstance(arguments.get(key), int), f"args {key} of {event}")
            kernels.append(event)
        elif category == "cuda_runtime" and event["name"] in LAUNCHES:
            for key in ("correlation", "External id"):
                need(isinstance(arguments.get(key), int), f"args {key} of {event}")
            need(arguments.get("correlation") not in launches, f"correlation of {event} twice")
            launches[arguments.get("correlation")] = event
        elif category == "cpu_op":
            need("External id" in arguments, f"External id of {event}")
            externals.add(arguments.get("External id"))
        elif event["name"].startswith("ProfilerStep#") and category != "gpu_user_annotation":
            need(category == "user_annotation", f"cat of {event}")
            steps.append(event)

    need(len(steps) == 1, f"{len(steps)} ProfilerStep#")
    need(kernels, "kernels")
    need(launches, "launches")
    last = {}
    for kernel in sorted(kernels, key=lambda e: e["ts"]):
        launch = launches.get(kernel["args"].get("correlation"))
        need(launch is not None, f"no launch of {kernel}")
        if launch is None:
            continue
        need(launch["ts"] <= kernel["ts"], f"{kernel} before its launch")
        external = kernel["args"].get("External id")
        if launch["name"] == "cudaGraphLaunch":  # one launch for the kernels of many operators
            need(external in externals, f"External id of {kernel}")
        else:
            need(launch["args"].get("External id") == external, f"External id of {kernel}")
        stream = (kernel["pid"], kernel["tid"])
        need(kernel["tid"] == kernel["args"].get("stream"), f"stream of {kernel}")
        need(kernel["ts"] >= last.get(stream, 0.0) - 1e-3, f"{kernel} overlaps the one before it on its stream")
        last[stream] = kernel["ts"] + kernel["dur"]
    if steps:
        begin, end = steps[0]["ts"], steps[0]["ts"] + steps[0]["dur"]
        for launch in launches.values():
            need(begin <= launch["ts"] <= end, f"{launch} outside of ProfilerStep#")
    need(set(starts) == set(ends), "flows that begin or end alone")
    for number, start in starts.items():
        launch = launches.get(number)
        need(launch is not None and launch["ts"] == start["ts"] and launch["tid"] == start["tid"],
             f"flow {number} does not start at a launch")
    return found


def broken_traces(trace):
    """Each lacks one thing; the check has to see every one."""
    def changed(change):
        copy = json.loads(json.dumps(trace))
        change(copy)
        return copy

    def first(copy, **wanted):
        return next(e for e in copy["traceEvents"] if all(e.get(k) == v for k, v in wanted.items()))

    yield "no correlation", changed(lambda t: first(t, cat="kernel")["args"].pop("correlation"))
    yield "no stream", changed(lambda t: first(t, cat="kernel")["args"].pop("stream"))
    yield "no duration", changed(lambda t: first(t, cat="cpu_op").update(dur=-1))
    yield "another correlation", changed(lambda t: first(t, cat="kernel")["args"].update(correlation=10**9))
    yield "half a flow", changed(lambda t: t["traceEvents"].remove(first(t, ph="f")))
    yield "no rank", changed(lambda t: t.pop("distributedInfo"))
    yield "no step", changed(lambda t: [e.update(name="step") for e in t["traceEvents"] if e["name"].startswith("Prof")])


def main():
    program, source = sys.argv[1], sys.argv[2]
    failed = 0
    for title, scenario, changes, ending in CASES:
        trace = trace_of(program, source, scenario, changes, ending)
        problems = problems_of(trace)
        print(f"{title}: {len(trace['traceEvents'])} events, {'as needed' if not problems else 'NOT as needed'}")
        for problem in problems:
            print("   ", problem[:300])
        failed += bool(problems)
        if title == CASES[0][0]:
            for what, broken in broken_traces(trace):
                if not problems_of(broken):
                    print(f"    the check does not see: {what}")
                    failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
