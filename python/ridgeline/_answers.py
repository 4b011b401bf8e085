"""What the compiled module knows, as Python objects: answers, and the questions that ask for them."""
import json as _json
import os as _os
import threading as _threading

from ._card import card as _card
from ._ridgeline import Mistake, Question, Simulator, Stopped, __version__
from ._ridgeline import load_numpy as _load_numpy
from ._values import Memory, Step, gib as _gib, seconds as _seconds, taken as _taken

_simulator = Simulator()  # remembers what questions share
_MOST_LEVELS = 64  # of dicts and lists in a question, as in files


class _Calls:
    """Calls of the compiled module that run. A fork waits for them: a child has no thread that would finish them."""

    def __init__(self):
        self._changed = _threading.Condition(_threading.Lock())
        self._running = self._forks = 0

    def __enter__(self):
        with self._changed:
            while self._forks:  # a fork that waits goes first
                self._changed.wait()
            self._running += 1

    def __exit__(self, *_):
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def hold(self):
        self._changed.acquire()
        self._forks += 1
        while self._running:
            self._changed.wait()

    def go_on(self):
        self._forks -= 1
        self._changed.notify_all()
        self._changed.release()


_calls = _Calls()
_numpy = {"loaded": False}
_numpy_lock = _threading.Lock()
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(before=_calls.hold, after_in_parent=_calls.go_on, after_in_child=_calls.go_on)


def _call(function, *arguments):
    with _calls:
        return function(*arguments)


def _arrays(function):
    """`function`, which makes arrays. One thread loads numpy: the others wait here, where they hold no lock of C++."""
    with _calls:
        with _numpy_lock:
            if not _numpy["loaded"]:
                _load_numpy()
                _numpy["loaded"] = True
        return function()


class Answer:
    """What is known of one step: `step` (time), `memory`, `notes`; `kernels`, `timeline` and `memory_over_time` are columns.

    Parts that cost time are made when they are first asked for. `print(answer)` has the tables of `ridgeline predict`,
    `answer.show()` the page with pictures, `to_dict()` every number. A pickle holds the question: the answer is made again
    where it is loaded.
    """

    def __init__(self, native, asked=None):
        self._native = native
        self._asked = asked
        self._step = _taken(Step, native.step)
        self._memory = _taken(Memory, native.memory)

    title = property(lambda self: self._native.title, doc="of the scenario")
    hardware = property(lambda self: self._native.hardware, doc="name of the GPU")
    step = property(lambda self: self._step, doc="Step: time with its range, rates, energy")
    memory = property(lambda self: self._memory, doc="Memory: peaks, use of the device, whether it fits")
    notes = property(lambda self: self._native.notes, doc="approximations and warnings")
    kernels = property(lambda self: _arrays(self._native._kernels), doc="a column a field, longest first")
    timeline = property(lambda self: _arrays(self._native._timeline), doc="launches in stream order")
    memory_over_time = property(lambda self: _arrays(self._native._memory_over_time), doc="the allocator over the step")

    def to_dict(self):
        """What `ridgeline predict --format json` prints."""
        return _json.loads(_call(self._native.json))

    def to_html(self):
        """One self-contained page."""
        return _call(self._native.html)

    def chrome_trace(self):
        """The step for Perfetto, as text."""
        return _call(self._native.chrome_trace)

    def memory_snapshot(self):
        """The step's allocations for pytorch.org/memory_viz, as bytes: a pickle."""
        return _call(self._native.memory_snapshot)

    def __str__(self):
        return _call(self._native.text)

    def show(self):
        """The page with pictures: below the cell of a notebook, else in the browser."""
        page = self.to_html()
        try:
            from IPython import get_ipython
            from IPython.display import HTML, display
            if get_ipython() is not None:
                display(HTML(_frame(page, self.title)))
                return
        except ImportError:
            pass
        import tempfile
        import webbrowser
        with tempfile.NamedTemporaryFile("w", suffix=".html", prefix="ridgeline-", delete=False, encoding="utf-8") as file:
            file.write(page)
        if not webbrowser.open(f"file://{file.name}"):
            print(f"no browser was found: the page is {file.name}")

    def __reduce__(self):
        if self._asked is None:
            raise TypeError("this answer was not made by ridgeline.predict, so that no pickle can hold its question")
        return _asked_again, (self._asked,)

    def _where(self):
        return self.title if self.hardware in self.title else f"{self.title} on {self.hardware}"

    def __repr__(self):
        used = _gib(self.memory.device_used) if self.memory.known else "memory not known"
        fits = "" if self.memory.fits or not self.memory.known else ", does not fit"
        return (f"<ridgeline.Answer: {self._where()}: {_seconds(self.step.time)} ({_seconds(self.step.low)} to "
                f"{_seconds(self.step.high)}), {used}{fits}>")

    def _repr_html_(self):
        return _card(self._where(), self.to_dict())


