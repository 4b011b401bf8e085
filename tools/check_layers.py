#!/usr/bin/env python3
"""Checks that every include in sim/ follows tools/layers.txt, that the order there has no cycle, and that folders of a
layer do not include each other."""
import pathlib
import re
import sys

# Public headers that the simulator is built on or behind, and the generated one.
OUTSIDE = {("units", "ridgeline/quantity.h"), ("library", "ridgeline/ridgeline.h"), ("app", "revision.h"),
           ("library", "revision.h")}

# Folders of one layer that still include each other ("": the layer's own files). No pair may be added.
CIRCLES = {("answer", "", "parallel"), ("kernels", "", "products"), ("trace", "", "op_trace"), ("trace", "", "profiler"),
           ("workload", "", "aten"), ("workload", "", "families"), ("workload", "", "networks"),
           ("workload", "", "optimizers"), ("workload", "", "parallel"), ("workload", "aten", "eager"),
           ("workload", "families", "networks"), ("workload", "families", "parallel"),
           ("workload", "optimizers", "parallel")}

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
allowed, seen, errors = {}, [], []
for line in (root / "tools/layers.txt").read_text().splitlines():
    line = line.split("#")[0].strip()
    if not line:
        continue
    name, _, uses = line.partition(":")
    allowed[name] = set(uses.split())
    errors += [f"layers.txt: {name} uses {use}, which does not stand above it" for use in allowed[name] - set(seen)]
    seen.append(name)
checked, inside = 0, set()
for path in sorted((root / "sim").rglob("*.[hc]*")):
    layer, *folders = path.relative_to(root / "sim").parts[:-1]
    if layer not in allowed:
        errors.append(f"{path.relative_to(root)}: folder {layer} is not in tools/layers.txt")
        continue
    for number, text in enumerate(path.read_text().splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*"([^"]+)"', text)
        if not match:
            continue
        checked += 1
        parts = match.group(1).split("/")
        if parts[:2] == ["sim", layer]:
            inside.add((layer, "/".join(folders), "/".join(parts[2:-1])))
        where = f"{path.relative_to(root)}:{number}"
        if (layer, match.group(1)) in OUTSIDE:
            continue
        if parts[0] != "sim" or len(parts) < 3:
            errors.append(f'{where}: include "{match.group(1)}" must start with "sim/<folder>/"')
        elif parts[1] != layer and parts[1] not in allowed[layer]:
            errors.append(f"{where}: {layer} may not include from {parts[1]}")
circles = {(layer, one, other) for layer, one, other in inside if one < other and (layer, other, one) in inside}
errors += [f"sim/{layer}: {one or 'its own files'} and {other} include each other"
           for layer, one, other in sorted(circles - CIRCLES)]
errors += [f"tools/check_layers.py: {circle} is no circle any more" for circle in sorted(CIRCLES - circles)]
print("\n".join(errors) if errors else f"{checked} includes follow tools/layers.txt")
sys.exit(1 if errors or not checked else 0)
