#!/usr/bin/env python3
"""Measures how fast this machine's processor runs PyTorch, against the host that hw/hosts/default.yaml describes.

    python3 host_scale.py > hw/hosts/mine.yaml   # then: ridgeline predict SCENARIO --set host=mine
    python3 host_scale.py --json                 # the raw figures

Takes about ten seconds and needs PyTorch. Without a GPU the loops run on the processor alone; with one they run on it
too, which makes the scale of host-bound training steps good to 9 % at the median and to 22 % nine times in ten. Run it in
a process of its own, on the machine as it will be: a profiler that has run leaves callbacks in its process. Loops are:

- a training step (forward, backward, clipping, AdamW) of a transformer so small that its arithmetic costs next to
  nothing beside Python, the dispatcher and autograd: `scale`;
- the forward pass of the same network without gradients, on the GPU: `parts.inference`, how much slower than the scale
  evaluation and generation are. They run on one thread, and the backward pass on another, whose core may be in another
  state;
- a module's call (Python), a view (dispatcher), a node of a chain of views (autograd), an empty tensor (allocation) and a
  launch call: `parts_us` of --json. The file leaves them out: beside one kind of processor they moved together, and steps
  were met no better with them (measurements/h200/host/loops.jsonl.gz).

Neighbours on a shared machine change its speed within seconds, by up to two, and a loop that runs before such a change is
not to be compared with one that runs after it. Therefore all loops take turns in short rounds over the whole time, parts
are compared within a round, and the scale is a mean over all rounds, since a training step meets slow moments too.
"""
import argparse
import json
import platform
import statistics
import sys
import time

# Means in microseconds on hosts of the kind that hw/hosts/h200-virtual-machine.yaml describes (beside an NVIDIA H200,
# PyTorch 2.11, 16 virtual cores of an Intel Xeon, family 6 model 207). The loop: 3,805 and 3,677 in two runs; on other
# machines 3,630 to 4,250 beside an H200, 6,898 and 7,546 beside an H100. Costs were fitted on passes of small networks
# with the loop run beside each, at this scale for 3,740 us; whole steps of the first machine ask for 1.02, those beside
# the H100 for 1.98 where the loop says 2.07 and 2.26. The parts: medians of ten rounds beside one H200 on which the loop
# took 3,860, over 3,860 / 3,740.
REFERENCE_US = 3740
REFERENCE_SCALE = 1.12
# The same step on the GPU, each after the last one's kernels have ended: at the scale above, by 155 steps of networks of
# ordinary sizes beside two H100, each between two of these loops (measurements/h100/host_bound_steps.jsonl.gz); the two
# machines say 5,530 and 5,516.
REFERENCE_CUDA_US = 5517
# Its forward pass without gradients on the GPU: at the scale above, by fourteen calls of generate() of seven networks
# between two of these loops (measurements/h200/host/loops.jsonl.gz, half of them within 5 %).
REFERENCE_FORWARD_US = 1477
REFERENCE_PARTS_US = {"python": 0.75, "dispatcher": 1.06, "autograd": 2.86, "allocation": 0.77, "launch": 3.4}
LEAST_SPREAD = 25  # percent; nine in ten of 57 host-bound steps beside an H100 lie within it
LAYERS, HIDDEN, HEADS, TOKENS, SEQUENCES = 4, 16, 2, 4, 2