def _frame(page, title):
    import html
    return (f'<iframe srcdoc="{html.escape(page, quote=True)}" style="width:100%;height:640px;border:0" '
            f'title="{html.escape(title, quote=True)}"></iframe>')


def _check_depth(value, level=0):
    if level > _MOST_LEVELS:
        raise Mistake(f"nested more than {_MOST_LEVELS} levels deep")
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        _check_depth(inner, level + 1)


def _changes(prefix, value):
    """{"training": {"micro_batch": 8}} as ["training.micro_batch=8"]."""
    if isinstance(value, dict):
        return [change for key, inner in value.items()
                for change in _changes(f"{prefix}.{key}" if prefix else str(key), inner)]
    if isinstance(value, bool):
        value = "true" if value else "false"
    elif isinstance(value, (list, tuple)):
        value = _json.dumps(value)
    return [f"{prefix}={value}"]


def _question(scenario=None, *, engine="analytic", advice=False, sensitivity=False, set=None, **keys):
    if isinstance(scenario, dict):
        keys = {**scenario, **keys}
        scenario = None
    for given in (keys, set):
        _check_depth(given)
    changes = _changes("", set or {})
    if scenario is None:
        return Question(text=_json.dumps(keys), set=changes, engine=engine, advice=advice, sensitivity=sensitivity)
    # A whole description first, then changes of its parts.
    return Question(file=_os.fspath(scenario), set=sorted(_changes("", keys), key=lambda c: "." in c.split("=")[0]) + changes,
                    engine=engine, advice=advice, sensitivity=sensitivity)


def predict(scenario=None, *, engine="analytic", advice=False, sensitivity=False, set=None, **keys):
    """Time, memory and reasons of one training step.

    `scenario` is a path, the name of a shipped scenario ("bert-large-fp32"), or a dict of its keys. Keys are those of a
    scenario: `hardware` and `model` by any spelling of a name, or by path; `training` as a dict. `set` changes single keys.
    """
    asked = {"scenario": scenario, "engine": engine, "advice": advice, "sensitivity": sensitivity, "set": set, **keys}
    return _asked_again(asked)


def _asked_again(asked):
    if not isinstance(asked["scenario"], (dict, type(None))):
        here = _os.fspath(asked["scenario"])
        asked = {**asked, "scenario": _os.path.abspath(here) if _os.path.exists(here) else here}
    return Answer(_call(_simulator.predict, _question(**asked)), asked)


def replay(recording, hardware, **more):
    """A recorded step (a PyTorch profiler trace, an execution trace, an op trace) on a GPU."""
    return predict(recording, hardware=hardware, **more)


def compare(*scenarios, labels=(), **keys):
    """Two to six scenarios or answers side by side, with the reasons for the difference, as a dict."""
    if len(scenarios) == 1 and isinstance(scenarios[0], (list, tuple)):
        scenarios = scenarios[0]
    questions = [_question(**{**scenario._asked, **keys}) if isinstance(scenario, Answer) else _question(scenario, **keys)
                 for scenario in scenarios]
    return _json.loads(_call(_simulator.compare, questions, list(labels)))


def fit(scenario=None, **keys):
    """The largest micro-batch that the device holds, as a dict. `training` need not say a micro_batch."""
    described = scenario if isinstance(scenario, dict) else keys if scenario is None else None
    if described is not None and "micro_batch" not in described.get("training", {}):
        described = {**described, "training": {"micro_batch": 1, **described.get("training", {})}}
        scenario, keys = None, {**keys, **described}
    return _json.loads(_call(_simulator.fit, _question(scenario, **keys)))


def plan(scenario=None, gpus=1, *, batch=0, threads=0, **keys):
    """The best ways to train on `gpus` GPUs (a number, or several), as a dict. `batch`: sequences of a step of all of
    them, if not those of the scenario."""
    counts = [gpus] if isinstance(gpus, int) else list(gpus)
    return _json.loads(_call(_simulator.plan, _question(scenario, **keys), counts, batch, threads))


def sweep(file, threads=0):
    """All points of a sweep file, as a dict."""
    return _json.loads(_call(_simulator.sweep, _os.fspath(file), threads))


def kernels(cases, hardware, *, engine="analytic", software="pytorch-2.11", set=None):
    """Predictions of kernel cases ({"op": "mm", "dtype": "bf16", "params": {...}}): a list of dicts, each the case with
    `predicted`, or with `error` where it is a mistake."""
    lines = "\n".join(_json.dumps(case) for case in cases)
    return [_json.loads(line) for line in
            _call(_simulator.kernels, lines, hardware, _changes("", set or {}), engine, software).splitlines()]


def memory(file, *, settings="", capacity=""):
    """A recorded allocation history or memory snapshot through the caching allocator, as a dict."""
    return _json.loads(_call(_simulator.memory, _os.fspath(file), settings, capacity))


def hardware():
    """Names of the shipped GPUs."""
    return _simulator.hardware()


def models():
    """Names of the shipped models."""
    return _simulator.models()
