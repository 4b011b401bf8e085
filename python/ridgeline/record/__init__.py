"""Records a PyTorch training step as a Ridgeline op trace, on a machine without a GPU.

    import ridgeline

    with ridgeline.record("bert.jsonl.gz", title="BERT-base, 8 x 128", samples=8, tokens=8 * 128):
        train()                                # your own loop: model, optimizer, batches

Every optimizer.step() ends a step; the last whole one is the steady one. What the loop asks of a GPU (.to("cuda"),
torch.autocast("cuda"), torch.cuda.is_available()) is answered as on one, by tensors that exist in name only. Then:

    ridgeline replay bert.jsonl.gz --hardware nvidia-a100-sxm4-80gb

`ridgeline predict --record train.py --hardware ...` and `python -m ridgeline.record --script train.py --output
bert.jsonl.gz` do that to a script as it is and stop it after two steps. `Recorder` records a function that makes one step.

What is recorded are the calls of PyTorch's dispatcher below autograd and autocast, with shapes, types, strides and
storages, and when each storage is born and dies. docs/op-trace.md describes the file. Needs PyTorch 2.1 or newer.

How: CPU tensors stand for those of the GPU. Where PyTorch takes another way on a GPU, that way is taken: autocast's lists of
operations, fused dropout, multi-tensor optimizers and clipping. scaled_dot_product_attention is recorded as one call; which
kernel runs is decided when it is replayed.

Limits: values on the GPU do not exist, so code that branches on them takes one way: .item() gives 1 for tensors in host
memory and 0 for others, .all() is true (no padding, positions that rise by one) and .any() false. torch.compile is recorded
as eager code.
"""
import sys as _sys
import types as _types

__all__ = ["NotRecorded", "Recorder"]


class NotRecorded(RuntimeError):
    """What ran cannot be recorded: PyTorch is missing or too old, or no optimizer made a step."""


class _CallableModule(_types.ModuleType):
    def __call__(self, path, *, title="", precision="", samples=0, tokens=0):
        """A context that records the training loop inside it into `path` (.gz compresses). Raises NotRecorded."""
        self.check_pytorch()
        from .block import Block
        return Block(path, title=title, precision=precision, samples=samples, tokens=tokens)


def check_pytorch():
    """Raises NotRecorded where PyTorch is missing or too old."""
    from .pytorch_version import found
    found(NotRecorded)


def __getattr__(name):
    """PyTorch is imported when a recorder is first asked for."""
    if name == "Recorder":
        check_pytorch()
        from .recorder import Recorder
        return Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_sys.modules[__name__].__class__ = _CallableModule
