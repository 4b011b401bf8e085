#!/usr/bin/env python3
"""Records a PyTorch training step as a Ridgeline op trace, on a machine without a GPU.

    from ridgeline_record import Recorder

    recorder = Recorder("bert.jsonl.gz", title="BERT-base, 8 x 128")
    with recorder.building():                  # tensors made here exist in name only: no GPU, no memory
        model = Model()
        inputs = torch.randint(0, 30000, (8, 128))
    optimizer = torch.optim.AdamW(model.parameters())
    recorder.record(step, model=model, samples=8, tokens=8 * 128)

`step()` does one whole training step (forward, backward, optimizer, zero_grad) as on the GPU, torch.autocast("cuda") and
all; it is run twice, because the first step creates the optimizer's states. Then:

    ridgeline replay bert.jsonl.gz --hardware nvidia-a100-sxm4-80gb

What is recorded are the calls of PyTorch's dispatcher below autograd and autocast, with shapes, types, strides and
storages, and when each storage is born and dies. docs/op-trace.md describes the file. Needs PyTorch 2.5 or newer.

Limits: values do not exist, so code that branches on them takes one way (.item() gives 1 for tensors in host memory and 0
for others). scaled_dot_product_attention is recorded as one call; which kernel runs is decided when it is replayed.
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
ATTENTION = "aten::scaled_dot_product_attention"


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


class _Functions(TorchFunctionMode):
    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.nn.functional.scaled_dot_product_attention and self.recorder.active:
            return self.attention(*args, **kwargs)
        return func(*args, **kwargs)

    def attention(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        device = query.device.type
        if torch.is_autocast_enabled(device):
            kind = torch.get_autocast_dtype(device)
            query, key, value = (x.to(kind) if x.is_floating_point() else x for x in (query, key, value))
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
        out = func(*args, **kwargs)
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
    """One recording. `device` is what stands for the GPU; "cuda" needs none to be there."""

    def __init__(self, path, title="", device="cuda", precision=""):
        self.path, self.title, self.device, self.precision = path, title, torch.device(device), precision
        self.records, self.births, self.ids, self.watched = [], [], {}, {}
        self.active, self.phase, self.counted = False, "setup", {}
        self.parameters, self.parameter_elements, self.samples, self.tokens = [], 0, 0, 0
        self.optimizer, self.mode = "", None

    # ---- what a user calls -------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def building(self):
        """Tensors made inside exist in name only (FakeTensorMode), on `device`."""
        with self._in_name_only(), self.device:
            yield self

    @contextlib.contextmanager
    def _in_name_only(self):
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
        with contextlib.ExitStack() as stack:
            if self.mode is None:
                self.mode = FakeTensorMode(allow_non_fake_inputs=True)
            if self.device.type == "cuda" and not torch.cuda.is_available():
                stack.enter_context(_pretend_cuda())
            stack.enter_context(_fake_tensors_use_foreach(FakeTensor))
            stack.enter_context(_modules_replace_parameters())
            stack.enter_context(self.mode)
            yield

    def record(self, step, model=None, samples=0, tokens=0, steps=2):
        """Runs `step` and writes the file. `model` names the trained parameters. Models that were not made in building()
        are run as they are."""
        with self._in_name_only() if self.mode is not None else contextlib.nullcontext():
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
        if tensor.device.type != self.device.type:
            return True
        # Where the CPU stands for the GPU: numbers that optimizers keep in host memory.
        return self.device.type == "cpu" and tensor.dim() == 0 and self.phase == "optimizer"

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
def _pretend_cuda():
    """Lets Python code that asks whether a GPU is there take the way it takes on one, and starts no driver."""
    if hasattr(torch._C, "_ensureCUDADeviceGuardSet"):
        torch._C._ensureCUDADeviceGuardSet()
    replaced = []

    def replace(owner, name, value):
        if hasattr(owner, name):
            replaced.append((owner, name, getattr(owner, name)))
            setattr(owner, name, value)

    replace(torch.cuda, "is_bf16_supported", lambda *_, **__: True)
    replace(torch.cuda, "current_device", lambda: 0)
    replace(torch.cuda, "_lazy_init", lambda: None)
    replace(torch.cuda, "synchronize", lambda *_: None)
    import torch.cuda.amp.common as common
    replace(common, "amp_definitely_not_available", lambda: False)
    try:
        yield
    finally:
        for owner, name, value in reversed(replaced):
            setattr(owner, name, value)


@contextlib.contextmanager
def _fake_tensors_use_foreach(fake_tensor):
    """Optimizers and clipping take their multi-tensor way for plain tensors only, by type: as they would on a GPU."""
    import torch.nn.utils.clip_grad as clip_grad
    import torch.optim.optimizer as optimizer
    import torch.utils._foreach_utils as foreach_utils
    types = getattr(optimizer, "_foreach_supported_types", None)
    if types is not None:
        types.append(fake_tensor)
    replaced = []
    for owner in (foreach_utils, clip_grad):
        if hasattr(owner, "_has_foreach_support"):
            replaced.append((owner, owner._has_foreach_support))
            owner._has_foreach_support = lambda tensors, device: device.type in ("cuda", "cpu")
    try:
        yield
    finally:
        if types is not None:
            types.remove(fake_tensor)
        for owner, original in replaced:
            owner._has_foreach_support = original


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
