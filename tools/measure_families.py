#!/usr/bin/env python3
"""Trains networks of Transformers for some steps, counts parameters of others on the meta device, and saves each as a row
of measurements/networks as it goes.

    python3 measure_families.py --networks LIST.json --output rows.jsonl [--count CONFIGS.json --counts counts.jsonl]

LIST.json: [{"name", "class", "kwargs" of its configuration, "model_type", "B", "T", "T2", "precision", "optimizer",
"clip", "heldout", "checkpoint", "attention"}], to which a row may add what is kept beside it ("predicted_before"); CONFIGS.json: [{"architectures", "model_type", ...}]. A model is built on
the device, moved to the host and back, so that its parameters lie as those of a loaded one. Times are medians of
`steps`; the GPU's part is of one profiled step; before and after stand the loops of host_scale.py. Needs PyTorch with
CUDA and Transformers."""
import argparse
import gc
import json
import os
import statistics
import time

os.environ["TEARDOWN_CUPTI"] = "1"  # a profile otherwise slows the launches of all later steps of this process
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers
from torch.profiler import ProfilerActivity, profile

import host_scale
from measure_host_bound_steps import microseconds

OMITTED = ("transformers_version", "_name_or_path", "label2id", "torch_dtype", "dtype", "use_cache")


def configuration(row):
    return transformers.AutoConfig.for_model(row["model_type"], **row["kwargs"])


def as_written(config, name):
    """What a config.json says, without names and token ids."""
    said = {k: v for k, v in config.to_dict().items()
            if k not in OMITTED and not k.endswith("_token_id") and v is not None and not k.startswith("_")}
    if "id2label" in said:
        said["id2label"] = {k: "" for k in said["id2label"]}
    return dict(architectures=[name], **said)


def count(config, name):
    with torch.device("meta"):
        model = getattr(transformers, name)(config)
    return sum(p.numel() for p in model.parameters())


def inputs_of(row, config):
    batch, kind = row["B"], row["class"]
    if "ForImage" in kind:
        tower = getattr(config, "vision_config", config)
        side, channels = tower.image_size, tower.num_channels
        x = torch.randn(batch, channels, side, side, device="cuda")
        if row["precision"] == "bf16":
            x = x.bfloat16()
        return dict(pixel_values=x, labels=torch.randint(config.num_labels, (batch,), device="cuda"))
    rows = torch.randint(10, config.vocab_size, (batch, row["T"]), device="cuda")
    if "T2" in row:
        return dict(input_ids=rows, labels=torch.randint(10, config.vocab_size, (batch, row["T2"]), device="cuda"))
    if "ForSequence" in kind:
        return dict(input_ids=rows, labels=torch.randint(2, (batch,), device="cuda"))
    if "ForToken" in kind:
        return dict(input_ids=rows, labels=torch.randint(config.num_labels, rows.shape, device="cuda"))
    if "ForQuestion" in kind:
        ends = [torch.randint(row["T"], (batch,), device="cuda") for _ in range(2)]
        return dict(input_ids=rows, start_positions=ends[0], end_positions=ends[1])
    return dict(input_ids=rows, labels=rows)


def built(row, config):
    torch.manual_seed(0)
    config._attn_implementation = row.get("attention", "sdpa")
    try:
        with torch.device("cuda"):
            model = getattr(transformers, row["class"])(config)
    except (ValueError, NotImplementedError):
        config._attn_implementation = "eager"
        with torch.device("cuda"):
            model = getattr(transformers, row["class"])(config)
    if row["precision"] == "bf16":
        model = model.bfloat16()
    model = model.cpu()
    gc.collect()
    torch.cuda.empty_cache()
    model = model.cuda().train()
    if row.get("checkpoint"):
        model.gradient_checkpointing_enable(dict(use_reentrant=False))
    return model


def measured(row, loops, steps):
    config = configuration(row)
    config.use_cache = False
    out = {k: v for k, v in row.items() if k not in ("kwargs", "model_type", "attention")}
    out.update(config=as_written(config, row["class"]), parameters=count(config, row["class"]))
    torch.cuda.empty_cache()
    base = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    model, inputs = built(row, config), inputs_of(row, config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **{row["optimizer"].split()[1]: True})
    parameters = list(model.parameters())

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=row["precision"] == "amp-bf16"):
            loss = model(**inputs).loss
        loss.backward()
        if row["clip"]:
            torch.nn.utils.clip_grad_norm_(parameters, row["clip"])
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def speed():
        return {"cpu_us": microseconds(loops["cpu"], "cpu", 15), "cuda_us": microseconds(loops["cuda"], "cuda", 15)}

    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - base[0], torch.cuda.max_memory_reserved() - base[1]
    out["peak"] = dict(allocated=peak[0], reserved=peak[1], base=base)
    before, times, means = speed(), [], []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - begin))
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(4):
            step()
        torch.cuda.synchronize()
        means.append(round(1e3 * (time.perf_counter() - begin) / 4, 3))
    out.update(step_ms_median=round(statistics.median(times), 3), step_ms=means, before=before, after=speed())
    with profile(activities=[ProfilerActivity.CUDA]) as run:
        step()
        torch.cuda.synchronize()
    kernels = [e for e in run.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    out.update(gpu_busy_ms=round(sum(e.device_time_total for e in kernels) / 1e3, 4), kernels=len(kernels),
               attn=config._attn_implementation, experts=getattr(config, "_experts_implementation", None),
               device=torch.cuda.get_device_name())
    groups = {}
    for e in kernels:
        at = groups.setdefault(e.name[:110], [0, 0.0])
        at[0], at[1] = at[0] + 1, at[1] + e.device_time_total / 1e3
    return out, sorted(([n, *v] for n, v in groups.items()), key=lambda v: -v[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks")
    parser.add_argument("--output")
    parser.add_argument("--kernels", help="where the kernels of each step are saved, by name")
    parser.add_argument("--count")
    parser.add_argument("--counts")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=300)
    arguments = parser.parse_args()
    torch.set_num_threads(4)
    begin = time.time()

    def save(path, row):
        with open(path, "a") as file:
            file.write(json.dumps(row, default=str) + "\n")

    for said in json.load(open(arguments.count)) if arguments.count else []:
        name = said["architectures"][0]
        try:
            config = transformers.AutoConfig.for_model(said["model_type"], **{k: v for k, v in said.items() if k not in ("model_type", "architectures")})
            save(arguments.counts, {"name": said["model_type"], "class": name, "config": as_written(config, name), "parameters": count(config, name)})
        except Exception as error:
            save(arguments.counts, {"name": said["model_type"], "class": name, "error": str(error)[-300:]})
    if not arguments.networks:
        return
    loops = {device: host_scale.make_step(torch, device) for device in ("cpu", "cuda")}
    for row in json.load(open(arguments.networks)):
        if time.time() - begin > arguments.seconds:
            return
        try:
            out, kernels = measured(row, loops, arguments.steps)
            save(arguments.output, out)
            if arguments.kernels:
                save(arguments.kernels, dict(name=row["name"], kernels=kernels))
            print(row["name"], out["step_ms_median"], out["gpu_busy_ms"], out["peak"], round(time.time() - begin), flush=True)
        except Exception as error:
            save(arguments.output, dict(name=row["name"], error=repr(error)[-500:]))
            print(row["name"], repr(error)[-300:], flush=True)
        gc.collect()
        torch._C._cuda_clearCublasWorkspaces()  # else the next network's peak lacks what its products work in
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
