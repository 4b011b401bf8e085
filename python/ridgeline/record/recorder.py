"""The recorder: phases of a step, storages and their lives, calls, the file."""
import contextlib
import gzip
import json
import sys
import weakref

import torch
import torch.optim.optimizer as optimizers

from .gpu_ways import gpu_ways, modules_replace_parameters
from .modes import Calls, Functions
from .module_names import ModuleNames
from .older_pytorch import allowed_tf32

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


class Notes(dict):
    """Texts, each once, in the order they came."""

    def add(self, text):
        self[text] = True


class Recorder:
    """One recording of a function that makes a step. `precision` is noted in the file: fp32, tf32, amp-fp16, amp-bf16 or bf16."""

    def __init__(self, path, title="", precision=""):
        self.path, self.title, self.precision = path, title, precision
        self.called = path  # what the message at the end names
        self.records, self.births, self.ids, self.watched = [], [], {}, {}
        self.active, self.phase, self.counted = False, "setup", {}
        self.marked = {}  # by storage: which part of a mask is true
        self.held = set()  # storages of what .all() gave: questions whose answer is taken to be yes
        self.parameters, self.parameter_elements, self.samples, self.tokens = [], 0, 0, 0
        self.optimizer, self.mode, self.host_numbers = "", None, False
        self.modules = ModuleNames(self.records.append)
        self.notes, self.inside = Notes(), 0  # calls of the recorder itself that are under way

    # ---- what a user calls -------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def building(self):
        """Tensors made inside exist in name only (FakeTensorMode)."""
        from torch._subclasses.fake_tensor import FakeTensorMode
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        with self._as_on_a_gpu(), Functions(self):
            yield self

    @contextlib.contextmanager
    def _as_on_a_gpu(self):
        with gpu_ways(), modules_replace_parameters(), self.mode or contextlib.nullcontext():
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
            self.modules.name(model)
            for tensor in list(model.parameters()) + list(model.buffers()):
                self.birth(tensor, "weights", self.modules.owner(tensor))
            self.parameters = [p for p in model.parameters() if p.requires_grad]
            self.parameter_elements = sum(p.numel() for p in self.parameters)
        hooks = [optimizers.register_optimizer_step_pre_hook(self._before_optimizer),
                 optimizers.register_optimizer_step_post_hook(self._after_optimizer)]
        backward = torch.autograd.backward
        torch.autograd.backward = self._backward_with_phase(backward)
        try:
            with self.modules, Functions(self) as functions, functions.during_backward(), Calls(self):
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

    # ---- where tensors lie; here, all on the GPU ----------------------------------------------------------------------
    def takes(self, args, kwargs, func=None):
        """Whether a call is the GPU's."""
        return self.active

    def is_ours(self, tensor):
        """Whether it is a tensor that has no values because it stands for one on the GPU."""
        return False

    def on_gpu(self, tensor):
        """Whether .is_cuda shall say so."""
        return False

    def has_value(self, tensor):
        """Whether it is a tensor in host memory whose elements are there."""
        return False

    def stand_in(self, tensor):
        return tensor

    def run(self, func, args, kwargs):
        return func(*args, **kwargs)

    def to_device(self, tensor):
        return tensor

    def asked_of_gpu(self, func, name, args, kwargs):
        return func(*args, **kwargs)

    def lowered(self, kind):
        """Autocast runs a function in this type."""

    def wait(self):
        self.records.append({"record": "wait"})

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
                    record = self.watched.get(self._key(self.stand_in(parameter.grad)))
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

    def birth(self, tensor, category="temporaries", module=None):
        """The id of a tensor's storage; a new one where it was not seen before. None for what is not on the device.
        `module` is the number of the one that has it, or that which runs."""
        if self.on_host(tensor):
            return None
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.watched:
            return self.watched[key][1]["id"]
        size = storage.nbytes()
        record = {"record": "storage", "id": len(self.births), "bytes": int(size), "category": category}
        if number := self.modules.current() if module is None else module:
            record["module"] = number
        self.births.append(record)
        self.records.append(record)
        self.watched[key] = (weakref.ref(storage, lambda _: self._death(key, record["id"])), record, self.phase)
        return record["id"]

    def _death(self, key, identity):
        self.marked.pop(key, None)
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

    def _follow_phase(self, name, inputs):
        if self.phase == "clipping" and torch.is_grad_enabled():
            self.phase = "forward"  # of another micro-batch: gradients are clipped without recording a graph

    def call(self, name, inputs, outputs):
        self._follow_phase(name, inputs)
        if name in VIEWS:
            for tensor in inputs:
                if isinstance(tensor, torch.Tensor):
                    self.birth(tensor, "inputs")
            for tensor in outputs if isinstance(outputs, (list, tuple)) else []:
                if isinstance(tensor, torch.Tensor):
                    self.birth(tensor)
            self.records.append(self._in_module({"record": "aten", "name": name, "phase": self.phase}))
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
        self.records.append(self._in_module(record))

    def _in_module(self, record):
        if number := self.modules.current():
            record["module"] = number
        return record

    # ---- the file ----------------------------------------------------------------------------------------------------
    def write(self):
        header = {"ridgeline": "op-trace", "version": VERSION, "producer": f"ridgeline_record, PyTorch {torch.__version__}",
                  "title": self.title, "precision": self.precision, **allowed_tf32(), "samples": self.samples, "tokens": self.tokens,
                  "parameters": self.parameter_elements, "model_flops": 0, "optimizer": self.optimizer, "notes": list(self.notes)}
        text = "\n".join(json.dumps(record, separators=(",", ":")) for record in [header] + self.records) + "\n"
        if str(self.path).endswith(".gz"):
            with open(self.path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
                file.write(text.encode())
        else:
            with open(self.path, "w") as file:
                file.write(text)
        calls = sum(1 for record in self.records if record["record"] == "aten")
        print(f"{self.called}: {calls} calls, {len(self.births)} storages", file=sys.stderr)
