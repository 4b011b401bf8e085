from contextlib import AbstractContextManager
from os import PathLike
from typing import Any, Mapping, Sequence, TypedDict

import numpy as np
from numpy.typing import NDArray

__version__: str
_Scenario = str | PathLike[str] | Mapping[str, Any] | None

class Mistake(ValueError):
    file: str
    line: int
    column: int
    key: str

class Stopped(Exception): ...

class Step:
    time: float
    low: float
    high: float
    gpu_busy: float
    host_time: float
    power: float
    energy: float
    kernels: int
    samples_per_s: float
    tokens_per_s: float
    mfu: float
    validated: bool

class Memory:
    known: bool
    peak_allocated: int
    peak_reserved: int
    device_used: int
    capacity: int
    fits: bool

class Kernels(TypedDict):
    name: list[str]
    shape: list[str]
    op: list[str]
    limiter: list[str]
    count: NDArray[np.int64]
    time_s: NDArray[np.float64]
    flops: NDArray[np.float64]
    read_bytes: NDArray[np.float64]
    written_bytes: NDArray[np.float64]
    dram_bytes: NDArray[np.float64]
    l2_bytes: NDArray[np.float64]

class Timeline(TypedDict):
    names: list[str]
    shapes: list[str]
    kind: NDArray[np.int32]
    phase: NDArray[np.int32]
    layer: NDArray[np.int32]
    issued_s: NDArray[np.float64]
    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]

class MemoryOverTime(TypedDict):
    at_s: NDArray[np.float64]
    allocated: NDArray[np.int64]
    reserved: NDArray[np.int64]

class Answer:
    @property
    def title(self) -> str: ...
    @property
    def hardware(self) -> str: ...
    @property
    def step(self) -> Step: ...
    @property
    def memory(self) -> Memory: ...
    @property
    def notes(self) -> list[str]: ...
    @property
    def kernels(self) -> Kernels: ...
    @property
    def timeline(self) -> Timeline: ...
    @property
    def memory_over_time(self) -> MemoryOverTime: ...
    def to_dict(self) -> dict[str, Any]: ...
    def to_html(self) -> str: ...
    def chrome_trace(self) -> str: ...
    def memory_snapshot(self) -> bytes: ...
    def show(self) -> None: ...

def predict(scenario: _Scenario = ..., *, engine: str = ..., advice: bool = ..., sensitivity: bool = ...,
            set: Mapping[str, Any] | None = ..., **keys: Any) -> Answer: ...
def replay(recording: str | PathLike[str], hardware: str, **more: Any) -> Answer: ...
def compare(*scenarios: _Scenario | Answer | Sequence[_Scenario | Answer], labels: Sequence[str] = ..., **keys: Any) -> dict[str, Any]: ...
def fit(scenario: _Scenario = ..., **keys: Any) -> dict[str, Any]: ...
def plan(scenario: _Scenario = ..., gpus: int | Sequence[int] = ..., *, batch: int = ..., threads: int = ...,
         **keys: Any) -> dict[str, Any]: ...
def sweep(file: str | PathLike[str], threads: int = ...) -> dict[str, Any]: ...
def kernels(cases: Sequence[Mapping[str, Any]], hardware: str, *, engine: str = ..., software: str = ...,
            set: Mapping[str, Any] | None = ...) -> list[dict[str, Any]]: ...
def memory(file: str | PathLike[str], *, settings: str = ..., capacity: str = ...) -> dict[str, Any]: ...
def hardware() -> list[str]: ...
def models() -> list[str]: ...
def record(path: str | PathLike[str], *, title: str = ..., precision: str = ..., samples: int = ...,
           tokens: int = ...) -> AbstractContextManager[Any]: ...
