"""Costs of the host that no step of a network says by itself, from operations timed alone.

tools/measure_host_classes.py times chains of one operation. A chain is quicker than the same operations within a network,
whose code and data come from all over; by how much, chains of operations say whose costs within networks are known
(anchors): the median over them, of the main thread, of the backward pass, and of an optimizer's loop and what it does once
a step apart. A cost is what its chain takes, less known nodes in it, over that ratio. Fitted beside an H200; the same operations beside an H100 are the check."""
import collections
import gzip
import json
import pathlib
import statistics

ROOT = pathlib.Path(__file__).resolve().parent.parent
FITTED = ROOT / "measurements/h200/host/classes.jsonl.gz"
HELD_OUT = ROOT / "measurements/h100/host_classes.jsonl.gz"

# What one more operation of a chain is, in known costs.
ANCHORS = {
    ("linear", "forward"): {"linear": 1},
    ("layer_norm", "forward"): {"layer_norm": 1},
    ("gelu", "forward"): {"pointwise": 1},
    ("softmax", "forward"): {"softmax": 1},
    ("matmul", "forward"): {"matmul": 1},
    ("linear", "backward"): {"addmm_backward": 1, "view_backward": 1, "accumulate_grad": 2},
    ("layer_norm", "backward"): {"layer_norm_backward": 1, "accumulate_grad": 2},
    ("gelu", "backward"): {"pointwise_backward": 1},
    ("softmax", "backward"): {"softmax_backward": 1},
    ("matmul", "backward"): {"bmm_backward": 1, "fan_in_add": 1},
    ("adamw_foreach", "step"): {"per_parameter_foreach": 1},
    ("adamw_foreach", "once"): {"foreach_fixed": 1},
}
# Cost: chain, phase, and known costs in it.
COSTS = {
    "convolution": ("convolution", "forward", {}),
    "convolution_backward": ("convolution", "backward", {"accumulate_grad": 1}),
    "batch_norm": ("batch_norm", "forward", {}),
    "batch_norm_backward": ("batch_norm", "backward", {"accumulate_grad": 2}),
    "per_parameter_for_loop": ("adamw_for_loop", "step", {}),
    "per_parameter_foreach_sgd": ("sgd_foreach", "step", {}),
    "unscale_fixed": ("grad_scaler", "once", {}),
    "per_parameter_unscale": ("grad_scaler", "step", {}),
    "tensor_boundary": ("function_identity", "forward", {}),
    "tensor_boundary_backward": ("function_identity", "backward", {}),
    "megatron_linear": ("function_linear", "forward", {}),
    "megatron_linear_backward": ("function_linear", "backward", {"accumulate_grad": 2}),
    "megatron_function": ("function_kernel", "forward", {}),
    "megatron_function_backward": ("function_kernel", "backward", {}),
}
# Cost: chain with it, chain without.
DIFFERENCES = {
    "offload_pack": ("gelu_offloaded", "gelu", "forward"),
    "offload_unpack": ("gelu_offloaded", "gelu", "backward"),
    "dtensor_op": ("neg_dtensor", "neg", "forward"),
    "dtensor_op_backward": ("neg_dtensor", "neg", "backward"),
    "ddp_forward": ("linears_ddp", "linears", "once"),
}
NAMES = [*COSTS, *DIFFERENCES, "per_parameter_accumulate"]


def medians(path):
    """Microseconds of one more operation of each chain by phase, and of what a forward pass or a step does once."""
    rows = collections.defaultdict(list)
    with gzip.open(path, "rt") as file:
        for row in map(json.loads, file):
            for phase in ("forward", "backward", "step"):
                if phase in row:
                    rows[row["name"], phase].append(row[phase]["us"])
                    if phase != "backward":
                        rows[row["name"], "once"].append(row[phase]["fixed_us"])
    return {key: statistics.median(values) for key, values in rows.items()}


def scales(times, known):
    """What the anchors take here over what they cost, by phase."""
    ratios = collections.defaultdict(list)
    for (name, phase), parts in ANCHORS.items():
        ratios[phase].append(times[name, phase] / sum(known[part] * count for part, count in parts.items()))
    return {phase: statistics.median(of) for phase, of in ratios.items()}, ratios


def costs(path, known):
    times = medians(path)
    scale, _ = scales(times, known)
    result = {}
    for cost, (name, phase, others) in COSTS.items():
        value = times[name, phase] / scale[phase]
        result[cost] = max(0.0, value - sum(known[other] * count for other, count in others.items()))
    for cost, (name, without, phase) in DIFFERENCES.items():
        result[cost] = max(0.0, times[name, phase] - times[without, phase]) / scale[phase]
    result["per_parameter_accumulate"] = known["accumulate_grad_add"] - known["accumulate_grad"]  # two nodes that were fitted
    return result


def report(known):
    """Text of each cost as it is written, and how the second machine sees it."""
    fitted, other = costs(FITTED, known), costs(HELD_OUT, known)
    for path in (FITTED, HELD_OUT):
        scale, ratios = scales(medians(path), known)
        for phase, of in ratios.items():
            print(f"{path.name}, anchors {phase}: {', '.join(f'{r:.2f}' for r in sorted(of))}, hence {scale[phase]:.2f}")
    off = [abs(other[name] / fitted[name] - 1) for name in (*COSTS, *DIFFERENCES)]
    print(f"operations timed alone: {len(off)} costs; beside an H100 they differ by {100 * statistics.median(off):.0f} % at the median")
    for name in NAMES:
        print(f"  {name:32} {fitted[name]:8.2f} us; beside an H100 {other[name]:8.2f}")
    return {name: f"{fitted[name]:.3g}" for name in NAMES}
