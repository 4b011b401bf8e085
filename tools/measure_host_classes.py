#!/usr/bin/env python3
"""Times single operations on the host: classes of hw/hosts/*.yaml that no network of measure_host_steps.py has by itself.

    python3 measure_host_classes.py --output classes.jsonl     # about two minutes

Each row is one kind of operation: a chain of `less` and one of `more` of them is timed, and `us` is the difference for
each. Chains are so short and tensors so small that nothing waits for the GPU, and every time begins with the GPU idle.
Neighbours on a shared machine change its speed within milliseconds: the loop of host_scale.py runs before and after, and
the medians are over the quiet moments (measure_host_steps.py). Rows of kind `anchor` are operations whose costs are
known; what they take on this machine is the scale of the others.

Needs PyTorch with CUDA."""
import argparse
import json
import os
import socket
import statistics
import time

import torch
import torch.nn as nn
import torch.utils.checkpoint

from measure_host_steps import Reference

clock = time.perf_counter
LESS, MORE = 8, 40


def small(*shape):
    return torch.randn(*(shape or (4, 16)), device="cuda", requires_grad=True)


def us_of(f):
    torch.cuda.synchronize()
    begin = clock()
    f()
    return 1e6 * (clock() - begin)


class Chain:
    """A pass through n times the same module, and back."""

    def __init__(self, n, make, shape=(), enter=None, kept=False):
        self.modules = [make() for _ in range(n)]
        self.parameters = [p for m in self.modules if isinstance(m, nn.Module) for p in m.cuda().parameters()]
        self.x, self.enter, self.kept = small(*shape), enter, kept

    def forward(self):
        x = self.x
        for module in self.modules:
            x = module(x)
        return x

    def __call__(self):
        """Microseconds forward and backward."""
        result = []

        def forward():
            if self.enter:
                with self.enter():
                    result.append(self.forward())
            else:
                result.append(self.forward())
        first = us_of(forward)
        ones = torch.ones_like(result[0])
        second = us_of(lambda: result[0].backward(ones))
        if not self.kept:
            for p in [self.x, *self.parameters]:
                p.grad = None
        return {"forward": first, "backward": second}


class Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class OneKernel(torch.autograd.Function):
    """A fused kernel of an extension: its call, what it saves, and the kernel of its backward pass."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.neg(x)

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return torch.neg(gradient)


class FunctionLinear(torch.autograd.Function):
    """A linear layer as a function in Python: product and bias; input's, weight's and bias' gradients."""

    @staticmethod
    def forward(ctx, x, weight, bias, asynchronous, sequence):
        ctx.save_for_backward(x, weight)
        ctx.use_bias, ctx.asynchronous, ctx.sequence = bias is not None, asynchronous, sequence
        return torch.matmul(x, weight.t()) + bias

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        to_input = gradient.matmul(weight)
        gradient, x = gradient.contiguous().view(-1, gradient.shape[-1]), x.view(-1, x.shape[-1])
        to_weight = gradient.t().matmul(x)
        return to_input, to_weight, gradient.sum(dim=0) if ctx.use_bias else None, None, None


class MegatronLinear(nn.Linear):
    def forward(self, x):
        return FunctionLinear.apply(x, self.weight, self.bias, False, False)


class Block(nn.Module):
    """Sixteen operations, as many as half a layer of a transformer has."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(f for _ in range(4) for f in (nn.LayerNorm(16), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16))))

    def forward(self, x):
        return self.layers(x)


class Checkpointed(Block):
    def forward(self, x):
        return torch.utils.checkpoint.checkpoint(self.layers, x, use_reentrant=False)


def offload():
    """The hooks of save_on_cpu, whose copies here wait for nothing."""
    def pack(tensor):
        packed = torch.empty(tensor.size(), dtype=tensor.dtype, layout=tensor.layout, pin_memory=True)
        packed.copy_(tensor, non_blocking=True)
        return tensor.device, packed

    def unpack(packed):
        device, tensor = packed
        return tensor.to(device, non_blocking=True)
    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def kept_gradient(module):
    """Each parameter's gradient goes into a buffer of its own."""
    def hook(p):
        p.main_gradient.add_(p.grad)
        p.grad = None
    for p in module.cuda().parameters():
        p.main_gradient = torch.zeros_like(p)
        p.register_post_accumulate_grad_hook(hook)
    return module


