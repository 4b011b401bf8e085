"""What torch.cuda and its neighbours answer while a training loop is recorded on a machine without a GPU."""
import contextlib
import importlib
import importlib.util
import sys
import types

import torch
import torch.utils.data

GIB = 1 << 30
# Asked for by programs that choose a way by the device: of a GPU that has all that training uses. Which GPU the step is
# predicted on is said later.
PROPERTIES = types.SimpleNamespace(name="GPU", major=8, minor=0, total_memory=80 * GIB, multi_processor_count=108,
                                   warp_size=32, max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
                                   shared_memory_per_multiprocessor=164 << 10, L2_cache_size=40 << 20, is_integrated=False,
                                   is_multi_gpu_board=False, gcnArchName="", uuid="")


class Stream:
    """Of work that is recorded in the order of the program."""
    cuda_stream, stream_id, device_index, device_type, device = 0, 0, 0, 1, torch.device("cpu")

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def query(self):
        return True

    def record_event(self, event=None):
        return event or Event()

    def nothing(self, *_, **__):
        pass

    synchronize = wait_stream = wait_event = nothing


class Event:
    def __init__(self, *_, **__):
        pass

    def query(self):
        return True

    def elapsed_time(self, _):
        return 1.0  # milliseconds

    def nothing(self, *_, **__):
        pass

    record = wait = synchronize = nothing


def _cuda_answers(wait):
    """Functions of torch.cuda by name. `wait` is called where the host waits for the GPU."""
    def always(value):
        return lambda *_, **__: value

    answers = {name: always(value) for name, value in {
        "is_available": True, "is_bf16_supported": True, "is_initialized": False, "device_count": 1, "current_device": 0,
        "get_device_name": PROPERTIES.name, "get_device_capability": (PROPERTIES.major, PROPERTIES.minor),
        "get_device_properties": PROPERTIES, "get_arch_list": ["sm_80"], "is_current_stream_capturing": False,
        "can_device_access_peer": False, "mem_get_info": (70 * GIB, PROPERTIES.total_memory), "memory_allocated": 0,
        "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0, "memory_stats": {}, "memory_summary": "",
        "utilization": 0, "initial_seed": 0}.items()}
    for name in ("set_device", "empty_cache", "ipc_collect", "reset_peak_memory_stats", "reset_max_memory_allocated",
                 "reset_max_memory_cached", "reset_accumulated_memory_stats", "set_per_process_memory_fraction", "manual_seed",
                 "manual_seed_all", "seed", "seed_all", "init", "_lazy_init", "set_rng_state", "set_rng_state_all",
                 "set_stream"):
        answers[name] = always(None)
    answers.update(
        synchronize=lambda *_, **__: wait(), Stream=Stream, Event=Event, current_stream=Stream, default_stream=Stream,
        stream=lambda *_: contextlib.nullcontext(), device=lambda *_: contextlib.nullcontext(),
        get_rng_state=lambda *_: torch.zeros(16, dtype=torch.uint8),
        get_rng_state_all=lambda *_: [torch.zeros(16, dtype=torch.uint8)])
    return answers


def _eager(recorder):
    def compile(model=None, **_):
        recorder.notes.add("torch.compile: recorded as eager code")
        return model if model is not None else lambda inner: inner
    return compile


def _unsaved(recorder):
    def save(*_, **__):
        recorder.notes.add("torch.save: nothing was saved")
    return save


def _loaded_here(load):
    def loaded(file, map_location=None, *args, **kwargs):
        return load(file, "cpu", *args, **kwargs)
    return loaded


def _loader_here(loader):
    """Batches are made in this process: what a worker would send is made of tensors with values."""
    from torch.utils.data import dataloader
    asked = {name: getattr(loader, name) for name in ("num_workers", "timeout", "pin_memory")}
    for name, value in {"num_workers": 0, "timeout": 0, "pin_memory": False}.items():
        setattr(loader, name, value)
    try:
        return dataloader._SingleProcessDataLoaderIter(loader)
    finally:
        for name, value in asked.items():
            setattr(loader, name, value)


def _triton_launch(recorder, launch):
    def run(self, *args, **kwargs):
        tensors = [value for value in [*args, *kwargs.values()] if isinstance(value, torch.Tensor)]
        if not recorder.takes(tensors, {}):
            return launch(self, *args, **kwargs)
        function = self
        while hasattr(function, "fn") and not callable(getattr(function.fn, "__code__", None)) and hasattr(function.fn, "run"):
            function = function.fn
        recorder.call(f"triton::{getattr(function, '__name__', 'kernel')}", tensors, [])
        return None
    return run


def _triton_classes():
    """Classes whose run() launches a kernel of Triton."""
    if importlib.util.find_spec("triton") is None:
        return
    for module, names in {"triton.runtime.jit": ["JITFunction"], "triton.runtime.autotuner": ["Autotuner", "Heuristics"]}.items():
        with contextlib.suppress(Exception):  # another Triton, or one that does not load
            loaded = importlib.import_module(module)
            yield from (getattr(loaded, name) for name in names if hasattr(getattr(loaded, name, None), "run"))


@contextlib.contextmanager
def stand_ins(recorder):
    """For as long as a block is recorded: torch.cuda, torch.compile, torch.save, loaders, launches of Triton's kernels."""
    replaced = []

    def replace(owner, name, value):
        if hasattr(owner, name):
            replaced.append((owner, name, getattr(owner, name)))
            setattr(owner, name, value)

    for name, answer in _cuda_answers(recorder.wait).items():
        replace(torch.cuda, name, answer)
    for name in ("range_push", "range_pop", "mark"):
        replace(torch.cuda.nvtx, name, lambda *_, **__: None)
    replace(torch, "compile", _eager(recorder))
    replace(torch, "save", _unsaved(recorder))
    replace(torch, "load", _loaded_here(torch.load))
    replace(torch.utils.data.DataLoader, "_get_iterator", _loader_here)
    for kind in _triton_classes():
        replace(kind, "run", _triton_launch(recorder, kind.run))
    try:
        yield
    finally:
        for owner, name, value in reversed(replaced):
            setattr(owner, name, value)
