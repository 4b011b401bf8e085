#!/usr/bin/env python3
"""Times single calls of PyTorch on this machine's GPU: rows of kind "calls" (measurements/README.md).

Each call runs twice a turn: after a buffer of four times the L2 was read (us_cold: its inputs come from memory), and once
more over the same operands (us_warm). Times are the profiler's (CUPTI), medians of the turns. Shapes are drawn by their
logarithm, from a part of one block to what fills the GPU many times over.

  python3 measure_calls.py --output calls.jsonl [--compiled compiled.jsonl]

--compiled adds kernels that torch.compile generates, one function a call. Needs PyTorch with CUDA and nothing else;
nothing else should run on the GPU. Rows are written as they come."""
import argparse
import json
import math
import random
import statistics
import sys
import time

import torch
import torch.nn.functional as F

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
MARK = "erfinv"  # the kernel of Tensor.erfinv_, which no call runs
TURNS = 12


def new(type_name, *shape):
    return torch.randn(*shape, device="cuda", dtype=TYPES[type_name])


def log_uniform(rng, low, high, multiple=1):
    value = math.exp(rng.uniform(math.log(low), math.log(high)))
    return max(multiple, round(value / multiple) * multiple)


def pointwise_cases(rng):
    """Cases of point-wise functions by their elements: [elements, type]."""
    for op in ("scale", "masked_fill", "gelu_backward", "tanh", "dropout_backward"):
        for type_name in ("float32", "bfloat16"):
            for _ in range(14):
                yield op, [log_uniform(rng, 64, 3e7, rng.choice([1, 8, 64])), type_name]
    for op in ("add_mixed", "mul_mixed"):
        for _ in range(24):
            yield op, [log_uniform(rng, 64, 3e7, rng.choice([1, 8, 64]))]


def strided_cases(rng):
    for type_name in ("float32", "bfloat16"):
        for _ in range(24):  # [rows, cols, type] of the output
            cols = log_uniform(rng, 8, 4096, rng.choice([1, 8]))
            yield "transpose", [log_uniform(rng, 8, max(9, 4e6 / cols), rng.choice([1, 8])), cols, type_name]
        for _ in range(24):  # [batch, length, heads, head_dim, type]: heads before the length
            dim, heads = rng.choice([16, 32, 64, 80, 128]), rng.choice([1, 2, 4, 8, 12, 16])
            yield "permute", [rng.choice([1, 2, 4, 8]), log_uniform(rng, 2, 1024), heads, dim, type_name]
        for _ in range(24):  # [rows, cols, type]
            cols = log_uniform(rng, 8, 8192, rng.choice([1, 8]))
            yield "add_row", [log_uniform(rng, 2, max(3, 4e6 / cols)), cols, type_name]
        for _ in range(14):  # [batch, heads, length, type]: a mask of the square
            yield "add_mask", [rng.choice([2, 4, 8]), rng.choice([2, 8, 12, 16]), log_uniform(rng, 8, 512, 8), type_name]
        for _ in range(30):  # [rows, cols, parts, type]: parts are windows of wider tensors
            cols, parts = rng.choice([4, 8, 16, 32, 48, 64, 80, 128, 256, 512, 1024]), rng.choice([2, 2, 2, 3, 4])
            yield "cat_windows", [log_uniform(rng, 1, max(2, 8e6 / cols / parts)), cols, parts, type_name]


def indexed_cases(rng):
    for type_name in ("float32", "bfloat16"):
        for _ in range(16):  # [batch, side, channels, type]
            side, channels = rng.choice([7, 14, 28, 56]), rng.choice([32, 96, 128, 192, 384])
            yield "roll", [log_uniform(rng, 1, 16), side, channels, type_name]
        for _ in range(20):  # [batch, length, channels, kept, type]: rows of the middle dimension
            yield "index_middle", [log_uniform(rng, 1, 16), rng.choice([49, 196, 784]), rng.choice([3, 16, 64, 96, 192]),
                                   rng.choice([17, 49, 160, 196]), type_name]
        for _ in range(20):  # [tokens, table, columns, type]: of a table's rows of odd length
            yield "rows_odd", [log_uniform(rng, 8, 32768), log_uniform(rng, 64, 50000), rng.choice([1, 3, 5, 11, 37, 101]),
                               type_name]
        for _ in range(16):  # [rows, cols, type]
            yield "gather", [log_uniform(rng, 1, 16384), rng.choice([1, 2, 8, 64, 128]), type_name]
        for _ in range(24):  # [batch, channels, size, type]
            yield "max_pool_backward", [rng.choice([1, 2, 4, 8, 16, 32]), rng.choice([1, 3, 16, 64, 128, 256]),
                                        rng.choice([4, 8, 14, 28, 56, 112]), type_name]


