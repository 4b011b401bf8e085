"""What stands between the code that is recorded and PyTorch: its functions, and the calls of its dispatcher."""
import contextlib

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from . import composites
from .older_pytorch import around_backward, autocast_type, function_modes, safe_softmax
from .unknown_sizes import INDEXED, SIZED_BY_VALUES, places, remember_marks, sized

ATTENTION = "ridgeline::attention"


class Attention(torch.autograd.Function):
    """Fused attention as one call forward and one backward, without choosing a kernel."""

    @staticmethod
    def forward(ctx, recorder, query, key, value, mask, dropout, causal):
        with recorder.unseen():
            batch, heads, length, _ = query.shape
            # The layout fused kernels give their result: heads beside one another.
            out = query.new_empty(batch, length, heads, value.shape[-1]).transpose(1, 2)
            statistics = torch.empty(batch, heads, length, dtype=torch.float32, device=query.device)
        ctx.learned = mask is not None and mask.requires_grad
        recorder.call(ATTENTION, [query, key, value, mask, float(dropout), bool(causal), ctx.learned],
                      [out, statistics])
        ctx.recorder, ctx.dropout, ctx.causal = recorder, dropout, causal
        ctx.save_for_backward(query, key, value, mask, out, statistics)
        return out

    @staticmethod
    def backward(ctx, gradient):
        query, key, value, mask, out, statistics = ctx.saved_tensors
        with ctx.recorder.unseen():
            gradients = [torch.empty_like(x) for x in (query, key, value)]
            if ctx.learned:
                gradients.append(torch.empty(mask.shape, dtype=mask.dtype, device=mask.device))
        ctx.recorder.call(ATTENTION + "_backward", [gradient, query, key, value, out, statistics, float(ctx.dropout),
                                                    bool(ctx.causal), mask, ctx.learned], gradients)
        return (None, *gradients, *[None] * (6 - len(gradients)))


def has_fused_attention(query, key, value, mask, enable_gqa):
    """Whether any fused kernel takes these operands; PyTorch runs plain products and a softmax, in fp32, otherwise."""
    operands = [query, key, value]
    if any(x.dim() != 4 for x in operands) or any(x.stride(-1) != 1 for x in operands if x.shape[-1] > 1):
        return False
    if mask is not None and mask.stride(-1) != 1:
        return False
    if any(x.shape[0] != query.shape[0] for x in operands):
        return False
    half, width = query.dtype in (torch.float16, torch.bfloat16), query.shape[-1]
    if any(x.shape[1] != query.shape[1] for x in operands):  # grouped keys, beside a mask cuDNN's alone: 16 bits
        if not (enable_gqa and half) or (mask is not None and mask.requires_grad):
            return False
        return mask is None or (width % 8 == 0 and width <= 256)
    return (half and mask is None and width <= 256) or width % (8 if half else 4) == 0


def plain_attention(query, key, value, mask, dropout, causal, scale, enable_gqa):
    """What scaled_dot_product_attention does without a fused kernel: products and a softmax in fp32."""
    kind = query.dtype
    if causal:
        mask = added_to_scores(torch.ones(query.shape[-2], key.shape[-2], dtype=torch.bool,
                                          device=query.device).tril(), kind)
    elif mask is not None and mask.dtype == torch.bool:
        mask = added_to_scores(mask, kind)
    if kind in (torch.float16, torch.bfloat16):
        query, key, value = query.float(), key.float(), value.float()
    if enable_gqa and key.shape[1] != query.shape[1]:
        key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
    root = (scale if scale is not None else query.shape[-1] ** -0.5) ** 0.5
    scores = torch.matmul(query * root, key.transpose(-2, -1) * root)
    if mask is not None:
        scores.add_(mask)
    weights = safe_softmax(scores)
    if dropout > 0:
        weights = torch.native_dropout(weights, dropout, True)[0]
    return torch.matmul(weights, value).to(kind)


