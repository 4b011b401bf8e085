#!/usr/bin/env python3
"""Times operations of PyTorch on this machine's GPU, for `ridgeline refit`.

Writes JSON lines as docs/kernel-cases.md has them, with "us": microseconds of the kernels of one call, median of the
repetitions. Before every call a buffer of four times the L2 is read, so that inputs are cold and nothing waits to be
written back. Times come from the profiler (CUPTI), without the launch. Where it sees no kernels (--graph forces this), the operation is captured in a CUDA graph
over as many sets of inputs as exceed that buffer, and a replay's time divided: about 1 us of each is the gap between
nodes of a graph.

  python3 measure_kernels.py --output measured.jsonl              # about 500 operations, two to four minutes
  ridgeline refit --kernels measured.jsonl --hardware nvidia-rtx-3090

Needs PyTorch with CUDA and nothing else; nothing else should run on the GPU."""
import argparse
import json
import math
import random
import statistics
import sys
import time

import torch
import torch.nn.functional as F

TYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def usable_types():
    major = torch.cuda.get_device_capability()[0]
    return ["fp32", "tf32", "bf16", "fp16"] if major >= 8 else ["fp32", "fp16"] if major >= 7 else ["fp32"]


def log_uniform(rng, low, high, multiple):
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return max(multiple, round(value / multiple) * multiple)


def draw_cases(count, seed, memory):
    """Shapes drawn by their logarithm: half products, the rest attention, reductions and point-wise operations."""
    rng, types = random.Random(seed), usable_types()
    cases = []
    while len(cases) < count:
        kind, dtype = rng.choice(["mm", "mm", "addmm", "bmm", "attention", "rows", "rows", "rows"]), rng.choice(types)
        if kind in ("mm", "addmm", "bmm"):
            m, n, k = (log_uniform(rng, 64, 8192, 8) for _ in range(3))
            params = {"m": m, "n": n, "k": k}
            if kind != "addmm":
                params["layout"] = rng.choice(["nn", "nt", "tn"]) if kind == "mm" else rng.choice(["nn", "nt"])
            if kind == "bmm":
                params["b"] = rng.choice([4, 12, 16, 48, 96])
            size, work = params.get("b", 1) * (m * k + k * n + m * n), params.get("b", 1) * 2 * m * n * k
            case = {"op": kind, "dtype": dtype, "params": params}
        elif kind == "attention":
            if dtype not in ("fp16", "bf16") or torch.cuda.get_device_capability()[0] < 8:
                continue
            batch, heads, seq = rng.choice([1, 2, 4, 8, 16]), rng.choice([8, 12, 16]), log_uniform(rng, 128, 4096, 64)
            head_dim = rng.choice([64, 128])
            size, work = 4 * batch * heads * seq * head_dim, 4 * batch * heads * seq * seq * head_dim
            case = {"op": "flash_attention", "dtype": dtype,
                    "params": {"batch": batch, "heads": heads, "seq": seq, "head_dim": head_dim,
                               "causal": rng.random() < 0.5}}
        else:
            rows, cols = log_uniform(rng, 64, 65536, 8), log_uniform(rng, 128, 16384, 8)
            op = rng.choice(["softmax", "log_softmax", "layer_norm", "gelu", "add", "mul", "silu", "sum_rows"])
            dtype = rng.choice([one for one in types if one != "tf32"])
            size, work = 3 * rows * cols, 0
            case = {"op": op, "dtype": dtype, "params": {"rows": rows, "cols": cols}}
        if 4 * size > memory / 16 or work > 4e12 or (dtype in ("fp32",) and work > 6e11):
            continue
        cases.append(case)
    return cases


def make_inputs(case):
    op, p, dtype = case["op"], case["params"], TYPES[case["dtype"]]
    new = lambda *shape: torch.randn(*shape, device="cuda", dtype=dtype)
    if op in ("mm", "bmm"):
        batch = (p["b"],) if op == "bmm" else ()
        layout = p.get("layout", "nn")
        a = new(*batch, p["k"], p["m"]).transpose(-1, -2) if layout == "tn" else new(*batch, p["m"], p["k"])
        b = new(*batch, p["n"], p["k"]).transpose(-1, -2) if layout == "nt" else new(*batch, p["k"], p["n"])
        return a, b
    if op == "addmm":
        return new(p["m"], p["k"]), new(p["n"], p["k"]), new(p["n"])
    if op == "flash_attention":
        return tuple(new(p["batch"], p["heads"], p["seq"], p["head_dim"]) for _ in range(3))
    if op in ("add", "mul"):
        return new(p["rows"], p["cols"]), new(p["rows"], p["cols"])
    if op == "layer_norm":
        return new(p["rows"], p["cols"]), new(p["cols"]), new(p["cols"])
    return (new(p["rows"], p["cols"]),)


