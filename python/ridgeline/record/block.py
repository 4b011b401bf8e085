"""A training loop recorded as it is: which tensors lie on the GPU, where steps end, what of them is kept.

A tensor in host memory has values and what is done with it is not recorded. On the GPU, in name only, is what was moved there
(.to("cuda"), device="cuda"), parameters, what a module's forward pass, a backward pass or an optimizer touches, and all that
is made of those. So a loop that never says "cuda" is recorded too."""
import contextlib
import weakref

import torch
import torch.nn.modules.module as modules
import torch.optim.optimizer as optimizers
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from torch.utils._pytree import tree_map
from torch.utils.weak import WeakTensorKeyDictionary

from . import NotRecorded
from .gpu_ways import gpu_ways, modules_replace_parameters
from .modes import Calls, Functions
from .older_pytorch import allowed_tf32
from .recorder import Recorder, TYPES, VIEWS
from .stand_ins import stand_ins
from .steps import Steps

NO_STEP = ("no optimizer step was seen: a step ends where step() of a torch.optim.Optimizer returns, "
           "after a forward and a backward pass")


READS = {"aten::_local_scalar_dense", "aten::detach", "aten::_to_copy", "aten::isnan", "aten::isinf"}


class StepsSeen(BaseException):
    """Ends a loop whose steps were seen; no mistake, and not caught by `except Exception`."""