def chains():
    """name: (kind, how a chain of n is made)"""
    linear = lambda: nn.Linear(16, 16)
    yield "linear", "anchor", lambda n: Chain(n, linear)
    yield "layer_norm", "anchor", lambda n: Chain(n, lambda: nn.LayerNorm(16))
    yield "gelu", "anchor", lambda n: Chain(n, nn.GELU)
    yield "softmax", "anchor", lambda n: Chain(n, lambda: lambda x: torch.softmax(x, -1))
    yield "view", "anchor", lambda n: Chain(n, lambda: lambda x: x.view(4, 16))
    yield "matmul", "anchor", lambda n: Chain(n, lambda: lambda x: torch.matmul(x, x), (2, 16, 16))
    yield "convolution", "operation", lambda n: Chain(n, lambda: nn.Conv2d(8, 8, 3, padding=1, bias=False), (2, 8, 8, 8))
    yield "convolution_bias", "operation", lambda n: Chain(n, lambda: nn.Conv2d(8, 8, 3, padding=1), (2, 8, 8, 8))
    yield "batch_norm", "operation", lambda n: Chain(n, lambda: nn.BatchNorm2d(8), (2, 8, 8, 8))
    yield "linear_kept", "operation", lambda n: Chain(n, linear, kept=True)
    yield "linear_main_gradient", "operation", lambda n: Chain(n, lambda: kept_gradient(linear()), kept=True)
    yield "block", "operation", lambda n: Chain(n // 4, Block)
    yield "checkpointed_block", "operation", lambda n: Chain(n // 4, Checkpointed)
    yield "function_identity", "operation", lambda n: Chain(n, lambda: Identity.apply)
    yield "function_kernel", "operation", lambda n: Chain(n, lambda: OneKernel.apply)
    yield "function_linear", "operation", lambda n: Chain(n, lambda: MegatronLinear(16, 16))
    yield "gelu_offloaded", "operation", lambda n: Chain(n, nn.GELU, enter=offload)


def parameters(n):
    made = [nn.Parameter(torch.randn(16, device="cuda")) for _ in range(n)]
    for p in made:
        p.grad = torch.ones_like(p)
    return made


def optimizer(make):
    def of(n):
        held = parameters(n)
        optimizer = make(held)
        optimizer.step()
        return lambda: {"step": us_of(optimizer.step)}
    return of


def scaled(n):
    """Besides the optimizer: unscale_, step and update of a GradScaler, whose GPU is idle when it asks for infinities."""
    held = parameters(n)
    optimizer, scaler = torch.optim.AdamW(held, lr=1e-5, foreach=True), torch.amp.GradScaler("cuda")
    scaler.scale(torch.zeros((), device="cuda"))
    optimizer.step()

    def once():
        for p in held:
            p.grad = torch.ones_like(p)

        def with_scaler():
            scaler.unscale_(optimizer)
            torch.cuda.synchronize()
            scaler.step(optimizer)
            scaler.update()
        both = us_of(with_scaler)
        alone = us_of(optimizer.step)
        return {"step": both - alone}
    return once


def operations(n):
    x, y, z = (torch.rand(16, device="cuda") for _ in range(3))

    @torch.no_grad()
    def run():
        for _ in range(n):
            x.mul_(0.5).add_(y, alpha=0.1)
            torch.mul(y, y, out=z)
            x.addcdiv_(y, z, value=-0.1)
    return lambda: {"step": us_of(run)}


def graph(n):
    """n launches of a graph of ten kernels."""
    x, g = torch.zeros(16, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(10):
            x.add_(1)
    g.replay()

    def run():
        for _ in range(n):
            g.replay()
    return lambda: {"step": us_of(run)}


def lists():
    yield "adamw_for_loop", optimizer(lambda p: torch.optim.AdamW(p, lr=1e-5, foreach=False, fused=False))
    yield "sgd_foreach", optimizer(lambda p: torch.optim.SGD(p, lr=1e-5, momentum=0.9, foreach=True))
    yield "sgd_plain_foreach", optimizer(lambda p: torch.optim.SGD(p, lr=1e-5, foreach=True))
    yield "adamw_foreach", optimizer(lambda p: torch.optim.AdamW(p, lr=1e-5, foreach=True))
    yield "grad_scaler", scaled
    yield "four_operations", operations
    yield "graph_launch", graph


def distributed():
    """torch.distributed with one rank: what a call costs the host, without anybody to wait for."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK="0", WORLD_SIZE="1")
    torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", 0))
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
    mesh = init_device_mesh("cuda", (1,))

    def collectives(n):
        x = torch.zeros(16, device="cuda")

        def run():
            for work in [torch.distributed.all_reduce(x, async_op=True) for _ in range(n)]:
                work.wait()
        return lambda: {"step": us_of(run)}

    def sharded(n):
        chain = Chain(n, lambda: torch.neg)
        chain.x = nn.Parameter(distribute_tensor(torch.randn(4, 16, device="cuda"), mesh, [Shard(0)]))
        return chain

    def negated(n):
        return Chain(n, lambda: torch.neg)

    def wrapped(n, wrap=True, **more):
        module = nn.Sequential(*(nn.Linear(16, 16) for _ in range(n))).cuda()
        if wrap:
            module = nn.parallel.DistributedDataParallel(module, device_ids=[0], **more)
        chain = Chain(1, lambda: module)
        chain.parameters = list(module.parameters())
        return chain

    yield "collective", collectives
    yield "neg", negated
    yield "neg_dtensor", sharded
    yield "linears", lambda n: wrapped(n, wrap=False)
    yield "linears_ddp", wrapped
    yield "linears_ddp_unused", lambda n: wrapped(n, find_unused_parameters=True)


def measured(make, rounds, reference):
    """Microseconds of one more, by phase, and of none; the loop's speed beside."""
    chains, times, speed = {n: make(n) for n in (LESS, MORE)}, [], [reference()]
    for chain in chains.values():
        for _ in range(4):
            chain()
    for _ in range(rounds):
        times.append({n: chain() for n, chain in chains.items()})
        speed.append(reference())
    reference.seen += speed
    most = reference.quiet()
    chosen = [i for i in range(rounds) if max(speed[i], speed[i + 1]) <= most]
    quiet = len(chosen)
    if quiet < 5:
        chosen = sorted(range(rounds), key=lambda i: speed[i] + speed[i + 1])[:5]
    result = {}
    for phase in times[0][LESS]:
        each = [(times[i][MORE][phase] - times[i][LESS][phase]) / (MORE - LESS) for i in chosen]
        fixed = [times[i][LESS][phase] for i in chosen]
        one = statistics.median(each)
        result[phase] = {"us": round(one, 3), "fixed_us": round(statistics.median(fixed) - LESS * one, 3)}
    loop = statistics.median(speed[i] + speed[i + 1] for i in chosen) / 2
    return dict(result, quiet=quiet, loop_us=round(1e6 * loop, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--runs", type=int, default=4, help="how often all of them are timed")
    parser.add_argument("--rounds", type=int, default=25, help="of each, in a run")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    reference = Reference()
    kinds = list(chains()) + [(name, "operation", make) for name, make in lists()]
    kinds += [(name, "operation", make) for name, make in distributed()]
    with open(arguments.output, "a") as file:
        for run in range(arguments.runs):
            for name, kind, make in kinds:
                try:
                    row = measured(make, arguments.rounds, reference)
                except Exception as error:  # a kind that this PyTorch cannot run
                    row = {"error": str(error)[:300]}
                file.write(json.dumps(dict(name=name, kind=kind, run=run, torch=torch.__version__,
                                           gpu=torch.cuda.get_device_name(), **row)) + "\n")
                file.flush()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
