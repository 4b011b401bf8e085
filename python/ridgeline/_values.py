"""Numbers of an answer, as values that print, compare and pickle."""
from dataclasses import dataclass


def seconds(value):
    """A time as people write it: 69.0 ms, 2.99 s."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= size or unit == "us":
            return f"{value / size:.3g} {unit}"


def gib(value):
    return f"{value / 2**30:.2f} GiB"


@dataclass(frozen=True, repr=False)
class Step:
    """One training step of one GPU. Times are seconds, energy is joules, power is watts."""
    time: float  #: from the start of the step to the next
    low: float  #: lower end of the range of `time`
    high: float  #: upper end of the range of `time`
    gpu_busy: float  #: seconds in which at least one kernel runs
    host_time: float  #: seconds that Python, PyTorch and the driver work
    power: float  #: mean over the step
    energy: float
    kernels: int  #: launches
    samples_per_s: float
    tokens_per_s: float
    mfu: float  #: share of the GPU's peak that the network's FLOPs reach
    validated: bool  #: whether measurements of this GPU back the range

    def __repr__(self):
        return (f"Step({seconds(self.time)}, {seconds(self.low)} to {seconds(self.high)}; {self.tokens_per_s:,.0f} tokens/s, "
                f"{self.kernels:,} kernels, MFU {self.mfu:.0%})")


@dataclass(frozen=True, repr=False)
class Memory:
    """Memory of the fullest GPU over the step, in bytes."""
    known: bool  #: whether the step's tensors are known: not of every recording
    peak_allocated: int  #: torch.cuda.max_memory_allocated
    peak_reserved: int  #: torch.cuda.max_memory_reserved
    device_used: int  #: what nvidia-smi shows: reserved, and the CUDA context
    capacity: int  #: of the GPU
    fits: bool

    def __repr__(self):
        if not self.known:
            return "Memory(not known of this recording)"
        word = "fits" if self.fits else "does not fit"
        return (f"Memory({gib(self.device_used)} of {gib(self.capacity)}, {word}; {gib(self.peak_allocated)} allocated, "
                f"{gib(self.peak_reserved)} reserved)")


def taken(kind, native):
    """The fields of `kind` from an object of the compiled module."""
    return kind(**{name: getattr(native, name) for name in kind.__dataclass_fields__})
