#!/usr/bin/env python3
"""Times what a training step costs the host, by phase, for networks so small that the GPU always waits.

    python3 measure_host_steps.py --output host_steps.jsonl     # about three minutes

Each row says which network of Transformers ran (its class and configuration), how, and the host's milliseconds of
forward pass, backward pass, clipping, optimizer and zeroing. Neighbours on a shared machine change its speed within
milliseconds: before each step the loop of host_scale.py runs once, and medians are taken over the steps between two
runs of it that took at most a tenth longer than the quickest runs of this kind (`quiet` says how many). `scale` is what
those say, as host_scale.py has it.
`gpu_ms` is the GPU's busy time of a step: rows where it comes near the host's are no use.

Needs PyTorch with CUDA and Transformers."""
import argparse
import gc
import json
import os
import random
import statistics
import time

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TEARDOWN_CUPTI"] = "1"  # a profile otherwise slows the launches of all later steps of this process
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import torch
import transformers

import host_scale

CAUSAL = [  # class, configuration, what is not drawn
    ("GPT2LMHeadModel", "GPT2Config", lambda d: dict(n_embd=d["hidden"], n_layer=d["layers"], n_head=d["heads"])),
    ("OPTForCausalLM", "OPTConfig", lambda d: dict(common(d), ffn_dim=4 * d["hidden"], word_embed_proj_dim=d["hidden"])),
    ("GPTNeoXForCausalLM", "GPTNeoXConfig", lambda d: dict(common(d), intermediate_size=4 * d["hidden"])),
    ("GPTJForCausalLM", "GPTJConfig", lambda d: dict(n_embd=d["hidden"], n_layer=d["layers"], n_head=d["heads"], rotary_dim=16)),
    ("GPTNeoForCausalLM", "GPTNeoConfig", lambda d: dict(hidden_size=d["hidden"], num_layers=d["layers"], num_heads=d["heads"],
                                                        attention_types=[[["global", "local"], d["layers"] // 2]])),
    ("BloomForCausalLM", "BloomConfig", lambda d: dict(hidden_size=d["hidden"], n_layer=d["layers"], n_head=d["heads"])),
    ("FalconForCausalLM", "FalconConfig", lambda d: common(d)),
    ("LlamaForCausalLM", "LlamaConfig", lambda d: grouped(d)),
    ("MistralForCausalLM", "MistralConfig", lambda d: grouped(d)),
    ("MixtralForCausalLM", "MixtralConfig", lambda d: dict(grouped(d), num_local_experts=4, sliding_window=None)),
    ("Qwen2ForCausalLM", "Qwen2Config", lambda d: dict(grouped(d), tie_word_embeddings=True)),
    ("Qwen3ForCausalLM", "Qwen3Config", lambda d: dict(grouped(d), head_dim=d["hidden"] // d["heads"], tie_word_embeddings=True)),
    ("GemmaForCausalLM", "GemmaConfig", lambda d: dict(grouped(d), head_dim=d["hidden"] // d["heads"])),
    ("Gemma2ForCausalLM", "Gemma2Config", lambda d: dict(grouped(d), head_dim=d["hidden"] // d["heads"])),
    ("PhiForCausalLM", "PhiConfig", lambda d: dict(common(d), intermediate_size=4 * d["hidden"])),
    ("Phi3ForCausalLM", "Phi3Config", lambda d: grouped(d)),
    ("OlmoForCausalLM", "OlmoConfig", lambda d: dict(common(d), intermediate_size=4 * d["hidden"])),
    ("Olmo2ForCausalLM", "Olmo2Config", lambda d: dict(common(d), intermediate_size=4 * d["hidden"])),
    ("Starcoder2ForCausalLM", "Starcoder2Config", lambda d: dict(grouped(d), intermediate_size=4 * d["hidden"], sliding_window=None)),
]
ENCODERS = [
    ("BertForMaskedLM", "BertConfig", lambda d: dict(common(d), intermediate_size=4 * d["hidden"])),
    ("BertForQuestionAnswering", "BertConfig", lambda d: dict(common(d), intermediate_size=4 * d["hidden"])),
    ("RobertaForMaskedLM", "RobertaConfig", lambda d: dict(common(d), intermediate_size=4 * d["hidden"], max_position_embeddings=514, type_vocab_size=1)),
    ("DistilBertForMaskedLM", "DistilBertConfig", lambda d: dict(dim=d["hidden"], n_layers=d["layers"], n_heads=d["heads"], hidden_dim=4 * d["hidden"])),
    ("ElectraForMaskedLM", "ElectraConfig", lambda d: dict(common(d), embedding_size=d["hidden"], intermediate_size=4 * d["hidden"])),
    ("AlbertForMaskedLM", "AlbertConfig", lambda d: dict(common(d), intermediate_size=4 * d["hidden"])),
]
OTHERS = [
    ("T5ForConditionalGeneration", "T5Config", lambda d: dict(d_model=d["hidden"], d_kv=d["hidden"] // d["heads"], d_ff=4 * d["hidden"], num_layers=d["layers"], num_heads=d["heads"], decoder_start_token_id=0)),
    ("BartForConditionalGeneration", "BartConfig", lambda d: dict(d_model=d["hidden"], encoder_layers=d["layers"], decoder_layers=d["layers"], encoder_attention_heads=d["heads"],
                                                                  decoder_attention_heads=d["heads"], encoder_ffn_dim=4 * d["hidden"], decoder_ffn_dim=4 * d["hidden"])),
    ("ViTForImageClassification", "ViTConfig", lambda d: dict(common(d), intermediate_size=4 * d["hidden"], num_labels=100, image_size=64)),
]


def common(d):
    return dict(hidden_size=d["hidden"], num_hidden_layers=d["layers"], num_attention_heads=d["heads"])


def grouped(d):
    return dict(common(d), num_key_value_heads=d["heads"] // 2, intermediate_size=3 * d["hidden"])


def draw(rng, index):
    heads = rng.choice([2, 4])
    return dict(layers=rng.choice([2, 4, 6, 8]), heads=heads, hidden=heads * rng.choice([32, 64]),
                precision=["amp-bf16", "fp32", "bf16"][index % 3], optimizer=rng.choice(["fused", "foreach"]),
                clip=rng.choice([0.0, 1.0, 1.0]), attention="eager" if rng.random() < 0.25 else "sdpa",
                batch=rng.choice([1, 2, 4]), tokens=rng.choice([16, 32]))


def make(row, d):
    cls, config_name, arguments = row
    values = arguments(d)
    if "ForImage" not in cls:
        values.update(vocab_size=512, pad_token_id=0)
    config = getattr(transformers, config_name)(**values)
    config.use_cache = False
    fused = getattr(getattr(transformers, cls), "_supports_sdpa", True)
    d["attention"] = config._attn_implementation = d["attention"] if fused else "eager"
    torch.manual_seed(0)
    model = getattr(transformers, cls)(config).train().cuda()
    if d["precision"] == "bf16":
        model = model.to(torch.bfloat16)
    batch, tokens = d["batch"], d["tokens"]
    ids = torch.randint(3, 500, (batch, tokens), device="cuda")
    if "ForImage" in cls:
        kind = torch.bfloat16 if d["precision"] == "bf16" else torch.float32
        inputs = dict(pixel_values=torch.randn(batch, 3, 64, 64, device="cuda", dtype=kind),
                      labels=torch.randint(0, 100, (batch,), device="cuda"))
    elif "Question" in cls:
        place = torch.randint(0, tokens, (batch,), device="cuda")
        inputs = dict(input_ids=ids, start_positions=place, end_positions=place)
    else:
        inputs = dict(input_ids=ids, labels=ids)
    return model, config, inputs


class Reference:
    """The loop of host_scale.py, one step at a time."""

    def __init__(self):
        self.step = host_scale.make_step(torch, "cpu")
        self.seen = [self() for _ in range(200)][50:]

    def __call__(self):
        torch.autograd.set_multithreading_enabled(False)
        begin = time.perf_counter()
        self.step()
        seconds = time.perf_counter() - begin
        torch.autograd.set_multithreading_enabled(True)
        return seconds

    def quiet(self):
        """Seconds that no quiet run of it exceeds."""
        return 1.1 * statistics.quantiles(self.seen, n=20)[0]


def timed(model, inputs, d, steps, reference):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **{d["optimizer"]: True})
    parameters = list(model.parameters())
    autocast = d["precision"] == "amp-bf16"
    clock = time.perf_counter

    def step():
        marks = [clock()]
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            loss = model(**inputs).loss
        marks.append(clock())
        loss.backward()
        del loss
        marks.append(clock())
        if d["clip"]:
            torch.nn.utils.clip_grad_norm_(parameters, d["clip"])
        marks.append(clock())
        optimizer.step()
        marks.append(clock())
        optimizer.zero_grad(set_to_none=True)
        marks.append(clock())
        return [1e3 * (b - a) for a, b in zip(marks, marks[1:])]

    for _ in range(6):
        step()
    torch.cuda.synchronize()
    rows, speed = [], [reference()]
    for _ in range(steps):
        rows.append(step())
        speed.append(reference())
    torch.cuda.synchronize()
    reference.seen += speed
    most = reference.quiet()
    chosen = [i for i in range(steps) if max(speed[i], speed[i + 1]) <= most]
    quiet = len(chosen)
    if quiet < 5:  # a busy time: the quickest of its steps
        chosen = sorted(range(steps), key=lambda i: speed[i] + speed[i + 1])[:5]
    names = ("forward", "backward", "clipping", "optimizer", "zero_grad")
    parts = {name: round(statistics.median(rows[j][i] for j in chosen), 4) for i, name in enumerate(names)}
    begin = clock()
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    wall = clock() - begin
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as run:
        step()
        torch.cuda.synchronize()
    device = [e for e in run.events() if e.device_type == torch.autograd.DeviceType.CUDA]
    now = statistics.median(speed[i] + speed[i + 1] for i in chosen) / 2
    return dict(host_ms=parts, quiet=quiet, steps=steps,
                scale=round(1e6 * now / host_scale.REFERENCE_US * host_scale.REFERENCE_SCALE, 4),
                step_ms=round(1e3 * wall / 5, 4), gpu_ms=round(sum(e.device_time_total for e in device) / 1e3, 4),
                kernels=len(device))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--rounds", type=int, default=3, help="how often each class is drawn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rng, begin = random.Random(arguments.seed), time.time()
    reference = Reference()
    with open(arguments.output, "a") as file:
        for number in range(arguments.rounds):
            for index, row in enumerate(CAUSAL + ENCODERS + OTHERS):
                d = draw(rng, index + number)
                if "ForImage" in row[0]:
                    d["tokens"] = 17  # patches of 16 x 16, and one
                if time.time() - begin > arguments.seconds:
                    return
                try:
                    model, config, inputs = make(row, d)
                    result = timed(model, inputs, d, arguments.steps, reference)
                    out = dict(name=f"{config.model_type}-{number}", **{"class": row[0]}, config=config.to_diff_dict(),
                               model_type=config.model_type, **d, **result)
                    out["parameter_tensors"] = len(list(model.parameters()))
                    del model, inputs
                except Exception as error:
                    out = dict(name=row[0], error=str(error)[:300], **d)
                file.write(json.dumps(out, default=str) + "\n")
                file.flush()
                gc.collect()


if __name__ == "__main__":
    main()
