#!/usr/bin/env python3
"""Writes data/kernel_names.json: which kernels each call of PyTorch's dispatcher launched in recorded traces.

Usage: kernel_names.py TRACE.json.gz... > data/kernel_names.json

The timelines of `ridgeline predict --timeline` take their kernels' names from it, so that tools that compare traces by
name find the same kernels. A call is its name and the types of its first two tensors ("aten::mul|float,float"); its kernels stand in order, neighbours of one name once, the most often recorded list first.
Products and convolutions are left out: which of their kernels runs depends on the shape.
"""
import collections
import gzip
import json
import sys

SHAPE_DEPENDENT = {"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_addmm_activation"}
# A backend's own call stands for the call around it, which has its arguments.
AROUND = {
    f"aten::_{backend}_attention_{inner}": f"aten::_scaled_dot_product_{backend}_attention{outer}"
    for backend in ("flash", "efficient", "cudnn")
    for inner, outer in (("forward", ""), ("backward", "_backward"))
}
AROUND["aten::gather"] = "aten::embedding"
TENSORS = {"float", "double", "int", "long int", "bool", "unsigned char", "c10::Half", "c10::BFloat16"}
MOST_LISTS = 6


def key_of(name, arguments):
    types = []
    dims = arguments.get("Input Dims", [])
    for i, kind in enumerate(arguments.get("Input type", [])):
        if kind == "TensorList" or (kind in TENSORS and i < len(dims) and dims[i]):
            types.append(kind)
    return f"{name}|{','.join(types[:2])}"


def add(trace, found):
    operators, kernels = {}, collections.defaultdict(list)
    for event in trace["traceEvents"]:
        arguments = event.get("args") or {}
        if event.get("cat") == "cpu_op":
            operators[arguments.get("External id")] = event
        elif event.get("cat") == "kernel":
            kernels[arguments.get("External id")].append(event)
    for external, launched in kernels.items():
        operator = operators.get(external)
        if operator is None or "Input type" not in operator.get("args", {}):
            continue
        name = operator["name"]
        if not name.startswith("aten::") or name in SHAPE_DEPENDENT or "conv" in name:
            continue
        names = []
        for kernel in sorted(launched, key=lambda k: k["ts"]):
            if not names or names[-1] != kernel["name"]:
                names.append(kernel["name"])
        key = key_of(name, operator["args"])
        if name in AROUND:  # its own arguments lie otherwise: the first three are the same
            key = "|".join([AROUND[name], *key.split("|")[1:]])
        found[key][tuple(names)] += 1


def main():
    found = collections.defaultdict(collections.Counter)
    for path in sorted(sys.argv[1:]):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
            trace = json.load(file)
        if isinstance(trace, dict) and "traceEvents" in trace:
            add(trace, found)
    calls = {
        key: [list(names) for names, _ in sorted(lists.items(), key=lambda item: (-item[1], item[0]))[:MOST_LISTS]]
        for key, lists in sorted(found.items())
    }
    json.dump({"made_by": "tools/kernel_names.py from recorded traces", "calls": calls}, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
