#!/usr/bin/env python3
"""Records a PyTorch training step as a Ridgeline op trace, on a machine without a GPU.

    from ridgeline_record import Recorder

    recorder = Recorder("bert.jsonl.gz", title="BERT-base, 8 x 128")
    with recorder.building():                  # tensors made here exist in name only: no GPU, no memory
        model = Model()
        inputs = torch.randint(0, 30000, (8, 128))
    optimizer = torch.optim.AdamW(model.parameters())
    recorder.record(step, model=model, samples=8, tokens=8 * 128)

`step()` does one whole training step (forward, backward, optimizer, zero_grad) as on the GPU, .to("cuda") and
torch.autocast("cuda") and all; it is run twice, because the first step creates the optimizer's states. Then:

    ridgeline replay bert.jsonl.gz --hardware nvidia-a100-sxm4-80gb

What is recorded are the calls of PyTorch's dispatcher below autograd and autocast, with shapes, types, strides and
storages, and when each storage is born and dies. docs/op-trace.md describes the file. Needs PyTorch 2.5 or newer.

How: CPU tensors stand for those of the GPU. Where PyTorch takes another way on a GPU, that way is taken: autocast's lists of
operations, fused dropout, multi-tensor optimizers and clipping. scaled_dot_product_attention is recorded as one call; which
kernel runs is decided when it is replayed.

Limits: values do not exist, so code that branches on them takes one way (.item() gives 1 for tensors in host memory and 0
for others). Custom CUDA extensions and torch.compile are not recorded.
"""
import contextlib
import gzip
import json
import sys
import weakref

import torch
import torch.optim.optimizer as optimizers
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

VERSION = 1
TYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16", torch.float64: "fp64",
         torch.int64: "int64", torch.int32: "int32", torch.uint8: "uint8", torch.bool: "bool", torch.int8: "uint8",
         torch.int16: "fp16"}
# Calls that change no memory and start no kernel: their tensors need not be written.
VIEWS = {"aten::view", "aten::_unsafe_view", "aten::t", "aten::transpose", "aten::permute", "aten::expand", "aten::slice",
         "aten::select", "aten::split", "aten::split_with_sizes", "aten::unbind", "aten::squeeze", "aten::unsqueeze",
         "aten::as_strided", "aten::detach", "aten::alias", "aten::_reshape_alias", "aten::unfold", "aten::diagonal",
         "aten::empty", "aten::empty_like", "aten::empty_strided", "aten::new_empty", "aten::new_empty_strided",
         "aten::lift_fresh", "aten::is_same_size"}
ATTENTION = "ridgeline::attention"


class _Attention(torch.autograd.Function):
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
           "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "baddbmm", "addbmm", "addmv", "addr", "mv", "einsum", "prelu"}
WIDENED = {"softmax", "log_softmax", "layer_norm", "group_norm", "cross_entropy_loss", "nll_loss", "nll_loss_nd",
           "nll_loss2d", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cosine_embedding_loss",
           "binary_cross_entropy_with_logits", "pow", "__pow__", "__rpow__", "norm", "exp", "expm1", "log", "log10", "log1p",
           "log2", "rsqrt", "reciprocal", "cosh", "sinh", "tan", "acos", "asin", "erfinv", "softplus", "dist", "renorm",
           "cosine_similarity", "logsumexp"}