def call(case, inputs):
    op = case["op"]
    if op == "mm":
        return torch.mm(*inputs)
    if op == "bmm":
        return torch.bmm(*inputs)
    if op == "addmm":
        return F.linear(*inputs)
    if op == "flash_attention":
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(*inputs, is_causal=case["params"]["causal"])
    if op == "layer_norm":
        return F.layer_norm(inputs[0], (inputs[0].shape[-1],), inputs[1], inputs[2])
    if op == "softmax":
        return torch.softmax(inputs[0], -1)
    if op == "log_softmax":
        return torch.log_softmax(inputs[0], -1)
    if op == "sum_rows":
        return torch.sum(inputs[0], 0)
    return {"gelu": F.gelu, "silu": F.silu, "add": torch.add, "mul": torch.mul}[op](*inputs)


MARK = "FillFunctor"  # the kernel of Tensor.fill_, which no case runs


def kernels_between_marks(run):
    """Names and microseconds of the kernels after each mark."""
    events = sorted((e for e in run.events() if e.device_type == torch.autograd.DeviceType.CUDA),
                    key=lambda e: e.time_range.start)
    calls = []
    for kernel in events:
        if MARK in kernel.name:
            calls.append([])
        elif calls:
            calls[-1].append((kernel.name, float(kernel.time_range.elapsed_us())))
    return calls


def profiled(run_once, flush, repetitions):
    """Kernels of one call, each with its microseconds, of every repetition; none where the profiler sees none."""
    from torch.profiler import ProfilerActivity, profile
    mark = torch.empty(1, device="cuda")
    run_once()
    run_once()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as run:
        mark.fill_(1.0)
        flush.sum()
        for _ in range(repetitions):
            mark.fill_(1.0)
            flush.sum()
            run_once()
        torch.cuda.synchronize()
    calls = kernels_between_marks(run)
    return [one[len(calls[0]):] for one in calls[1:] if len(one) > len(calls[0])]


def graphed(case, flush_bytes, repetitions):
    """Microseconds of a call among as many sets of inputs as exceed the caches; how many sets."""
    first = make_inputs(case)
    one_set = sum(t.numel() * t.element_size() for t in first)
    sets = max(2, min(64, math.ceil(flush_bytes / one_set)))
    inputs = [first] + [make_inputs(case) for _ in range(sets - 1)]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for one in inputs[:2]:
            call(case, one)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for one in inputs:
            call(case, one)
    times = []
    for _ in range(repetitions + 1):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(1e3 * start.elapsed_time(end) / sets)
    return statistics.median(times[1:]), sets


def measure(case, flush, options):
    torch.backends.cuda.matmul.allow_tf32 = case["dtype"] == "tf32"
    if not options.graph:
        inputs = make_inputs(case)
        calls = profiled(lambda: call(case, inputs), flush, options.repetitions)
        if calls:
            us = statistics.median(sum(t for _, t in one) for one in calls)
            return {**case, "us": round(us, 3), "kernels": [{"name": name, "us": t} for name, t in calls[-1]]}
    us, sets = graphed(case, flush.numel() * flush.element_size(), options.repetitions)
    return {**case, "us": round(us, 3), "input_sets": sets, "method": "graph"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--output", default="measured.jsonl")
    parser.add_argument("--count", type=int, default=500, help="operations")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=600, help="stops after as many, with what it has")
    parser.add_argument("--graph", action="store_true", help="CUDA graphs and events instead of the profiler")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("measure_kernels.py: PyTorch sees no GPU")
    board = torch.cuda.get_device_properties(0)
    cases = draw_cases(options.count, options.seed, board.total_memory)
    flush = torch.zeros(max(64 << 20, 4 * getattr(board, "L2_cache_size", 64 << 20)) // 4, device="cuda")  # fp32
    began, done, failed = time.time(), 0, 0
    with open(options.output, "w") as out:
        for case in cases:
            if time.time() - began > options.seconds:
                break
            try:
                row = measure(case, flush, options)
                out.write(json.dumps({**row, "gpu": board.name, "torch": torch.__version__}) + "\n")
                done += 1
            except RuntimeError as error:  # no such kernel on this GPU, or no memory for it
                failed += 1
                print(f"{json.dumps(case)}: {str(error).splitlines()[0]}", file=sys.stderr)
            if done % 50 == 0:
                print(f"{done} of {len(cases)}, {time.time() - began:.0f} s", file=sys.stderr)
    print(f"{options.output}: {done} operations on {board.name}, {failed} could not run", file=sys.stderr)


if __name__ == "__main__":
    main()