def run_of(op, case):
    """The call of a case, its operands made."""
    sizes, t = [x for x in case if not isinstance(x, str)], case[-1]
    if op == "scale":
        x = new(t, sizes[0])
        return lambda: torch.mul(x, 0.5)
    if op == "masked_fill":
        x, mask = new(t, sizes[0]), torch.rand(sizes[0], device="cuda") < 0.5
        return lambda: x.masked_fill(mask, 0.0)
    if op == "gelu_backward":
        x, dy = new(t, sizes[0]), new(t, sizes[0])
        return lambda: torch.ops.aten.gelu_backward(dy, x)
    if op == "tanh":
        x = new(t, sizes[0])
        return lambda: torch.tanh(x)
    if op == "dropout_backward":
        dy, mask = new(t, sizes[0]), torch.rand(sizes[0], device="cuda") < 0.9
        return lambda: torch.ops.aten.native_dropout_backward(dy, mask, 1.1)
    if op in ("add_mixed", "mul_mixed"):
        a, b = new("bfloat16", sizes[0]), new("float32", sizes[0])
        function = torch.add if op == "add_mixed" else torch.mul
        return lambda: function(a, b)
    if op == "transpose":
        x = new(t, sizes[1], sizes[0]).t()
        return lambda: x.contiguous()
    if op == "permute":
        x = new(t, *sizes).transpose(1, 2)
        return lambda: x.contiguous()
    if op == "add_row":
        x, row = new(t, sizes[0], sizes[1]), new(t, sizes[1])
        return lambda: x + row
    if op == "add_mask":
        x, mask = new(t, sizes[0], sizes[1], sizes[2], sizes[2]), new(t, 1, 1, sizes[2], sizes[2])
        return lambda: x + mask
    if op == "cat_windows":
        parts = [new(t, sizes[0], 2 * sizes[1])[:, :sizes[1]] for _ in range(sizes[2])]
        return lambda: torch.cat(parts, -1)
    if op == "roll":
        x = new(t, sizes[0], sizes[1], sizes[1], sizes[2])
        return lambda: torch.roll(x, 3, 1)
    if op == "index_middle":
        x, index = new(t, *sizes[:3]), torch.randint(0, sizes[1], (sizes[3],), device="cuda")
        return lambda: x[:, index]
    if op == "rows_odd":
        table, index = new(t, sizes[1], sizes[2]), torch.randint(0, sizes[1], (sizes[0],), device="cuda")
        return lambda: F.embedding(index, table)
    if op == "gather":
        x, index = new(t, *sizes), torch.randint(0, sizes[1], tuple(sizes), device="cuda")
        return lambda: torch.gather(x, 1, index)
    if op == "max_pool_backward":
        x = new(t, sizes[0], sizes[1], sizes[2], sizes[2])
        y, index = F.max_pool2d(x, 2, return_indices=True)
        dy = torch.randn_like(y)
        return lambda: torch.ops.aten.max_pool2d_with_indices_backward(dy, x, [2, 2], [2, 2], [0, 0], [1, 1], False, index)
    raise ValueError(op)


def compiled_cases(rng):
    """[rows, cols, type] of functions that become one generated kernel, or two where columns are summed."""
    for _ in range(7):
        for op, low, high in (("fused_add", 16, 8192), ("fused_gelu", 16, 8192), ("fused_tanh", 16, 8192),
                              ("fused_transposed", 32, 4096), ("fused_softmax", 64, 1024), ("fused_norm", 128, 1024),
                              ("fused_softmax", 4096, 60000), ("fused_norm", 2048, 16384), ("fused_columns", 64, 8192)):
            cols = log_uniform(rng, low, high, 8)
            yield op, [log_uniform(rng, 16, max(32, 1.6e7 / cols), 8), cols, rng.choice(["float32", "bfloat16"])]