def make_network(torch, device):
    """The network and its input."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.out = (nn.Linear(HIDDEN, HIDDEN) for _ in range(4))
            self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)
            self.first, self.second = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)

        def forward(self, x):
            rows, tokens, _ = x.shape
            heads = [f(x).view(rows, tokens, HEADS, -1).transpose(1, 2) for f in (self.query, self.key, self.value)]
            scores = torch.matmul(heads[0], heads[1].transpose(2, 3)) * 0.25
            y = torch.matmul(torch.softmax(scores, -1), heads[2])
            x = self.first(x + self.out(y.transpose(1, 2).reshape(rows, tokens, HIDDEN)))
            return self.second(x + self.down(nn.functional.gelu(self.up(x))))

    torch.manual_seed(0)
    model = nn.Sequential(*(Block() for _ in range(LAYERS))).to(device)
    x = torch.randn(SEQUENCES, TOKENS, HIDDEN, device=device)
    return model, x


def make_step(torch, device, network=None):
    nn = torch.nn
    model, x = network or make_network(torch, device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)

    def step():
        loss = model(x).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def make_forward(torch, network):
    model, x = network

    def forward():
        with torch.no_grad():
            model(x)

    return forward


def make_parts(torch):
    """For each kind a function that returns the microseconds of one call."""
    class Nothing(torch.nn.Module):
        def forward(self, x):
            return x

    nothing, x = Nothing(), torch.zeros(16)
    leaf, ones = torch.zeros(16, requires_grad=True), torch.ones(16)

    def clock(many, n):
        begin = time.perf_counter()
        with torch.no_grad():
            many(n)
        return (time.perf_counter() - begin) / n * 1e6

    def python(n):
        for _ in range(n):
            nothing(x)

    def dispatcher(n):
        for _ in range(n):
            x.view(4, 4)

    def allocation(n):
        for _ in range(n):
            torch.empty(16)

    def add(tensor):
        def many(n):
            for _ in range(n):
                tensor.add_(1)
        return many

    def autograd():
        y = leaf
        for _ in range(300):
            y = y.view(16)
        begin = time.perf_counter()
        y.backward(ones)
        leaf.grad = None
        return (time.perf_counter() - begin) / 300 * 1e6

    kinds = {"python": lambda: clock(python, 500), "dispatcher": lambda: clock(dispatcher, 500), "autograd": autograd,
             "allocation": lambda: clock(allocation, 500)}
    if torch.cuda.is_available():
        on_device, on_host = torch.zeros(16, device="cuda"), torch.zeros(16)

        def launch():
            torch.cuda.synchronize()
            return clock(add(on_device), 200) - clock(add(on_host), 200)
        kinds["launch"] = launch
    return kinds


def measure(torch, seconds):
    """Microseconds of each loop in each round; all loops take turns."""
    on_gpu = torch.cuda.is_available()
    networks = {device: make_network(torch, device) for device in (("cpu", "cuda") if on_gpu else ("cpu",))}
    steps = {device: make_step(torch, device, network) for device, network in networks.items()}
    loops, parts = {}, make_parts(torch)

    def one_thread(f):
        torch.autograd.set_multithreading_enabled(False)
        f()
        torch.autograd.set_multithreading_enabled(True)

    def clock(f, times):
        if on_gpu:
            torch.cuda.synchronize()
        microseconds = []
        for _ in range(times):
            begin = time.perf_counter()
            f()
            microseconds.append(1e6 * (time.perf_counter() - begin))
            if on_gpu:
                torch.cuda.synchronize()
        return statistics.mean(microseconds)

    kinds = {"cpu_us": lambda: clock(lambda: one_thread(steps["cpu"]), 2)}
    if on_gpu:
        kinds["cuda_us"] = lambda: clock(steps["cuda"], 3)
        forward = make_forward(torch, networks["cuda"])
        kinds["forward_us"] = lambda: clock(forward, 3)
    kinds.update(parts)
    for _ in range(5):
        for f in kinds.values():
            f()
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds or len(loops.get("cpu_us", ())) < 10:
        for kind, f in kinds.items():
            loops.setdefault(kind, []).append(f())
    return loops


def middle_mean(times):
    """The mean of all but the least and the largest twentieth: interrupts are none of the host's speed."""
    cut = len(times) // 20
    return statistics.mean(sorted(times)[cut:len(times) - cut])


def summary(loops):
    """What the rounds say: means, quartiles, the scale and how much slower than it each part is."""
    result = {kind: {"mean": middle_mean(times), "quartiles": statistics.quantiles(times, n=4)}
              for kind, times in loops.items() if kind.endswith("_us")}
    loop, reference = ("cuda_us", REFERENCE_CUDA_US) if "cuda_us" in loops else ("cpu_us", REFERENCE_US)
    result["loop"], result["reference_us"] = loop, reference
    result["scale"] = round(REFERENCE_SCALE * result[loop]["mean"] / reference, 2)
    low, _, high = result[loop]["quartiles"]
    result["spread"] = max(LEAST_SPREAD, round(100 * (high - low) / (high + low)))
    if "forward_us" in loops:
        result["inference"] = round(REFERENCE_SCALE * result["forward_us"]["mean"] / REFERENCE_FORWARD_US / result["scale"], 2)
    # A part against the step on the processor of the same round.
    result["parts_us"] = {kind: statistics.median(loops[kind]) for kind in REFERENCE_PARTS_US if kind in loops}
    result["parts"] = {kind: round(statistics.median(part / step for part, step in zip(loops[kind], loops["cpu_us"]))
                                   * REFERENCE_US / REFERENCE_PARTS_US[kind], 2) for kind in result["parts_us"]}
    return result


def processor():
    try:
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="raw figures")
    parser.add_argument("--seconds", type=float, default=8, help="time of all rounds together (default 8)")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("host_scale.py needs PyTorch (the CPU build is enough): pip install torch")
    torch.set_num_threads(1)
    result = {"processor": processor(), "python": platform.python_version(), "torch": torch.__version__,
              **summary(measure(torch, arguments.seconds))}
    if torch.cuda.is_available():
        result["gpu"] = torch.cuda.get_device_name()
    print(json.dumps(result) if arguments.json else host_file(result))


def host_file(result):
    """The text of a hosts/NAME.yaml."""
    source = f"tools/host_scale.py, PyTorch {result['torch']}, Python {result['python']}"
    lines = [
        f"# One step of the loop of tools/host_scale.py took {result[result['loop']]['mean']:.0f} us here"
        f"{' on the GPU' if result['loop'] == 'cuda_us' else ''}, {result['reference_us']} us at a scale of {REFERENCE_SCALE}.",
        f"title: \"{result['processor']}\"",
        "base: default",
        f"scale: {{value: {result['scale']}, source: \"{source}\"}}",
        f"spread: {{value: {result['spread']} %, source: \"nine in ten steps between two such measurements lie within "
        f"{LEAST_SPREAD} %; more where its rounds differ more\"}}"]
    if "inference" in result:
        lines += ["parts:", f"  inference: {{value: {result['inference']}, source: \"the same: a forward pass without gradients "
                  f"took {result['forward_us']['mean']:.0f} us\"}}"]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
