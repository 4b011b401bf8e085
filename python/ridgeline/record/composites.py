"""Functions whose dispatcher calls differ by device: one call on a GPU, several that a CPU takes them apart into."""
import torch

FUSED_RMS_NORM = hasattr(torch.ops.aten, "_fused_rms_norm_backward")  # of a GPU since PyTorch 2.9


class RmsNorm(torch.autograd.Function):
    """aten::_fused_rms_norm and its backward call."""

    @staticmethod
    def forward(ctx, recorder, x, shape, weight, eps):
        with recorder.unseen():
            out = torch.empty_like(x, memory_format=torch.contiguous_format)
            statistics = torch.empty((*x.shape[:x.dim() - len(shape)], *[1] * len(shape)), dtype=torch.float32, device=x.device)
        recorder.call("aten::_fused_rms_norm", [x, list(shape), weight, eps], [out, statistics])
        ctx.recorder, ctx.shape = recorder, list(shape)
        ctx.save_for_backward(x, weight, statistics)
        return out

    @staticmethod
    def backward(ctx, gradient):
        x, weight, statistics = ctx.saved_tensors
        mask = [ctx.needs_input_grad[1], weight is not None and ctx.needs_input_grad[3]]
        with ctx.recorder.unseen():
            gradients = [torch.empty_like(x) if mask[0] else None, torch.empty_like(weight) if mask[1] else None]
        ctx.recorder.call("aten::_fused_rms_norm_backward", [gradient, x, ctx.shape, statistics, weight, mask],
                          [made for made in gradients if made is not None])
        return None, gradients[0], None, gradients[1], None


def rms_norm(recorder, func, x, shape, weight=None, eps=None):
    """torch.rms_norm: weights of another type than the input's, and images with channels last, have no fused kernel."""
    last = x.dim() in (4, 5) and x.is_contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d)
    if not FUSED_RMS_NORM or (last and not x.is_contiguous()) or (weight is not None and weight.dtype != x.dtype):
        return func(x, shape, weight, eps)
    return RmsNorm.apply(recorder, x, tuple(shape), weight, eps)


def softmax(func, name, args, kwargs):
    """softmax and log_softmax of fp16 into fp32, which a GPU does in one call and a CPU after a cast; None: as it is."""
    dimension = args[1] if len(args) > 1 else kwargs.get("dim")
    kind = args[2] if len(args) > 2 else kwargs.get("dtype")
    x = args[0] if args else kwargs.get("input")
    if not isinstance(x, torch.Tensor) or x.dtype != torch.float16 or kind != torch.float32 or not isinstance(dimension, int):
        return None
    whole = torch.ops.aten._log_softmax if name == "log_softmax" else torch.ops.aten._softmax
    return whole(x, dimension, True)
