"""Ridgeline: how long a training step of a transformer takes on a described GPU, how much memory it needs, and why.

    import ridgeline
    answer = ridgeline.predict(hardware="nvidia-a100-sxm4-80gb", model="bert-large",
                               training={"micro_batch": 4, "sequence_length": 512})
    print(answer.step.time, answer.memory.device_used)
    print(answer)                        # the tables of `ridgeline predict`
    answer.kernels["time_s"]             # a NumPy array

A question is a path (a scenario in YAML, or a recorded step), or keys of a scenario, or a path and keys that change it:
nested (`training={"micro_batch": 8}`) or dotted in `set` (`set={"hardware.dram.bandwidth": "4 TB/s"}`). Times are
seconds, memory is bytes. A mistake is a `Mistake` (a ValueError) with `file`, `line`, `column` and `key`.

`ridgeline.record` records a training step without a GPU; it needs PyTorch, and not the compiled module.
"""
from . import record

_ANSWERS = ["Answer", "Memory", "Mistake", "Step", "Stopped", "compare", "fit", "hardware", "kernels", "memory", "models",
            "plan", "predict", "replay", "sweep", "__version__"]
__all__ = ["record"]

try:
    from ._answers import (Answer, Memory, Mistake, Step, Stopped, __version__, compare, fit, hardware, kernels, memory,
                           models, plan, predict, replay, sweep)
    __all__ += _ANSWERS
except ModuleNotFoundError as missing:
    if missing.name != f"{__name__}._ridgeline":
        raise

    def __getattr__(name):
        if name in _ANSWERS:
            raise ImportError(f"ridgeline.{name} needs the compiled module, which is not beside {__file__}; "
                              "ridgeline.record works without it")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
