#!/usr/bin/env python3
"""Times training steps of networks of ordinary sizes, most of which wait for their host, between two runs of the loops
of host_scale.py.

    python3 measure_host_bound_steps.py --output host_bound_steps.jsonl     # about five minutes

A row says what ran, `step_ms` (four means of six steps without pauses), the GPU's busy time, and before and after it the
loop on the processor (`cpu_us`) and on the GPU (`cuda_us`), medians of 30. Needs PyTorch with CUDA and Transformers."""
import argparse
import gc
import json
import os
import random
import statistics
import time

os.environ["TEARDOWN_CUPTI"] = "1"  # a profile otherwise slows the launches of all later steps of this process

import torch
from torch.profiler import ProfilerActivity, profile

import host_scale
import measure_host_steps as small


def draw(rng, index):
    heads = rng.choice([8, 12, 16])
    return dict(layers=rng.choice([3, 4, 6, 8, 12]), heads=heads, hidden=heads * 64,
                precision=["amp-bf16", "fp32", "bf16"][index % 3], optimizer=rng.choice(["fused", "foreach"]),
                clip=rng.choice([0.0, 1.0, 1.0]), attention="eager" if rng.random() < 0.25 else "sdpa",
                batch=rng.choice([1, 2, 4, 8]), tokens=rng.choice([64, 128, 256]))


def microseconds(step, device, rounds=30):
    """The median of a loop's steps; each begins when the GPU has nothing to do."""
    torch.autograd.set_multithreading_enabled(device == "cuda")
    times = []
    for _ in range(rounds + 5):
        begin = time.perf_counter()
        step()
        times.append(1e6 * (time.perf_counter() - begin))
        torch.cuda.synchronize()
    torch.autograd.set_multithreading_enabled(True)
    return round(statistics.median(times[5:]), 1)


def timed(model, inputs, d, loops):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **{d["optimizer"]: True})
    parameters = list(model.parameters())

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=d["precision"] == "amp-bf16"):
            loss = model(**inputs).loss
        loss.backward()
        if d["clip"]:
            torch.nn.utils.clip_grad_norm_(parameters, d["clip"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def speed():
        return {"cpu_us": microseconds(loops["cpu"], "cpu"), "cuda_us": microseconds(loops["cuda"], "cuda")}

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    before, means = speed(), []
    for _ in range(4):
        step()
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(6):
            step()
        torch.cuda.synchronize()
        means.append(round(1e3 * (time.perf_counter() - begin) / 6, 3))
    after = speed()
    with profile(activities=[ProfilerActivity.CUDA]) as run:
        step()
        torch.cuda.synchronize()
    kernels = [e for e in run.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    return dict(step_ms=means, gpu_ms=round(sum(e.device_time_total for e in kernels) / 1e3, 4), kernels=len(kernels),
                before=before, after=after)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng, begin = random.Random(arguments.seed), time.time()
    loops = {device: host_scale.make_step(torch, device) for device in ("cpu", "cuda")}
    classes = 3 * (small.CAUSAL + small.ENCODERS + small.OTHERS)
    rng.shuffle(classes)
    with open(arguments.output, "a") as file:
        for number, row in enumerate(classes):
            if time.time() - begin > arguments.seconds:
                return
            d = draw(rng, number)
            if "ForImage" in row[0]:
                d["tokens"] = 17  # patches of 16 x 16, and one
            try:
                model, config, inputs = small.make(row, d)
                out = dict(name=f"{config.model_type}-{number}", **{"class": row[0]}, **d, **timed(model, inputs, d, loops),
                           config=config.to_diff_dict())
                del model, inputs
            except Exception as error:
                out = dict(name=row[0], error=str(error)[:300], **d)
            file.write(json.dumps(out, default=str) + "\n")
            file.flush()
            gc.collect()


if __name__ == "__main__":
    main()
