"""Names that differ between PyTorch 2.1 and later versions."""
import contextlib

import torch
import torch.autograd as autograd


try:
    from torch.overrides import _get_current_function_mode_stack as function_modes
except ImportError:
    def function_modes():
        return [torch._C._get_function_stack_at(i) for i in range(torch._C._len_torch_function_stack())]

_is_enabled = torch.is_autocast_enabled
_takes_device = hasattr(torch, "get_autocast_dtype")  # from 2.4 on
_dtype_of = getattr(torch, "get_autocast_dtype", None)


def autocast_type():
    """The type that autocast lowers to; None where it is off."""
    if _takes_device:
        return next((_dtype_of(device) for device in ("cuda", "cpu") if _is_enabled(device)), None)
    if _is_enabled():
        return torch.get_autocast_gpu_dtype()
    return torch.get_autocast_cpu_dtype() if torch.is_autocast_cpu_enabled() else None


def allowed_tf32():
    """Whether fp32 matmuls and convolutions may use TF32, by the names of the file's header. Since PyTorch 2.9 the older
    switches may not be asked where a script uses the newer ones."""
    getter = getattr(torch._C, "_get_fp32_precision_getter", None)
    if getter is not None:
        return {"matmul_tf32": getter("cuda", "matmul") == "tf32", "cudnn_tf32": getter("cuda", "conv") == "tf32"}
    return {"matmul_tf32": bool(torch.backends.cuda.matmul.allow_tf32), "cudnn_tf32": bool(torch.backends.cudnn.allow_tf32)}


def autocast_questions():
    """torch.is_autocast_enabled and torch.get_autocast_dtype where the CPU stands for the GPU: by name."""
    if not _takes_device:
        return {}
    return {"is_autocast_enabled": lambda device="cuda": _is_enabled("cuda" if device == "cpu" else device),
            "get_autocast_dtype": lambda device="cuda": _dtype_of("cuda" if device == "cpu" else device)}


@contextlib.contextmanager
def around_backward(around):
    """Enters `around()` whenever the autograd engine runs."""
    if hasattr(autograd, "_engine_run_backward"):
        engine = autograd._engine_run_backward

        def run(*args, **kwargs):
            with around():
                return engine(*args, **kwargs)

        autograd._engine_run_backward = run
        try:
            yield
        finally:
            autograd._engine_run_backward = engine
        return
    engine = autograd.Variable._execution_engine

    class Engine:
        def __getattr__(self, name):
            return getattr(engine, name)

        def run_backward(self, *args, **kwargs):
            with around():
                return engine.run_backward(*args, **kwargs)

    autograd.Variable._execution_engine = Engine()
    try:
        yield
    finally:
        autograd.Variable._execution_engine = engine


def sequence_number():
    """Of the next node of autograd; None where PyTorch does not tell."""
    of_next = getattr(autograd, "_get_sequence_nr", None) or getattr(torch._C._autograd, "_get_sequence_nr", None)
    return of_next() if of_next is not None else None


def number_of(node):
    return node._sequence_nr() if hasattr(node, "_sequence_nr") else None


def safe_softmax(scores):
    if hasattr(torch.ops.aten, "_safe_softmax"):
        return torch.ops.aten._safe_softmax(scores, -1)
    return torch.softmax(scores, -1)
