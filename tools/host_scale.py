#!/usr/bin/env python3
"""Measures how fast this machine's processor runs PyTorch, against the host that hw/hosts/default.yaml describes.

    python3 host_scale.py > hw/hosts/mine.yaml   # then: ridgeline predict SCENARIO --set host=mine
    python3 host_scale.py --json                 # the raw figures

Takes about ten seconds, needs PyTorch and no GPU; where there is one, the step runs on it too, and its launches and the
thread of its backward pass make the scale: steps that wait for their host are then met better (8 % at the median
of 52 beside an H100, against 13 %). Run it in a process of its own, on the machine as it will be: a profiler that has
run leaves callbacks in its process (see below). Timed are:

- a training step (forward, backward, clipping, AdamW) of a transformer so small that its arithmetic costs next to
  nothing beside Python, the dispatcher and autograd: the scale of all costs;
- what that is made of, apart: a module's call (Python), a view (dispatcher), a node of a chain of views (autograd),
  an empty tensor (allocation) and, where there is a CUDA GPU, a launch call: how far each differs from the scale.

Neighbours on a shared machine change its speed within seconds, by up to two: parts are measured in many short rounds
over the whole time, and the mean counts, since a training step meets slow moments too. The spread says how much they
differed.
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
REFERENCE_PARTS_US = {"python": 0.75, "dispatcher": 1.06, "autograd": 2.86, "allocation": 0.77, "launch": 3.4}
LAYERS, HIDDEN, HEADS, TOKENS, SEQUENCES = 4, 16, 2, 4, 2


def make_step(torch, device):
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
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    x = torch.randn(SEQUENCES, TOKENS, HIDDEN, device=device)

    def step():
        loss = model(x).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def microseconds(step, wait, rounds, steps):
    for _ in range(3 * steps):
        step()
    times = []
    for _ in range(rounds):
        wait()
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        times.append((time.perf_counter() - begin) / steps * 1e6)
        wait()
    return {"median": statistics.median(times), "least": min(times), "most": max(times)}


def parts(torch, rounds):
    """Microseconds of one call of each kind: the mean and the quartiles over short rounds in turn."""
    class Nothing(torch.nn.Module):
        def forward(self, x):
            return x

    nothing, x = Nothing(), torch.zeros(16)
    leaf, ones = torch.zeros(16, requires_grad=True), torch.ones(16)

    def clock(f, n):
        begin = time.perf_counter()
        f(n)
        return (time.perf_counter() - begin) / n * 1e6

    def python(n):
        for _ in range(n):
            nothing(x)

    def dispatcher(n):
        with torch.no_grad():
            for _ in range(n):
                x.view(4, 4)

    def allocation(n):
        for _ in range(n):
            torch.empty(16)

    def autograd():
        y = leaf
        for _ in range(500):
            y = y.view(16)
        begin = time.perf_counter()
        y.backward(ones)
        leaf.grad = None
        return (time.perf_counter() - begin) / 500 * 1e6

    kinds = {"python": lambda: clock(python, 1000), "dispatcher": lambda: clock(dispatcher, 1000),
             "autograd": autograd, "allocation": lambda: clock(allocation, 1000)}
    if torch.cuda.is_available():
        on_device, on_host = torch.zeros(16, device="cuda"), torch.zeros(16)

        def add(tensor):
            def many(n):
                with torch.no_grad():
                    for _ in range(n):
                        tensor.add_(1)
            return many

        def launch():
            torch.cuda.synchronize()
            return clock(add(on_device), 200) - clock(add(on_host), 200)
        kinds["launch"] = launch
    for f in kinds.values():
        f()
    times = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, f in kinds.items():
            times[kind].append(f())
    return {kind: {"mean": statistics.mean(t), "quartiles": statistics.quantiles(t, n=4)} for kind, t in times.items()}


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
    parser.add_argument("--rounds", type=int, default=15, help="rounds of 20 steps (default 15)")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("host_scale.py needs PyTorch (the CPU build is enough): pip install torch")
    torch.set_num_threads(1)
    torch.autograd.set_multithreading_enabled(False)
    result = {"processor": processor(), "python": platform.python_version(), "torch": torch.__version__,
              "cpu_us": microseconds(make_step(torch, "cpu"), lambda: None, arguments.rounds, 20)}
    if torch.cuda.is_available():
        torch.autograd.set_multithreading_enabled(True)
        result["cuda_us"] = microseconds(make_step(torch, "cuda"), torch.cuda.synchronize, 2 * arguments.rounds, 1)
        result["gpu"] = torch.cuda.get_device_name()
    result["parts_us"] = parts(torch, 4 * arguments.rounds)
    result["scale"] = round(REFERENCE_SCALE * (result["cuda_us"]["median"] / REFERENCE_CUDA_US if "cuda_us" in result
                                               else result["cpu_us"]["median"] / REFERENCE_US), 2)
    relative = result["cpu_us"]["median"] / REFERENCE_US  # parts are loops on the processor, as this one is
    result["parts"] = {kind: round(part["mean"] / REFERENCE_PARTS_US[kind] / relative, 2)
                       for kind, part in result["parts_us"].items()}
    print(json.dumps(result) if arguments.json else host_file(result))


def host_file(result):
    """The text of a hosts/NAME.yaml."""
    on_gpu = "cuda_us" in result
    loop, reference = result["cuda_us" if on_gpu else "cpu_us"], REFERENCE_CUDA_US if on_gpu else REFERENCE_US
    spread = max(12, round(50 * (loop["most"] - loop["least"]) / loop["median"]))
    return "\n".join([
        f"# One step of the loop of tools/host_scale.py took {loop['median']:.0f} us here{' on the GPU' if on_gpu else ''}, "
        f"{reference} us at a scale of {REFERENCE_SCALE}.",
        f"title: \"{result['processor']}\"",
        "base: default",
        f"scale: {{value: {result['scale']}, source: \"tools/host_scale.py, PyTorch {result['torch']}, "
        f"Python {result['python']}; good to a fifth\"}}",
        f"spread: {{value: {spread} %, source: \"from round to round of the same, at least the default's\"}}",
        "parts:"] + [
        f"  {kind}: {{value: {value}, source: \"the same, apart: {result['parts_us'][kind]['mean']:.2f} us a call\"}}"
        for kind, value in result["parts"].items()])


if __name__ == "__main__":
    main()