def compiled_run_of(op, case):
    rows, cols, t = case
    x, y, weight = new(t, rows, cols), new(t, rows, cols), new("float32", cols)
    transposed = new(t, cols, rows)
    body = {"fused_add": lambda x: x + y,
            "fused_gelu": lambda x: F.gelu(x),
            "fused_tanh": lambda x: torch.tanh(x),
            "fused_transposed": lambda x: x + transposed.t(),
            "fused_softmax": lambda x: torch.softmax(x, -1),
            "fused_norm": lambda x: F.layer_norm(x.float(), (cols,), weight, weight).to(x.dtype),
            "fused_columns": lambda x: x.sum(0, dtype=torch.float32)}[op]
    torch._dynamo.reset()
    compiled = torch.compile(body, dynamic=False)
    return lambda: compiled(x)


def kernels_between_marks(events):
    calls = []
    for kernel in events:
        if MARK in kernel["name"]:
            calls.append([])
        elif calls:
            calls[-1].append(kernel)
    return calls


def device_events(run):
    """Kernels, copies and memsets in their order, with their grids where the trace has them."""
    import os
    import tempfile
    with tempfile.NamedTemporaryFile(suffix=".json", delete=False) as file:
        name = file.name
    run.export_chrome_trace(name)
    with open(name) as file:
        trace = json.load(file)["traceEvents"]
    os.unlink(name)
    wanted = [e for e in trace if e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")]
    return [{"name": e["name"], "us": float(e["dur"]), "grid": e["args"].get("grid"), "block": e["args"].get("block"),
             "regs": e["args"].get("registers per thread")} for e in sorted(wanted, key=lambda e: e["ts"])]


def measured(batch, flush):
    """Rows of [(op, case, call)], all in one profile."""
    from torch.profiler import ProfilerActivity, profile
    mark = torch.full((1,), 0.5, device="cuda")
    with torch.no_grad():
        for _, _, call in batch:
            call()
            call()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as run:
            for _, _, call in batch:
                for _ in range(TURNS):
                    mark.erfinv_()
                    flush.sum()
                    mark.erfinv_()
                    call()
                    mark.erfinv_()
                    call()
                torch.cuda.synchronize()
    calls = kernels_between_marks(device_events(run))
    if len(calls) != 3 * TURNS * len(batch):
        raise RuntimeError(f"{len(calls)} calls in the profile, not {3 * TURNS * len(batch)}")
    for i, (op, case, _) in enumerate(batch):
        own = calls[3 * TURNS * i:3 * TURNS * (i + 1)]
        cold, warm = own[1::3], own[2::3]
        if len({len(one) for one in cold + warm}) != 1:
            continue
        kernels = []
        for k in range(len(cold[0])):
            kernel = dict(cold[0][k])
            del kernel["us"]
            kernel["name"] = kernel["name"][:140]
            kernel["us_cold"] = round(statistics.median(one[k]["us"] for one in cold), 3)
            kernel["us_warm"] = round(statistics.median(one[k]["us"] for one in warm), 3)
            kernels.append(kernel)
        yield {"op": op, "case": [str(x) for x in case], "kernels": kernels}


def measure(cases, make, path, flush, limit_s, at_once):
    began, rows, unique = time.time(), 0, {}
    for op, case in cases:
        unique.setdefault(json.dumps([op, case]), (op, case))
    todo = list(unique.values())
    random.Random(5).shuffle(todo)
    with open(path, "a") as out:
        for first in range(0, len(todo), at_once):
            if time.time() - began > limit_s:
                print(f"stopped after {limit_s} s with {len(todo) - first} calls left", file=sys.stderr)
                break
            try:
                batch = [(op, case, make(op, case)) for op, case in todo[first:first + at_once]]
                for row in measured(batch, flush):
                    out.write(json.dumps(row) + "\n")
                    rows += 1
            except Exception as error:  # one batch is lost, not the others
                print(f"{todo[first]}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
            out.flush()
    print(f"{path}: {rows} calls in {time.time() - began:.0f} s on {torch.cuda.get_device_name()}, "
          f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="file of rows to append to")
    parser.add_argument("--compiled", help="file of rows of generated kernels to append to")
    parser.add_argument("--limit", type=float, default=600, help="seconds for either file")
    given = parser.parse_args()
    l2 = torch.cuda.get_device_properties(0).L2_cache_size
    flush = torch.ones(4 * l2 // 4, device="cuda")
    rng = random.Random(16)
    cases = [*pointwise_cases(rng), *strided_cases(rng), *indexed_cases(rng)]
    measure(cases, run_of, given.output, flush, given.limit, 12)
    if given.compiled:
        measure(compiled_cases(rng), compiled_run_of, given.compiled, flush, given.limit, 1)


if __name__ == "__main__":
    main()
