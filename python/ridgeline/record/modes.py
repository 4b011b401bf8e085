"""What stands between the code that is recorded and PyTorch: its functions, and the calls of its dispatcher."""
import contextlib

import torch
import torch.autograd as autograd
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._python_dispatch import TorchDispatchMode

ATTENTION = "ridgeline::attention"


class Attention(torch.autograd.Function):
    """Fused attention as one call forward and one backward, without choosing a kernel."""

    @staticmethod
    def forward(ctx, recorder, query, key, value, dropout, causal):
        with recorder.unseen():
            batch, heads, length, _ = query.shape
            # The layout fused kernels give their result: heads beside one another.
            out = query.new_empty(batch, length, heads, value.shape[-1]).transpose(1, 2)
            statistics = torch.empty(batch, heads, length, dtype=torch.float32, device=query.device)
        recorder.call(ATTENTION, [query, key, value, None, float(dropout), bool(causal)], [out, statistics])
        ctx.recorder, ctx.dropout, ctx.causal = recorder, dropout, causal
        ctx.save_for_backward(query, key, value, out, statistics)
        return out

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, out, statistics = ctx.saved_tensors
        with ctx.recorder.unseen():
            gradients = [torch.empty_like(x) for x in (query, key, value)]
        ctx.recorder.call(ATTENTION + "_backward",
                          [gradient, query, key, value, out, statistics, float(ctx.dropout), bool(ctx.causal)], gradients)
        return (None, *gradients, None, None)


# What torch.autocast runs in the lower precision on a GPU, and what in fp32, by the name of the function.
LOWERED = {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "matmul",
           "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "addr", "mv", "einsum", "prelu",
           "_grouped_mm", "grouped_mm"}
WIDENED = {"softmax", "log_softmax", "layer_norm", "group_norm", "cross_entropy_loss", "nll_loss", "nll_loss_nd",
           "nll_loss2d", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cosine_embedding_loss",
           "binary_cross_entropy_with_logits", "pow", "__pow__", "__rpow__", "norm", "exp", "expm1", "log", "log10", "log1p",
           "log2", "rsqrt", "reciprocal", "cosh", "sinh", "tan", "acos", "asin", "erfinv", "softplus", "dist", "renorm",
           "cosine_similarity", "logsumexp"}


class Functions(TorchFunctionMode):
    """What PyTorch's functions would do on a GPU, where they do something else on a CPU."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder, self.casts = recorder, {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func is torch.Tensor.cuda:
            return args[0]
        if name not in ("__get__", "__set__"):
            args, kwargs = self.moved(args), {key: self.moved(value) for key, value in kwargs.items()}
        lower = self.autocast_type()
        if lower is None:
            self.casts.clear()
        if name == "scaled_dot_product_attention" and self.recorder.active:
            return self.attention(lower, *args, **kwargs)
        if lower is not None and name in LOWERED:
            args, kwargs = self.cast(args, lower), {key: self.cast(value, lower) for key, value in kwargs.items()}
        elif lower is not None and name in WIDENED:
            args = self.cast(args, torch.float32)
            kwargs = {key: self.cast(value, torch.float32) for key, value in kwargs.items()}
        if name == "dropout" and func is not torch.nn.functional.dropout and len(args) == 3:
            return torch.native_dropout(args[0], args[1], True)[0] if args[2] and args[1] > 0 else args[0]
        return func(*args, **kwargs)

    @contextlib.contextmanager
    def during_backward(self):
        """Keeps this mode on while the autograd engine runs, since checkpointed segments are run again inside it."""
        engine = autograd._engine_run_backward

        def run(*args, **kwargs):
            with contextlib.nullcontext() if self in _get_current_function_mode_stack() else self:
                return engine(*args, **kwargs)

        autograd._engine_run_backward = run
        try:
            yield
        finally:
            autograd._engine_run_backward = engine

    @staticmethod
    def autocast_type():
        for device in ("cuda", "cpu"):
            if torch.is_autocast_enabled(device):
                return torch.get_autocast_dtype(device)
        return None

    def moved(self, value):
        """The same arguments with "cuda" for the CPU that stands for it."""
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
            return "cpu"
        if type(value) in (tuple, list):
            return type(value)(self.moved(item) for item in value)
        return value

    def cast(self, value, kind):
        if isinstance(value, torch.Tensor):
            if not value.is_floating_point() or value.dtype in (kind, torch.float64):
                return value
            if not (value.is_leaf and value.requires_grad and kind != torch.float32):
                return value.to(kind)
            if id(value) not in self.casts:  # weights are cast once a forward pass
                self.casts[id(value)] = (value, value.to(kind))
            return self.casts[id(value)][1]
        if type(value) in (tuple, list):
            return type(value)(self.cast(item, kind) for item in value)
        return value

    def attention(self, lower, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                  enable_gqa=False):
        if lower is not None:
            query, key, value = (self.cast(x, lower) for x in (query, key, value))
        return Attention.apply(self.recorder, query, key, value, dropout_p, is_causal)


class Calls(TorchDispatchMode):
    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        recorder = self.recorder
        if not recorder.active:
            return func(*args, **kwargs)
        name = func._schema.name
        if name.startswith(("prim::", "profiler::")):  # questions about tensors, marks
            return func(*args, **kwargs)
        if name in ("aten::_local_scalar_dense", "aten::item", "aten::is_nonzero"):
            tensor = args[0]
            if recorder.on_host(tensor):
                try:
                    return func(*args, **kwargs)
                except Exception:
                    return 1.0 if tensor.is_floating_point() else 1
            recorder.call(name, [tensor], [])
            recorder.records.append({"record": "wait"})
            return False if tensor.dtype == torch.bool else (0.0 if tensor.is_floating_point() else 0)
        # Kernels of the gradient scaler exist for GPUs only; they work in place.
        out = args[0] if name.startswith("aten::_amp_") else func(*args, **kwargs)
        values = dict(kwargs)
        ordered = []
        for position, argument in enumerate(func._schema.arguments):
            if position < len(args):
                ordered.append(args[position])
            elif argument.name in values:
                ordered.append(values[argument.name])
            else:
                ordered.append(argument.default_value if argument.has_default_value() else None)
        recorder.call(name, ordered, [out] if isinstance(out, torch.Tensor) else out)
        return out
