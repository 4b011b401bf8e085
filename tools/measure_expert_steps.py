"""Times training steps of networks whose experts are spread over the GPUs of one machine.

    torchrun --nproc-per-node 2 tools/measure_expert_steps.py OUT [SECONDS]

The networks are Transformers' with their layers of experts exchanged for the one below, which sends each token to the
rank of its expert (torch.distributed.all_to_all_single) and multiplies with torch.nn.functional.grouped_mm, or with
bmm over a fixed number of places an expert. Writes a JSON line a configuration: of those that are held out into a file
of their own, without a word about them on the terminal.
"""
import contextlib
import gc
import inspect
import json
import os
import statistics
import sys
import time
import traceback

os.environ.setdefault("TEARDOWN_CUPTI", "1")  # a profile otherwise slows the launches of all later steps of this process

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, received, sent, group):
        ctx.back, ctx.group = (sent, received), group
        out = x.new_empty(x.shape[0] if received is None else sum(received), x.shape[1])
        dist.all_to_all_single(out, x.contiguous(), received, sent, group=group)
        return out

    @staticmethod
    def backward(ctx, gradient):
        received, sent = ctx.back
        out = gradient.new_empty(gradient.shape[0] if received is None else sum(received), gradient.shape[1])
        dist.all_to_all_single(out, gradient.contiguous(), received, sent, group=ctx.group)
        return out, None, None, None


