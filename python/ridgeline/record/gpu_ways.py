"""Lets PyTorch on a CPU take the ways of a GPU, for as long as a recording lasts."""
import contextlib
import sys

import torch
import torch.optim.optimizer as optimizers

from .older_pytorch import autocast_questions


def autocast_of_gpu(original):
    """autocast for the CPU, which stands for the GPU."""
    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if device_type == "cpu":
            device_type, dtype = "cuda", dtype or torch.bfloat16
        original(self, device_type, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
    return __init__


@contextlib.contextmanager
def gpu_ways():
    """Lets Python code that asks for the kind of device take the way it takes on a GPU. Gives a function to be called again
    when more libraries are imported."""
    import torch.cuda.amp.common as amp
    import torch.nn.functional as functional
    import torch.nn.utils.clip_grad as clip_grad
    import torch.utils._foreach_utils as foreach
    import torch.utils.checkpoint as checkpoint
    from torch._subclasses.fake_tensor import FakeTensor
    replaced = []

    def replace(owner, name, value):
        if hasattr(owner, name):
            replaced.append((owner, name, getattr(owner, name)))
            setattr(owner, name, value)

    replace(amp, "amp_definitely_not_available", lambda: False)
    replace(torch.cuda, "is_bf16_supported", lambda *_, **__: True)
    # A checkpointed segment runs again under the autocast of this kind of device.
    replace(checkpoint, "_infer_device_type", lambda *_: "cuda")
    devices = ["cuda", "cpu"]
    for owner in (optimizers, foreach):
        replace(owner, "_get_foreach_kernels_supported_devices", lambda: devices)
        replace(owner, "_get_fused_kernels_supported_devices", lambda: devices)
    for owner in (foreach, clip_grad):
        replace(owner, "_has_foreach_support", lambda tensors, device: True)
        replace(owner, "_device_has_foreach_support", lambda device: True)

    def of_imported():
        # Transformers looks at no values of tensors that it knows to have none.
        library = sys.modules.get("transformers.utils.import_utils")
        if not any(owner is library for owner, _, _ in replaced):
            replace(library, "is_fake_tensor", lambda *_: False)

    of_imported()
    for name, answer in autocast_questions().items():
        replace(torch, name, answer)
    replace(torch.amp.autocast_mode.autocast, "__init__", autocast_of_gpu(torch.amp.autocast_mode.autocast.__init__))
    # Functions written in Python shall be seen through: what they call is what counts.
    for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
        replace(functional, name, lambda *_: False)
    types = getattr(optimizers, "_foreach_supported_types", [])
    types.append(FakeTensor)
    try:
        yield of_imported
    finally:
        types.remove(FakeTensor)
        for owner, name, value in reversed(replaced):
            setattr(owner, name, value)


@contextlib.contextmanager
def modules_replace_parameters():
    """Module.to and its kin exchange tensors in place, which tensors without data do not allow: here they are replaced."""
    original, replaced, around = torch.nn.Module._apply, {}, []

    def apply(module, fn, recurse=True):
        if not around:
            replaced.clear()  # of the call before: .to(device) and then .to(type) both count
        around.append(module)
        try:
            return replace_in(module, fn, recurse)
        finally:
            around.pop()

    def replace_in(module, fn, recurse):
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