def added_to_scores(mask, kind):
    """A mask of truths as what is added to the scores."""
    return torch.zeros_like(mask, dtype=kind).masked_fill_(~mask, float("-inf"))


def attention_mask(mask, query, key):
    """A mask as fused kernels take it: rows of a multiple of eight elements, expanded to every head."""
    length = mask.shape[-1]
    if length % 8 != 0:
        mask = torch.ops.aten.constant_pad_nd(mask, [0, 8 - length % 8], 0.0).narrow(-1, 0, length)
    return mask.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])


# What torch.autocast runs in the lower precision on a GPU, and what in fp32, by the name of the function.
LOWERED = {"linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "matmul",
           "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "addr", "mv", "einsum", "prelu"}
WIDENED = {"softmax", "log_softmax", "layer_norm", "group_norm", "nll_loss", "nll_loss_nd", "nll_loss2d", "mse_loss",
           "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cosine_embedding_loss",
           "binary_cross_entropy_with_logits", "pow", "__pow__", "__rpow__", "norm", "exp", "expm1", "log", "log10", "log1p",
           "log2", "rsqrt", "reciprocal", "cosh", "sinh", "tan", "acos", "asin", "erfinv", "softplus", "dist", "renorm",
           "cosine_similarity", "logsumexp"}


ELSEWHERE = ("cuda", "meta")  # devices that the CPU stands for
IS_CUDA = torch.Tensor.is_cuda.__get__


def copied(recorder, tensor, memo):
    """copy.deepcopy of a tensor without values."""
    if id(tensor) not in memo:
        with torch.no_grad():
            copy = tensor.clone()
        if getattr(tensor, "_is_param", False):
            copy = torch.nn.Parameter(copy, tensor.requires_grad)
        memo[id(tensor)] = copy.requires_grad_(tensor.requires_grad) if tensor.is_leaf else copy
    return memo[id(tensor)]


def array(recorder, tensor, *_, **__):
    return recorder.to_host(tensor.detach()).numpy()


def on_host_now(recorder, tensor, *_, **__):
    return tensor if tensor.requires_grad else recorder.to_host(tensor)


# Methods that need values, or memory of the host, of a tensor on the GPU.
WITHOUT_VALUES = {
    "__deepcopy__": copied, "numpy": array, "__array__": array, "cpu": on_host_now,
    "__format__": lambda recorder, tensor, spec: format(tensor.item() if tensor.dim() == 0 else str(tensor), spec),
    "tolist": lambda recorder, tensor: recorder.to_host(tensor.detach()).tolist(),
    "record_stream": lambda recorder, tensor, stream: None,
    "pin_memory": lambda recorder, tensor, *_: tensor,
    "is_pinned": lambda recorder, tensor, *_: False}
HOST_ONLY = {"pin_memory", "is_pinned", "record_stream"}  # whatever the tensor, there is no GPU to do it


class Functions(TorchFunctionMode):
    """What PyTorch's functions would do on a GPU, where they do something else on a CPU."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder, self.casts = recorder, {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, recorder = kwargs or {}, self.recorder
        if recorder.inside or func is torch.device:
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if func is torch.Tensor.cuda:
            return recorder.to_device(args[0])
        if func == IS_CUDA and recorder.on_gpu(args[0]):
            return True
        if name in WITHOUT_VALUES and args and (recorder.is_ours(args[0]) or name in HOST_ONLY):
            return WITHOUT_VALUES[name](recorder, *args, **kwargs)
        said = False
        if name not in ("__get__", "__set__"):
            before = args, kwargs
            args, kwargs = self.moved(args), {key: self.moved(value) for key, value in kwargs.items()}
            said = any(new is not old for new, old in zip([*args, *kwargs.values()], [*before[0], *before[1].values()]))
        lower = autocast_type()
        if lower is None:
            self.casts.clear()
        else:
            recorder.lowered(lower)
        if said:
            return recorder.asked_of_gpu(func, name, args, kwargs)
        if name == "scaled_dot_product_attention" and recorder.active:
            return self.attention(lower, *args, **kwargs)
        if name == "rms_norm" and func is not torch.nn.functional.rms_norm and recorder.active:
            return composites.rms_norm(recorder, func, *args, **kwargs)
        if name == "cross_entropy_loss" and lower is not None:
            return self.cross_entropy(func, *args, **kwargs)
        if name in ("softmax", "log_softmax") and func not in (torch.nn.functional.softmax, torch.nn.functional.log_softmax):
            kind = kwargs if lower is None else {"dtype": torch.float32, **kwargs}
            made = composites.softmax(func, name, args, kind)
            if made is not None:
                return made
        if lower is not None and name in LOWERED:
            args, kwargs = self.cast(args, lower), {key: self.cast(value, lower) for key, value in kwargs.items()}
        elif lower is not None and name in WIDENED:
            args = self.cast(args, torch.float32)
            kwargs = {key: self.cast(value, torch.float32) for key, value in kwargs.items()}
        if name == "one_hot" and recorder.active and is_without_values(args[0]) and (args[1:] or kwargs):
            classes = args[1] if args[1:] else kwargs["num_classes"]
            if classes > 0:  # as PyTorch makes it of tensors with values
                marks = torch.zeros(*args[0].shape, classes, dtype=torch.int64, device=args[0].device)
                return marks.scatter_(-1, args[0].unsqueeze(-1), 1)
        if name == "dropout" and func is not torch.nn.functional.dropout and len(args) == 3:
            return torch.native_dropout(args[0], args[1], True)[0] if args[2] and args[1] > 0 else args[0]
        return func(*args, **kwargs)

    @contextlib.contextmanager
    def during_backward(self):
        """Keeps this mode on while the autograd engine runs, since checkpointed segments are run again inside it."""
        with around_backward(lambda: contextlib.nullcontext() if self in function_modes() else self):
            yield

    def moved(self, value):
        """The same arguments with the CPU for the GPU that it stands for; the very same where there is none."""
        if isinstance(value, torch.device) and value.type in ELSEWHERE:
            return torch.device("cpu")
        if isinstance(value, str) and value.partition(":")[0] in ELSEWHERE:
            return "cpu"
        if type(value) in (tuple, list):
            moved = [self.moved(item) for item in value]
            if any(new is not old for new, old in zip(moved, value)):
                return type(value)(moved)
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

    def cross_entropy(self, func, input, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
        """autocast leaves the logits' type to the softmax; only the negative log-likelihood is taken in fp32."""
        if label_smoothing or target.is_floating_point() or input.dtype not in (torch.float16, torch.bfloat16):
            return func(input, target, weight, reduction, ignore_index, label_smoothing)
        log_probabilities = torch.ops.aten._log_softmax(input, 1 if input.dim() > 1 else 0, False)
        return torch._C._nn.nll_loss_nd(log_probabilities.float(), target, weight, reduction, ignore_index)

    def attention(self, lower, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                  enable_gqa=False):
        if lower is not None:
            query, key, value, attn_mask = (self.cast(x, lower) for x in (query, key, value, attn_mask))
        if not has_fused_attention(query, key, value, attn_mask, enable_gqa):
            return plain_attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        if attn_mask is not None:
            if attn_mask.dtype == torch.bool:
                attn_mask = added_to_scores(attn_mask, query.dtype)
            attn_mask = attention_mask(attn_mask, query, key)
        return Attention.apply(self.recorder, query, key, value, attn_mask, dropout_p, is_causal)


def is_without_values(tensor):
    return isinstance(tensor, FakeTensor) or getattr(tensor, "is_meta", False)


def fills_marked(target, indices, value, accumulate=False, unsafe=False):
    """One value for all that a mask marks: PyTorch fills instead of looking for their places."""
    given = [index for index in indices if index is not None]
    return (not accumulate and len(indices) == 1 and len(given) == 1 and given[0].dtype in (torch.bool, torch.uint8) and
            isinstance(given[0], FakeTensor) and value.numel() == 1 and given[0].shape == target.shape)


class Calls(TorchDispatchMode):
    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, recorder = kwargs or {}, self.recorder
        if recorder.inside or not recorder.takes(args, kwargs, func):
            return func(*args, **kwargs)
        name = func._schema.name
        if name.startswith(("prim::", "profiler::")):  # questions about tensors, marks
            return recorder.run(func, args, kwargs)
        if name in ("aten::_local_scalar_dense", "aten::item", "aten::is_nonzero"):
            return self.scalar(func, name, args[0])
        if name == "aten::_grouped_mm":
            return self.grouped_products(func, *args, **kwargs)
        if name in ("aten::index_put_", "aten::_index_put_impl_") and fills_marked(*args):
            name, args = "aten::masked_fill_", (args[0], next(x for x in args[1] if x is not None), args[2].reshape(()))
            func, kwargs = torch.ops.aten.masked_fill_.Tensor, {}
        if name in INDEXED:
            args = (args[0], places(recorder, args[1]), *args[2:])
        elif name in SIZED_BY_VALUES and isinstance(args[0], FakeTensor):
            return sized(recorder, name, args, kwargs)
        # Kernels of the gradient scaler exist for GPUs only; they work in place.
        if name.startswith("aten::_amp_"):
            out = args[0] if func._schema.returns else None
        else:
            out = func(*args, **kwargs) if name in SIZED_BY_VALUES else recorder.run(func, args, kwargs)
        remember_marks(recorder, name, args, out)
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
        if name == "aten::all" and recorder.active:
            recorder.held.add(recorder.birth(out))
        return out

    def scalar(self, func, name, tensor):
        """A value that the host asks for."""
        recorder = self.recorder
        if recorder.on_host(tensor):
            try:
                return func(tensor)
            except Exception:
                return 1.0 if tensor.is_floating_point() else 1
        recorder.call(name, [tensor], [])
        recorder.wait()
        if recorder.has_value(tensor):
            return func(tensor)
        if tensor.dtype == torch.bool:
            return recorder.birth(tensor) in recorder.held if recorder.active else False
        return 0.0 if tensor.is_floating_point() else 0

    def grouped_products(self, func, a, b, offs=None, bias=None, out_dtype=None):
        """One kernel for bf16; for other types PyTorch reads the groups' ends on the host and multiplies one by one.
        Here every group is of one size."""
        recorder, groups = self.recorder, offs.shape[0] if offs is not None else a.shape[0]
        if a.dim() == b.dim():
            sizes = (groups, a.shape[-2], b.shape[-1])
        else:
            sizes = (a.shape[-2], b.shape[-1])
        width = -(-sizes[-1] * a.element_size() // 16) * 16 // a.element_size()  # rows begin at multiples of 16 bytes
        with recorder.unseen():
            out = a.new_empty((*sizes[:-1], width)).narrow(-1, 0, sizes[-1])
        if a.dtype == torch.bfloat16:
            recorder.call("aten::_grouped_mm", [a, b, offs], [out])
            return out
        if offs is None:
            recorder.call("aten::bmm", [a, b], [out])
            return out
        recorder.call("aten::_local_scalar_dense", [offs], [])
        recorder.wait()

        def part(tensor, dimension, group):
            size = tensor.shape[dimension] // groups
            return tensor.narrow(dimension, group * size, size)

        for group in range(groups):
            with recorder.unseen():
                if a.dim() == 2 and b.dim() == 2:
                    factors = part(a, 1, group), part(b, 0, group), out[group]
                elif a.dim() == 2:
                    factors = part(a, 0, group), b[group], part(out, 0, group)
                else:
                    factors = a[group], part(b, 1, group), part(out, 1, group)
            recorder.call("aten::mm", list(factors[:2]), [factors[2]])
        return out