class Experts(nn.Module):
    """Experts of one layer over the ranks of a group: this rank's weights are [experts / ranks, out, in]."""

    def __init__(self, hidden, inner, experts, kept, capacity, group):
        super().__init__()
        self.group, self.ranks = group, dist.get_world_size(group)
        self.experts, self.kept, self.capacity, self.own = experts, kept, capacity, experts // self.ranks
        self.router = nn.Linear(hidden, experts, bias=False)
        self.up = nn.Parameter(torch.empty(self.own, 2 * inner, hidden).normal_(std=0.02))
        self.down = nn.Parameter(torch.empty(self.own, hidden, inner).normal_(std=0.02))
        nn.init.normal_(self.router.weight, std=0.02)
        self.seen = None

    def weight(self, w):
        return w.to(torch.get_autocast_dtype("cuda")) if torch.is_autocast_enabled("cuda") else w

    def forward(self, x):
        rows = x.view(-1, x.shape[-1])
        scores = self.router(rows)
        probabilities = F.softmax(scores, dim=-1, dtype=torch.float)
        share, chosen = torch.topk(probabilities, self.kept, dim=-1)
        share = share / share.sum(-1, keepdim=True)
        chosen = chosen.view(-1)
        result = self.capped(rows, chosen) if self.capacity else self.dropless(rows, chosen)
        result = result.view(rows.shape[0], self.kept, -1) * share.to(result.dtype).unsqueeze(-1)
        return result.sum(1).view(x.shape)

    def dropless(self, rows, chosen):
        order = torch.argsort(chosen, stable=True)
        counts = torch.histc(chosen.int(), bins=self.experts, min=0, max=self.experts - 1)
        theirs = torch.empty_like(counts)
        dist.all_to_all_single(theirs, counts, group=self.group)
        sent, received = torch.stack((counts, theirs)).view(2, self.ranks, self.own).sum(-1).tolist()
        gathered = rows[order // self.kept]
        arrived = Exchange.apply(gathered, received, sent, self.group)
        expert = torch.arange(self.own, device=rows.device).repeat(self.ranks)
        expert = expert.repeat_interleave(theirs, output_size=sum(received))
        by_expert = torch.argsort(expert, stable=True)
        ends = theirs.view(self.ranks, self.own).sum(0).cumsum(0, dtype=torch.int32)
        both = F.grouped_mm(self.lowered(arrived[by_expert]), self.weight(self.up).transpose(-2, -1), offs=ends)
        gate, up = both.chunk(2, dim=-1)
        out = F.grouped_mm(F.silu(gate) * up, self.weight(self.down).transpose(-2, -1), offs=ends)
        returned = Exchange.apply(out[self.inverse(by_expert)], sent, received, self.group)
        self.seen = sum(received)
        return returned[self.inverse(order)]

    def lowered(self, x):
        return x.to(torch.get_autocast_dtype("cuda")) if torch.is_autocast_enabled("cuda") else x

    @staticmethod
    def inverse(order):
        result = torch.empty_like(order)
        result[order] = torch.arange(order.shape[0], device=order.device)
        return result

    def capped(self, rows, chosen):
        places = int(-(-chosen.shape[0] * self.capacity // self.experts))
        order = torch.argsort(chosen, stable=True)
        of = chosen[order]
        counts = torch.histc(chosen.int(), bins=self.experts, min=0, max=self.experts - 1)
        place = torch.arange(of.shape[0], device=of.device) - (counts.cumsum(0) - counts)[of]
        nowhere = self.experts * places
        slot = torch.where(place < places, of * places + place, nowhere)
        source = torch.full((nowhere + 1,), rows.shape[0], device=rows.device)
        source[slot] = order // self.kept
        sent = F.embedding(source[:-1], F.pad(rows, (0, 0, 0, 1)), padding_idx=rows.shape[0])
        arrived = Exchange.apply(sent, None, None, self.group)
        local = arrived.view(self.ranks, self.own, places, -1).transpose(0, 1)
        local = local.reshape(self.own, self.ranks * places, -1)
        gate, up = torch.bmm(local, self.up.transpose(-2, -1)).chunk(2, dim=-1)
        out = torch.bmm(F.silu(gate) * up, self.down.transpose(-2, -1))
        back = out.view(self.own, self.ranks, places, -1).transpose(0, 1).reshape(self.experts * places, -1)
        returned = F.pad(Exchange.apply(back, None, None, self.group), (0, 0, 0, 1))
        self.seen = self.own * self.ranks * places
        where = torch.empty_like(slot)
        where[order] = slot
        return F.embedding(where, returned, padding_idx=nowhere)


class Shared(nn.Module):
    """Experts beside one that every token goes through."""

    def __init__(self, routed, shared, gate):
        super().__init__()
        self.routed, self.shared, self.gate = routed, shared, gate

    def forward(self, x):
        result = self.routed(x)
        shared = self.shared(x)
        return result + torch.sigmoid(self.gate(x)) * shared


NETWORKS = {
    "mixtral": ("Mixtral", dict(num_hidden_layers=8, hidden_size=1024, num_attention_heads=16, num_key_value_heads=8,
                                intermediate_size=2816, num_local_experts=8, num_experts_per_tok=2, vocab_size=32000,
                                sliding_window=None)),
    "mixtral-wide": ("Mixtral", dict(num_hidden_layers=4, hidden_size=4096, num_attention_heads=32,
                                     num_key_value_heads=8, intermediate_size=7168, num_local_experts=8,
                                     num_experts_per_tok=2, vocab_size=32000, sliding_window=None)),
    "qwen3-moe": ("Qwen3Moe", dict(num_hidden_layers=8, hidden_size=2048, num_attention_heads=32,
                                   num_key_value_heads=4, head_dim=128, moe_intermediate_size=768, num_experts=64,
                                   num_experts_per_tok=8, vocab_size=32000, intermediate_size=6144,
                                   norm_topk_prob=True, tie_word_embeddings=False)),
    "qwen2-moe": ("Qwen2Moe", dict(num_hidden_layers=6, hidden_size=2048, num_attention_heads=16,
                                   num_key_value_heads=16, moe_intermediate_size=1408, num_experts=16,
                                   num_experts_per_tok=4, shared_expert_intermediate_size=5632, vocab_size=32000,
                                   intermediate_size=5632, tie_word_embeddings=False)),
}

EXPERTS = []  # the group of ranks that share experts

# network, sequences, tokens, precision, strategy, capacity, checkpointing, optimizer, micro-batches, held out
CONFIGURATIONS = [
    ("mixtral", 8, 1024, "bf16", "ddp", 0, 0, "fused", 1, 0),
    ("mixtral-wide", 4, 1024, "bf16", "ddp", 0, 0, "fused", 1, 1),
    ("qwen3-moe", 4, 1024, "bf16", "fsdp", 0, 0, "fused", 1, 0),
    ("qwen2-moe", 4, 1024, "bf16", "ddp", 0, 0, "fused", 1, 1),
    ("mixtral", 8, 1024, "bf16", "ddp", 1.25, 0, "fused", 1, 0),
    ("qwen2-moe", 8, 1024, "bf16", "fsdp", 0, 0, "foreach", 1, 1),
    ("mixtral-wide", 8, 1024, "bf16", "fsdp", 0, 0, "fused", 1, 0),
    ("qwen3-moe", 8, 1024, "bf16", "ddp", 1.5, 0, "fused", 1, 1),
    ("qwen2-moe", 4, 1024, "amp-bf16", "ddp", 0, 0, "fused", 1, 0),
    ("mixtral-wide", 8, 1024, "bf16", "ddp", 1.25, 0, "fused", 1, 1),
    ("mixtral-wide", 8, 1024, "bf16", "ddp", 0, 1, "fused", 1, 0),
    ("mixtral", 4, 512, "bf16", "ddp", 0, 0, "foreach", 1, 1),
    ("qwen3-moe", 8, 1024, "bf16", "ddp", 0, 0, "fused", 1, 0),
    ("mixtral", 16, 1024, "amp-bf16", "ddp", 0, 0, "fused", 1, 1),
    ("qwen2-moe", 8, 1024, "bf16", "ddp", 1.25, 1, "fused", 1, 0),
    ("qwen3-moe", 16, 512, "bf16", "fsdp", 0, 1, "fused", 1, 1),
    ("mixtral", 8, 1024, "bf16", "fsdp", 1.25, 0, "fused", 1, 0),
    ("qwen2-moe", 4, 1024, "bf16", "ddp", 1.25, 0, "fused", 2, 1),
    ("mixtral-wide", 4, 1024, "bf16", "ddp", 0, 0, "fused", 2, 0),
    ("mixtral", 8, 1024, "bf16", "ddp", 0, 1, "fused", 1, 1),
]


def name_of(c):
    words = [c[0], f"b{c[1]}", f"t{c[2]}", c[3], c[4]]
    words += [f"capacity{c[5]}"] * bool(c[5]) + ["ckpt"] * c[6]
    words += [c[7]] * (c[7] != "fused") + [f"accum{c[8]}"] * (c[8] > 1)
    return "-".join(words)


def make_network(kind, capacity):
    import transformers
    family, sizes = NETWORKS[kind]
    config = getattr(transformers, family + "Config")(**sizes)
    config.use_cache = False
    config._attn_implementation = "sdpa"
    torch.manual_seed(1)
    with torch.device("cuda"):
        network = getattr(transformers, family + "ForCausalLM")(config)
        inner = getattr(config, "moe_intermediate_size", None) or config.intermediate_size
        experts = getattr(config, "num_local_experts", None) or config.num_experts
        for layer in network.model.layers:
            at = "mlp" if hasattr(layer, "mlp") else "block_sparse_moe"
            old = getattr(layer, at)
            new = Experts(config.hidden_size, inner, experts, config.num_experts_per_tok, capacity, EXPERTS[0])
            if hasattr(old, "shared_expert"):
                new = Shared(new, old.shared_expert, old.shared_expert_gate)
            setattr(layer, at, new)
            if f", _ = self.{at}(" in inspect.getsource(type(layer).forward):
                raise RuntimeError("this version of Transformers expects a pair of its experts")
    return network, config


def profiled(step):
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        step()
        torch.cuda.synchronize()
    spans, names = [], {}
    for event in prof.profiler.kineto_results.events():
        if not str(event.device_type()).endswith("CUDA") or event.duration_ns() <= 0:
            continue
        name = event.name()
        if name.startswith(("ProfilerStep", "gpu_", "Optimizer", "Context Sync", "Event Sync", "Stream", "nccl:")):
            continue
        spans.append((event.start_ns(), event.start_ns() + event.duration_ns(), "nccl" in name))
        row = names.setdefault(name[:150], [0, 0.0])
        row[0] += 1
        row[1] += event.duration_ns() / 1e3
    busy, end = 0, -1
    for start, stop, of_nccl in sorted(spans):
        if of_nccl:
            continue
        busy += max(0, stop - max(start, end))
        end = max(end, stop)
    nccl = sum(stop - start for start, stop, of_nccl in spans if of_nccl)
    top = sorted(([k, v[0], round(v[1], 1)] for k, v in names.items()), key=lambda row: -row[2])[:60]
    return busy / 1e9, nccl / 1e9, len(spans), top


def host_speed():
    one, x, layer = torch.zeros(1, device="cuda"), torch.randn(64, 64, device="cuda"), nn.Linear(64, 64).cuda()
    out = []
    for call in (lambda: one.add_(1), lambda: layer(x)):
        for _ in range(100):
            call()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(600):
            call()
        torch.cuda.synchronize()
        out.append(round((time.perf_counter() - start) / 600 * 1e6, 2))
    return out


def measure(c):
    kind, sequences, tokens, precision, strategy, capacity, again, optimizer, batches, held = c
    torch.backends.cuda.matmul.allow_tf32 = precision == "amp-bf16"
    gc.collect()
    torch.cuda.empty_cache()
    network, config = make_network(kind, capacity)
    network.cpu()
    gc.collect()
    torch.cuda.empty_cache()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.reset_peak_memory_stats()
    if precision == "bf16":
        network.bfloat16()
    network.cuda().train()
    world = dist.get_world_size()
    layers = [m for m in network.modules() if isinstance(m, Experts)]
    own = {id(p) for m in layers for p in (m.up, m.down)}
    if again:
        network.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    spread = [p for p in network.parameters() if id(p) in own]
    if strategy == "fsdp":
        from torch.distributed.fsdp import fully_shard
        for layer in network.model.layers:
            fully_shard(layer, ignored_params=set(spread))
        fully_shard(network, ignored_params=set(spread))
        model = network
    else:
        names = [n for n, p in network.named_parameters() if id(p) in own]
        nn.parallel.DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(network, names)
        model = nn.parallel.DistributedDataParallel(network)
    others = [p for p in network.parameters() if id(p) not in own]
    choose = dict(fused=True) if optimizer == "fused" else dict(foreach=True)
    update = torch.optim.AdamW([dict(params=others), dict(params=spread)], lr=1e-5, **choose)
    torch.manual_seed(100 + dist.get_rank())
    ids = torch.randint(0, config.vocab_size, (sequences, tokens), device="cuda")

    def step():
        for i in range(batches):
            last = i + 1 == batches
            quiet = contextlib.nullcontext() if last or strategy == "fsdp" else model.no_sync()
            cast = torch.autocast("cuda", torch.bfloat16) if precision == "amp-bf16" else contextlib.nullcontext()
            with quiet:
                with cast:
                    loss = model(input_ids=ids, labels=ids).loss
                (loss / batches).backward()
        torch._foreach_div_([p.grad for p in spread], world)
        update.step()
        update.zero_grad(set_to_none=True)

    start = time.time()
    step()
    torch.cuda.synchronize()
    first = dict(allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved())
    torch.cuda.reset_peak_memory_stats()
    for _ in range(4):
        step()
    torch.cuda.synchronize()
    events = []
    wall = time.perf_counter()
    for _ in range(12):
        pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
        pair[0].record()
        step()
        pair[1].record()
        events.append(pair)
    torch.cuda.synchronize()
    wall = (time.perf_counter() - wall) / 12
    ms = sorted(a.elapsed_time(b) for a, b in events)
    peak = dict(allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved())
    busy, nccl, kernels, top = profiled(step)
    free, total = torch.cuda.mem_get_info()
    row = dict(id=name_of(c), held_out=held, network=kind, family=NETWORKS[kind][0], sizes=NETWORKS[kind][1],
               sequences=sequences, tokens=tokens, precision=precision, strategy=strategy, capacity=capacity, checkpointing=again,
               optimizer=optimizer, accumulation=batches, step_ms=statistics.median(ms), step_ms_min=ms[0],
               step_ms_max=ms[-1], wall_ms=wall * 1e3, peak=peak, first=first, device_used=total - free,
               busy_ms=busy * 1e3, nccl_ms=nccl * 1e3, kernels=kernels,
               local_parameters=sum(p.numel() for p in spread), parameters=sum(p.numel() for p in network.parameters()),
               received=[m.seen for m in layers], host_us=host_speed(), device=torch.cuda.get_device_name(),
               torch=torch.__version__, seconds=round(time.time() - start, 1), top=top)
    return row


def exchanges():
    """All-to-alls of even parts, alone."""
    rows = []
    for power in range(10, 29):
        x = torch.zeros(1 << power, dtype=torch.uint8, device="cuda").view(torch.bfloat16)
        y = torch.empty_like(x)
        for _ in range(5):
            dist.all_to_all_single(y, x)
        torch.cuda.synchronize()
        dist.barrier()
        times = []
        for _ in range(20):
            a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            a.record()
            dist.all_to_all_single(y, x)
            b.record()
            times.append((a, b))
        torch.cuda.synchronize()
        rows.append(dict(op="all_to_all", bytes=1 << power, gpus=dist.get_world_size(),
                         us=round(statistics.median(a.elapsed_time(b) for a, b in times) * 1e3, 2)))
    return rows


def main():
    out, limit, begun = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 300.0, time.time()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl", device_id=torch.device("cuda", int(os.environ["LOCAL_RANK"])))
    rank = dist.get_rank()
    EXPERTS.append(dist.new_group())

    def write(name, row):
        with open(f"{out}/{name}.{rank}.jsonl", "a") as file:
            file.write(json.dumps(row) + "\n")

    for row in exchanges():
        write("exchanges", row)
    for c in CONFIGURATIONS:
        go_on = torch.tensor([1 if time.time() - begun < limit else 0], device="cuda")
        dist.broadcast(go_on, 0)
        if not go_on.item():
            break
        try:
            row = measure(c)
            write("held_out" if row["held_out"] else "steps", row)
            if rank == 0:
                print(row["id"], "held out" if row["held_out"] else (row["step_ms"], row["busy_ms"], row["nccl_ms"],
                                                                     row["peak"], row["received"][:2]), row["seconds"],
                      round(time.time() - begun), flush=True)
        except Exception:
            write("failed", dict(id=name_of(c), error=traceback.format_exc()[-1500:]))
            print(rank, name_of(c), traceback.format_exc()[-700:], flush=True)
            torch.cuda.synchronize()
    dist.destroy_process_group()


main()