def tensors_of(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_of(value)


class Block(Recorder):
    """`with Block(path): loop()`. `stop_after` steps the loop is ended, if it is given."""

    def __init__(self, path, *, title="", precision="", samples=0, tokens=0, stop_after=None):
        super().__init__(path, title, precision)
        self.samples, self.tokens, self.stop_after = samples, tokens, stop_after
        self.begun, self.leader = False, None
        self.steps = Steps(self.records)
        self.forced = 0                                # calls that ask for the GPU, of which this is inside
        self.hiding = 0                                # work of the recorder itself, that no file shows
        self.foreign = WeakTensorKeyDictionary()       # tensors with values, of other devices and modes: what stands for them
        self.made = WeakTensorKeyDictionary()          # parameters: what was registered for them
        self.stepped = weakref.WeakSet()
        self.precisions = []
        self.modules.on_root = self._adopt

    # ---- begin and end -----------------------------------------------------------------------------------------------
    def __enter__(self):
        self.mode = next((mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, FakeTensorMode)),
                         None) or FakeTensorMode(allow_non_fake_inputs=True)
        with contextlib.ExitStack() as stack:
            self.ways_of_imported = stack.enter_context(gpu_ways())
            for context in (modules_replace_parameters(), stand_ins(self), self.modules):
                stack.enter_context(context)
            for hook in (optimizers.register_optimizer_step_pre_hook(self._before_optimizer),
                         optimizers.register_optimizer_step_post_hook(self._after_optimizer),
                         modules.register_module_parameter_registration_hook(self._registered)):
                stack.callback(hook.remove)
            stack.callback(setattr, torch.autograd, "backward", torch.autograd.backward)
            torch.autograd.backward = self._backward_with_phase(torch.autograd.backward)
            functions = stack.enter_context(Functions(self))
            stack.enter_context(functions.during_backward())
            stack.enter_context(Calls(self))
            self.leave = stack.pop_all()
        return self

    def __exit__(self, kind, error, trace):
        self.active = False
        self.leave.close()
        if kind is not None and not issubclass(kind, StepsSeen):
            return False
        if self.steps.count == 0:
            raise NotRecorded(NO_STEP)
        if self.steps.count == 1:
            self.notes.add("one step was recorded: it is the first, in which the optimizer makes its states")
        self.records = self.steps.whole()
        self.births = [record for record in self.records if record["record"] == "storage"]
        self.precision = self.precision or self._precision()
        self.write()
        return kind is not None

    def _begin(self):
        self.records.append({"record": "step"})
        self.begun, self.active = True, True

    def _precision(self):
        if self.precisions:
            return "amp-" + TYPES[self.precisions[0]]
        floating = [p for p in self.parameters if p.is_floating_point()]
        if floating and all(p.dtype == torch.bfloat16 for p in floating):
            return "bf16"
        return "tf32" if allowed_tf32()["matmul_tf32"] else "fp32"

    # ---- where tensors lie -------------------------------------------------------------------------------------------
    def is_ours(self, tensor):
        return isinstance(tensor, FakeTensor) and tensor.fake_mode is self.mode

    def on_gpu(self, tensor):
        return self.is_ours(tensor) or tensor.requires_grad

    def takes(self, args, kwargs, func=None):
        tensors = [*tensors_of(args), *tensors_of(kwargs.values())]
        if any(isinstance(tensor, FakeTensor) or tensor.requires_grad or tensor.is_meta for tensor in tensors):
            return True
        if not (self.forced or self.modules.running or self.phase in ("backward", "optimizer")):
            return False
        # Numbers as tensors stay in host memory, on which the program may ask for them.
        if not tensors:
            return func is None or not any(argument.type.kind() == "TensorType" for argument in func._schema.arguments)
        return self.forced > 0 or self.phase == "optimizer" or any(
            tensor.dim() > 0 or id(tensor) in self.modules.owners for tensor in tensors)

    def has_value(self, tensor):
        return not isinstance(tensor, FakeTensor) and tensor.device.type == "cpu"

    @contextlib.contextmanager
    def hidden(self):
        self.inside += 1
        try:
            yield
        finally:
            self.inside -= 1

    @contextlib.contextmanager
    def unseen(self):
        self.forced, self.hiding = self.forced + 1, self.hiding + 1
        try:
            with super().unseen():
                yield
        finally:
            self.forced, self.hiding = self.forced - 1, self.hiding - 1

    def blank(self, tensor):
        """A tensor on the GPU of the same shape."""
        with self.hidden(), self.mode, torch.no_grad():
            return torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="cpu")

    def stand_in(self, tensor):
        if not isinstance(tensor, torch.Tensor) or self.is_ours(tensor):
            return tensor
        if tensor not in self.foreign:
            if self.has_value(tensor):
                with self.hidden():
                    self.foreign[tensor] = self.mode.from_tensor(tensor)
            else:
                self.foreign[tensor] = self.blank(tensor)
        return self.foreign[tensor]

    def run(self, func, args, kwargs):
        if func._schema.name != "aten::lift_fresh":
            args, kwargs = tree_map(self.stand_in, args), tree_map(self.stand_in, kwargs)
        try:
            with self.hidden(), self.mode:
                return func(*args, **kwargs)
        except NotImplementedError as mistake:
            if not func._schema.returns:  # what it writes is among its arguments
                return None
            if func.namespace in ("aten", "prims"):
                raise
            raise NotRecorded(f"{func._schema.name} does not say what it returns: torch.library.register_fake does") from mistake

    def to_device(self, tensor, waits=True):
        """A copy on the GPU of a tensor in host memory."""
        if not self.has_value(tensor) or tensor.requires_grad or self.inside:
            return tensor
        copy = self.blank(tensor)
        if self.active:
            self.birth(copy, "inputs")
            described = {**self._tensor(tensor, "inputs", with_storage=False), "host": True}
            self.records.append(self._in_module({"record": "aten", "name": "aten::_to_copy", "phase": self.phase,
                                                 "in": [described], "out": [self._tensor(copy, "inputs")]}))
            if waits:
                self.wait()
        return copy

    def to_host(self, tensor):
        """Zeros in the place of what the GPU computed."""
        if self.active:
            described = {**self._tensor(tensor, "temporaries", with_storage=False), "host": True}
            self.records.append(self._in_module({"record": "aten", "name": "aten::_to_copy", "phase": self.phase,
                                                 "in": [self._tensor(tensor, "temporaries")], "out": [described]}))
            self.wait()
        with self.hidden(), torch.no_grad():
            return torch.zeros(tuple(tensor.shape), dtype=tensor.dtype)

    def asked_of_gpu(self, func, name, args, kwargs):
        """A function that was given "cuda"."""
        if name == "to" and args:
            args = (self.to_device(args[0], waits=not kwargs.get("non_blocking")), *args[1:])
        self.forced += 1
        try:
            made = func(*args, **kwargs)
        finally:
            self.forced -= 1
        return self.to_device(made) if isinstance(made, torch.Tensor) else made

    def birth(self, tensor, category="temporaries", module=None):
        return super().birth(self.stand_in(tensor), category, module)

    # ---- models and their parameters -------------------------------------------------------------------------------
    def _registered(self, module, name, parameter):
        """Parameters made in the block need no memory."""
        if type(parameter) is not torch.nn.Parameter or self.is_ours(parameter) or self.inside:
            return None
        return self._in_name_only(parameter)

    def _in_name_only(self, parameter):
        if parameter not in self.made:
            with self.hidden():
                self.made[parameter] = torch.nn.Parameter(self.blank(parameter), parameter.requires_grad)
        return self.made[parameter]

    def _adopt(self, model):
        """A network whose forward pass begins for the first time."""
        self.ways_of_imported()
        for module in model.modules():
            for name, parameter in module._parameters.items():
                if parameter is not None and not self.is_ours(parameter) and not self.has_value(parameter):
                    module._parameters[name] = self._in_name_only(parameter)
        self.modules.name(model)
        for tensor in [*model.parameters(), *model.buffers()]:
            self._is_weight(tensor)
        known = {id(parameter) for parameter in self.parameters}
        self.parameters += [p for p in model.parameters() if p.requires_grad and id(p) not in known]
        if type(model).__name__ == "OptimizedModule":
            self.notes.add("torch.compile: recorded as eager code")

    def _is_weight(self, tensor):
        self.birth(tensor, "weights", self.modules.owner(tensor))
        entry = self.watched.get(self._key(self.stand_in(tensor)))
        if entry is not None:
            entry[1]["category"] = "weights"

    # ---- steps -------------------------------------------------------------------------------------------------------
    def _before_optimizer(self, optimizer, args, kwargs):
        super()._before_optimizer(optimizer, args, kwargs)
        if optimizer not in self.stepped and self.begun:
            self.stepped.add(optimizer)
            self._meet(optimizer)
        return (tuple(map(self._closure, args)), {name: self._closure(value) for name, value in kwargs.items()})

    def _closure(self, value):
        """A forward and a backward pass that step() itself runs."""
        if not callable(value) or isinstance(value, (torch.Tensor, torch.optim.Optimizer)):
            return value

        def closure(*args, **kwargs):
            before, self.phase = self.phase, "other" if self.begun else "setup"
            try:
                return value(*args, **kwargs)
            finally:
                self.phase = before
        return closure

    def _meet(self, optimizer):
        """Before its first step: what it trains, and the states that it has."""
        known = {id(parameter) for parameter in self.parameters}
        for group in optimizer.param_groups:
            group["params"] = [self.made.get(parameter, parameter) for parameter in group["params"]]
            for parameter in group["params"]:
                self._is_weight(parameter)
                if parameter.requires_grad and id(parameter) not in known:
                    self.parameters.append(parameter)
        for state in optimizer.state.values():
            for value in state.values() if isinstance(state, dict) else ():
                if isinstance(value, torch.Tensor) and value.dim() > 0:
                    self.birth(value, "optimizer_state")

    def _after_optimizer(self, optimizer, args, kwargs):
        super()._after_optimizer(optimizer, args, kwargs)
        if not self.begun:
            return
        if self.leader is None or self.leader() is None:
            self.leader = weakref.ref(optimizer)
        if self.leader() is not optimizer:  # of several, the first to step ends the step
            return
        self._classify(("gradients", "forward", "backward", "clipping"))
        self.parameter_elements = sum(p.numel() for p in self.parameters)
        self.steps.end()
        if self.stop_after is not None and self.steps.count >= self.stop_after:
            self.active = False
            raise StepsSeen

    def _follow_phase(self, name, inputs):
        """A forward pass begins where a graph is recorded, and not where a value is read."""
        if self.phase in ("setup", "clipping", "other") and torch.is_grad_enabled():
            if self.modules.running or name not in READS | VIEWS and any(x.requires_grad for x in tensors_of(inputs)):
                if not self.begun:
                    self._begin()
                self.phase = "forward"

    def call(self, name, inputs, outputs):
        if self.hiding:
            return
        if not self.begun:
            self._follow_phase(name, inputs)
        if self.active:
            super().call(name, inputs, outputs)

    def lowered(self, kind):
        if self.begun and kind not in self.precisions:
            self.precisions.append(kind)

    def wait(self):
        if self.active:
            super().wait()
