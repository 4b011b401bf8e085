"""Records a PyTorch training step as a Ridgeline op trace, on a machine without a GPU.

    from ridgeline.record import Recorder

    recorder = Recorder("bert.jsonl.gz", title="BERT-base, 8 x 128")
    with recorder.building():                  # tensors made here exist in name only: no GPU, no memory
        model = Model()
        inputs = torch.randint(0, 30000, (8, 128))
    optimizer = torch.optim.AdamW(model.parameters())
    recorder.record(step, model=model, samples=8, tokens=8 * 128)

`step()` does one whole training step (forward, backward, optimizer, zero_grad) as on the GPU, .to("cuda") and
torch.autocast("cuda") and all; it is run twice, because the first step creates the optimizer's states. Then:

    ridgeline replay bert.jsonl.gz --hardware nvidia-a100-sxm4-80gb

`python -m ridgeline.record FILE.py:FUNCTION --output bert.jsonl.gz` does the same for a function that makes a step.

What is recorded are the calls of PyTorch's dispatcher below autograd and autocast, with shapes, types, strides and
storages, and when each storage is born and dies. docs/op-trace.md describes the file. Needs PyTorch 2.5 or newer.

How: CPU tensors stand for those of the GPU. Where PyTorch takes another way on a GPU, that way is taken: autocast's lists of
operations, fused dropout, multi-tensor optimizers and clipping. scaled_dot_product_attention is recorded as one call; which
kernel runs is decided when it is replayed.

Limits: values do not exist, so code that branches on them takes one way: .item() gives 1 for tensors in host memory and 0
for others, .all() is true (no padding, positions that rise by one) and .any() false. Custom CUDA extensions and torch.compile are not recorded.
"""
__all__ = ["Recorder"]


def __getattr__(name):
    """PyTorch is imported when a recorder is first asked for."""
    if name == "Recorder":
        from .recorder import Recorder
        return Recorder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
