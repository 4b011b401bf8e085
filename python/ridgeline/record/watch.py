"""Notes what one forward pass of a module calls: operations, modules with parameters, and the deaths of variables.

Tensors have no elements there. ridgeline.record.program makes a program of three such passes.
"""
import weakref

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from . import NotRecorded

FREE = {"size", "dim", "numel", "is_floating_point", "detach", "requires_grad_", "__len__", "get_device", "stride", "storage_offset",
        "data_ptr", "__hash__", "is_contiguous", "__format__", "__repr__", "__bool__", "__index__"}



def no_bias(module):
    return "" if module.bias is not None else ", bias=False"


def alike(name, value):
    if len(set(value)) != 1:
        raise NotRecorded(f"{name} of {tuple(value)}: a program's convolutions take equal steps along all sides")
    return value[0]


def convolution(kind, m):
    if m.dilation != (1,) * len(m.dilation) or m.padding_mode != "zeros" or isinstance(m.padding, str):
        raise NotRecorded(f"{m}: no such convolution in a program")
    text = f"{kind}({m.in_channels}, {m.out_channels}, {alike('kernel', m.kernel_size)}"
    for name, value in (("stride", alike("stride", m.stride)), ("padding", alike("padding", m.padding)), ("groups", m.groups)):
        if value != (0 if name == "padding" else 1):
            text += f", {name}={value}"
    return text + no_bias(m) + ")"


KINDS = {  # modules with parameters that a program declares
    nn.Linear: lambda m: f"linear({m.in_features}, {m.out_features}{no_bias(m)})",
    nn.Embedding: lambda m: f"embedding({m.num_embeddings}, {m.embedding_dim})",
    nn.LayerNorm: lambda m: f"layer_norm({m.normalized_shape[0]}{no_bias(m)})",
    nn.BatchNorm2d: lambda m: f"batch_norm({m.num_features})",
    nn.GroupNorm: lambda m: f"group_norm({m.num_groups}, {m.num_channels})",
    nn.Conv1d: lambda m: convolution("conv1d", m),
    nn.Conv2d: lambda m: convolution("conv2d", m),
}

class Line:
    """An operation, a call of a module, or the death of a variable."""

    def __init__(self, what, name="", inputs=(), outputs=(), module=None):
        self.what, self.name, self.inputs, self.outputs, self.module = what, name, list(inputs), list(outputs), module
        self.lines = []  # of a module that is no kind


class Value:
    """A tensor by its number."""

    def __init__(self, number):
        self.number = number


class Watch(TorchFunctionMode):
    """Notes operations and calls of modules of one forward pass."""

    def __init__(self, model):
        super().__init__()
        self.model, self.numbers, self.alive = model, 0, True
        self.stack, self.silent, self.sides = [Line("module", module=model)], 0, {}
        self.names = {id(module): name for name, module in model.named_modules()}
        self.weighty = {id(module) for module in model.modules() if next(module.parameters(), None) is not None}
        self.own = {}
        for name, tensor in list(model.named_parameters()) + list(model.named_buffers()):
            self.own[id(tensor)] = (name, tensor)

    def value(self, tensor):
        if id(tensor) in self.own and self.own[id(tensor)][1] is tensor:
            return "self." + self.own[id(tensor)][0]
        number = getattr(tensor, "_ridgeline_number", None)
        if number is None:
            self.numbers += 1
            number = tensor._ridgeline_number = self.numbers
            if tensor.dim() == 4:
                self.sides[number] = tuple(tensor.shape[2:])
            weakref.finalize(tensor, self.died, number)
        return Value(number)

    def died(self, number):
        if self.alive:
            self.stack[-1].lines.append(Line("del", inputs=[Value(number)]))

    def noted(self, given):
        if isinstance(given, torch.Tensor):
            return self.value(given)
        if isinstance(given, (list, tuple)):
            return [self.noted(one) for one in given]
        if isinstance(given, slice):
            return slice(given.start, given.stop, given.step)
        return given

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = getattr(func, "__name__", str(func))
        if self.silent or name in FREE or not has_tensor(result):
            return result
        if name == "__get__":
            raise NotRecorded("a property of a tensor that is a tensor (x.T, x.mT, x.data) has no place in a program")
        if result is (args[0] if args else None) and not name.endswith("_") and not name.startswith("__i"):
            return result  # x.to(x.dtype), x.contiguous() of what is so already
        inputs = [self.noted(one) for one in args] + [(key, self.noted(value)) for key, value in kwargs.items()]
        outputs = [self.value(one) for one in tensors_of(result)]
        self.stack[-1].lines.append(Line("op", name, inputs, outputs))
        return result

    def dropped(self, original, module, x):
        """A branch that is set to zero by chance, as one operation."""
        self.silent += 1
        try:
            result = original(module, x)
        finally:
            self.silent -= 1
        if result is not x:
            share = getattr(module, "p", None) or getattr(module, "drop_prob", 0.0)
            self.stack[-1].lines.append(Line("op", "drop_path", [self.value(x), float(share)], [self.value(result)]))
        return result

    def called(self, original):
        watch = self

        def call(module, *args, **kwargs):
            if not watch.silent and drops_paths(module):
                return watch.dropped(original, module, *args)
            if watch.silent or id(module) not in watch.weighty:  # activations, dropout, pools: their operations alone
                return original(module, *args, **kwargs)
            line = Line("module", inputs=[watch.noted(one) for one in list(args) + list(kwargs.values())], module=module)
            kind = type(module) in KINDS
            if not kind:
                watch.stack.append(line)
            watch.silent += kind
            try:
                result = original(module, *args, **kwargs)
            finally:
                watch.silent -= kind
                if not kind:
                    watch.stack.pop()
            line.outputs = [watch.value(one) for one in tensors_of(result)]
            watch.stack[-1].lines.append(line)
            return result

        return call


def drops_paths(module):
    """Modules that set whole branches to zero: torchvision's, timm's and Transformers'."""
    name = type(module).__name__
    return name == "StochasticDepth" or name.endswith("DropPath")


def tensors_of(result):
    """In their order; Transformers' outputs are mappings."""
    if isinstance(result, torch.Tensor):
        return [result]
    if hasattr(result, "values") and hasattr(result, "keys"):
        result = list(result.values())
    return [one for part in result for one in tensors_of(part)] if isinstance(result, (list, tuple)) else []


def has_tensor(result):
    return bool(tensors_of(result))


def watched(make, batch, length):
    """Lines of one forward pass, the numbers of its inputs and of its loss."""
    with torch.device("meta"):
        model, inputs = make(batch, length)
        watch = Watch(model)
        numbers = [watch.value(one) for one in inputs]
        original = nn.Module.__call__
        nn.Module.__call__ = watch.called(original)
        try:
            with watch:
                loss = model(*inputs)
        finally:
            nn.Module.__call__ = original
        watch.alive = False
    if not has_tensor(loss):
        raise NotRecorded("the model returns no tensor; expected its loss")
    return watch, numbers, watch.value(tensors_of(loss)[0]), [tuple(one.shape) for one in inputs], [one.dtype for one in inputs]