class _Functions(TorchFunctionMode):
    """What PyTorch's functions would do on a GPU, where they do something else on a CPU."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder, self.casts = recorder, {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if func is torch.Tensor.backward:  # runs on with this mode: checkpointed segments are run again inside
            return self.backward(*args, **kwargs)
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

    def backward(self, loss, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        with self:
            return torch.autograd.backward(loss, gradient, retain_graph, create_graph, inputs=inputs)

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
        return _Attention.apply(self.recorder, query, key, value, dropout_p, is_causal)


class _Calls(TorchDispatchMode):
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


class Recorder:
    """One recording. `precision` is noted in the file: fp32, tf32, amp-fp16, amp-bf16 or bf16."""

    def __init__(self, path, title="", precision=""):
        self.path, self.title, self.precision = path, title, precision
        self.records, self.births, self.ids, self.watched = [], [], {}, {}
        self.active, self.phase, self.counted = False, "setup", {}
        self.parameters, self.parameter_elements, self.samples, self.tokens = [], 0, 0, 0
        self.optimizer, self.mode, self.host_numbers = "", None, False

    # ---- what a user calls -------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def building(self):
        """Tensors made inside exist in name only (FakeTensorMode)."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        with self._as_on_a_gpu(), _Functions(self):
            yield self

    @contextlib.contextmanager
    def _as_on_a_gpu(self):
        with _gpu_ways(), _modules_replace_parameters(), self.mode or contextlib.nullcontext():
            yield

    def record(self, step, model=None, samples=0, tokens=0, steps=2):
        """Runs `step` and writes the file. `model` names the trained parameters. Models that were not made in building()
        are run as they are."""
        with self._as_on_a_gpu():
            self._run(step, model, samples, tokens, steps)
        self.write()

    def _run(self, step, model, samples, tokens, steps):
        self.samples, self.tokens = samples, tokens
        if model is not None:
            for tensor in list(model.parameters()) + list(model.buffers()):
                self.birth(tensor, "weights")
            self.parameters = [p for p in model.parameters() if p.requires_grad]
            self.parameter_elements = sum(p.numel() for p in self.parameters)
        hooks = [optimizers.register_optimizer_step_pre_hook(self._before_optimizer),
                 optimizers.register_optimizer_step_post_hook(self._after_optimizer)]
        backward = torch.autograd.backward
        torch.autograd.backward = self._backward_with_phase(backward)
        try:
            with _Functions(self), _Calls(self):
                for _ in range(steps):
                    self.records.append({"record": "step"})
                    self.phase, self.active = "forward", True
                    step()
                    self.active = False
                    self._classify(("gradients", "forward", "backward", "clipping"))
                    self.records.append({"record": "end"})
        finally:
            self.active = False
            torch.autograd.backward = backward
            for hook in hooks:
                hook.remove()

    # ---- phases ------------------------------------------------------------------------------------------------------
    def _backward_with_phase(self, backward):
        def wrapped(*args, **kwargs):
            before, self.phase = self.phase, "backward"
            self._classify(("forward",))
            try:
                return backward(*args, **kwargs)
            finally:
                self._classify(("gradients",))
                # Until the optimizer begins, or another micro-batch: what lies between clips gradients.
                self.phase = "clipping" if before != "backward" else before
        return wrapped

    def _before_optimizer(self, optimizer, args, kwargs):
        self.phase, self.optimizer = "optimizer", type(optimizer).__name__
        # Unless the optimizer is fused, its counters of steps are numbers in host memory.
        self.host_numbers = not (optimizer.defaults.get("fused") or optimizer.defaults.get("capturable"))

    def _after_optimizer(self, optimizer, args, kwargs):
        self._classify(("optimizer",))
        self.phase = "other"

    def _classify(self, what):
        """Gives storages born in a phase and still alive the category that their life so far tells."""
        if "gradients" in what:
            for parameter in self.parameters:
                if parameter.grad is not None:
                    record = self.watched.get(self._key(parameter.grad))
                    if record is not None:
                        record[1]["category"] = "gradients"
        category = {"forward": "activations", "optimizer": "optimizer_state"}
        for _, record, phase in self.watched.values():
            if phase in what and phase in category and record["category"] == "temporaries":
                record["category"] = category[phase]

    # ---- storages ----------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def unseen(self):
        before, self.active = self.active, False
        try:
            yield
        finally:
            self.active = before

    def on_host(self, tensor):
        return self.phase == "optimizer" and self.host_numbers and tensor.dim() == 0

    @staticmethod
    def _key(tensor):
        return tensor.untyped_storage()._cdata

    def birth(self, tensor, category="temporaries"):
        """The id of a tensor's storage; a new one where it was not seen before. None for what is not on the device."""
        if self.on_host(tensor):
            return None
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.watched:
            return self.watched[key][1]["id"]
        size = storage.nbytes()
        record = {"record": "storage", "id": len(self.births), "bytes": int(size), "category": category}
        self.births.append(record)
        self.records.append(record)
        self.watched[key] = (weakref.ref(storage, lambda _: self._death(key, record["id"])), record, self.phase)
        return record["id"]

    def _death(self, key, identity):
        entry = self.watched.get(key)
        if entry is not None and entry[1]["id"] == identity:
            del self.watched[key]
            if entry[1]["bytes"] > 0:
                self.records.append({"record": "free", "id": identity})

    # ---- calls -------------------------------------------------------------------------------------------------------
    def _tensor(self, tensor, category, with_storage=True):
        if not isinstance(tensor, torch.Tensor):
            return None
        described = {"type": TYPES.get(tensor.dtype, "fp32"), "sizes": [int(s) for s in tensor.shape]}
        if not tensor.is_contiguous():
            described["strides"] = [int(s) for s in tensor.stride()]
        if self.on_host(tensor):
            described["host"] = True
        elif with_storage:
            described["storage"] = self.birth(tensor, category)
        return described

    def _argument(self, value, names_storages):
        if isinstance(value, torch.Tensor):
            return self._tensor(value, "inputs")
        if isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            return value if value == value and abs(value) < 1e300 else str(value)
        if isinstance(value, str):
            return value
        if isinstance(value, torch.dtype):
            return TYPES.get(value, str(value))
        if isinstance(value, (list, tuple)):
            if any(isinstance(item, torch.Tensor) for item in value):
                return {"tensors": [self._tensor(item, "inputs", names_storages) for item in value
                                    if isinstance(item, torch.Tensor)]}
            if all(isinstance(item, (int, float, bool)) for item in value):
                return [float(item) if isinstance(item, float) else int(item) for item in value]
        return None

    def call(self, name, inputs, outputs):
        if self.phase == "clipping" and torch.is_grad_enabled():
            self.phase = "forward"  # of another micro-batch: gradients are clipped without recording a graph
        if name in VIEWS:
            for tensor in inputs:
                if isinstance(tensor, torch.Tensor):
                    self.birth(tensor, "inputs")
            for tensor in outputs if isinstance(outputs, (list, tuple)) else []:
                if isinstance(tensor, torch.Tensor):
                    self.birth(tensor)
            self.records.append({"record": "aten", "name": name, "phase": self.phase})
            return
        lists = not name.startswith(("aten::_foreach", "aten::_fused", "aten::_amp"))
        arguments = [self._argument(value, lists) for value in inputs]
        while arguments and arguments[-1] is None:
            arguments.pop()
        results = []
        for tensor in outputs if isinstance(outputs, (list, tuple)) else []:
            if isinstance(tensor, torch.Tensor):
                results.append(self._tensor(tensor, "temporaries"))
            elif isinstance(tensor, (list, tuple)):
                for item in tensor:
                    if isinstance(item, torch.Tensor):
                        self.birth(item)
        record = {"record": "aten", "name": name, "phase": self.phase}
        if arguments:
            record["in"] = arguments
        if results and lists:
            record["out"] = results
        self.records.append(record)

    # ---- the file ----------------------------------------------------------------------------------------------------
    def write(self):
        header = {"ridgeline": "op-trace", "version": VERSION, "producer": f"ridgeline_record, PyTorch {torch.__version__}",
                  "title": self.title, "precision": self.precision, "samples": self.samples, "tokens": self.tokens,
                  "parameters": self.parameter_elements, "model_flops": 0, "optimizer": self.optimizer, "notes": []}
        text = "\n".join(json.dumps(record, separators=(",", ":")) for record in [header] + self.records) + "\n"
        if str(self.path).endswith(".gz"):
            with open(self.path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
                file.write(text.encode())
        else:
            with open(self.path, "w") as file:
                file.write(text)
        calls = sum(1 for record in self.records if record["record"] == "aten")
        print(f"{self.path}: {calls} calls, {len(self.births)} storages", file=sys.stderr)


@contextlib.contextmanager
def _gpu_ways():
    """Lets Python code that asks for the kind of device take the way it takes on a GPU."""
    import torch.cuda.amp.common as amp
    import torch.nn.functional as functional
    import torch.nn.utils.clip_grad as clip_grad
    import torch.utils._foreach_utils as foreach
    from torch._subclasses.fake_tensor import FakeTensor
    replaced = []

    def replace(owner, name, value):
        if hasattr(owner, name):
            replaced.append((owner, name, getattr(owner, name)))
            setattr(owner, name, value)

    replace(amp, "amp_definitely_not_available", lambda: False)
    replace(torch.cuda, "is_bf16_supported", lambda *_, **__: True)
    devices = ["cuda", "cpu"]
    for owner in (optimizers, foreach):
        replace(owner, "_get_foreach_kernels_supported_devices", lambda: devices)
        replace(owner, "_get_fused_kernels_supported_devices", lambda: devices)
    for owner in (foreach, clip_grad):
        replace(owner, "_has_foreach_support", lambda tensors, device: True)
        replace(owner, "_device_has_foreach_support", lambda device: True)
    # Functions written in Python shall be seen through: what they call is what counts.
    for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
        replace(functional, name, lambda *_: False)
    types = getattr(optimizers, "_foreach_supported_types", [])
    types.append(FakeTensor)
    try:
        yield
    finally:
        types.remove(FakeTensor)
        for owner, name, value in reversed(replaced):
            setattr(owner, name, value)


@contextlib.contextmanager
def _modules_replace_parameters():
    """Module.to and its kin exchange tensors in place, which tensors without data do not allow: here they are replaced."""
    original, replaced = torch.nn.Module._apply, {}

    def apply(module, fn, recurse=True):
        if recurse:
            for child in module.children():
                child._apply(fn)
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            if id(parameter) not in replaced:  # tied weights stay tied
                with torch.no_grad():
                    new = fn(parameter)
                same = new is parameter or new.untyped_storage()._cdata == parameter.untyped_storage()._cdata
                new = parameter if same else torch.nn.Parameter(new, parameter.requires_grad)
                replaced[id(parameter)] = (parameter, new)
                replaced.setdefault(id(new), (new, new))
            module._parameters[name] = replaced[id(parameter)][1]
        for name, buffer in module._buffers.items():
            if buffer is not None:
                module._buffers[name] = fn(buffer)
        return module

    torch.nn.Module._apply = apply
    try:
        yield
    finally:
        torch.nn.Module._apply = original
