#!/usr/bin/env python3
"""Measures how fast this machine's processor runs PyTorch's Python and dispatcher, against the host of the H200.

    python3 host_scale.py                # prints the scale and a hosts/NAME.yaml for it
    python3 host_scale.py --json         # the raw figures

Needs PyTorch, no GPU: the loop is one training step (forward, backward, clipping, AdamW) of a transformer block so small
that its arithmetic costs next to nothing beside Python, the dispatcher and autograd. It runs on one thread; the
median of many rounds is taken. With a CUDA GPU it also times the same step there without waiting for the GPU.
"""
import argparse
import json
import platform
import statistics
import sys
import time

# Microseconds of one step of the loop on a host of the kind that hw/hosts/default.yaml describes with a scale of 1.12
# (beside an NVIDIA H200, PyTorch 2.11, 16 virtual cores of an Intel Xeon, family 6 model 207): 3,805 and 3,677 in two runs.
# Checked on one other machine: beside an H100 the loop took 6,898 and 7,546, a scale of 2.07 and 2.26; the host-bound
# training steps of such a machine ask for 2.23 (hw/hosts/h100-virtual-machine.yaml). Two machines of one kind differ by a fifth.
REFERENCE_US = 3740
REFERENCE_SCALE = 1.12
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
        result["cuda_us"] = microseconds(make_step(torch, "cuda"), torch.cuda.synchronize, arguments.rounds, 1)
        result["gpu"] = torch.cuda.get_device_name()
    result["scale"] = round(REFERENCE_SCALE * result["cpu_us"]["median"] / REFERENCE_US, 2)
    print(json.dumps(result) if arguments.json else host_file(result))


def host_file(result):
    """The text of a hosts/NAME.yaml."""
    cpu = result["cpu_us"]
    spread = max(12, round(50 * (cpu["most"] - cpu["least"]) / cpu["median"]))
    return "\n".join([
        f"# One step of the loop of tools/host_scale.py took {cpu['median']:.0f} us here, {REFERENCE_US} us beside an H200.",
        f"title: \"{result['processor']}\"",
        "base: default",
        f"scale: {{value: {result['scale']}, source: \"tools/host_scale.py, PyTorch {result['torch']}, "
        f"Python {result['python']}; good to a fifth\"}}",
        f"spread: {{value: {spread} %, source: \"from round to round of the same, at least the default's\"}}"])


if __name__ == "__main__":
    main()
