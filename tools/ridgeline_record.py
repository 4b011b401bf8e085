#!/usr/bin/env python3
"""The recorder of python/ridgeline/record from a source tree, without the package: `from ridgeline_record import Recorder`,
or `tools/ridgeline_record.py FILE.py:FUNCTION --output TRACE`."""
import importlib.util
import pathlib
import sys

_FOLDER = pathlib.Path(__file__).resolve().parent.parent / "python" / "ridgeline" / "record"


def _load():
    """The folder as a package of its own: ridgeline itself needs its compiled module."""
    name = "_ridgeline_record"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _FOLDER / "__init__.py",
                                                      submodule_search_locations=[str(_FOLDER)])
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


def __getattr__(name):
    return getattr(_load(), name)


if __name__ == "__main__":
    _load()
    from _ridgeline_record.__main__ import main
    sys.exit(main(program="ridgeline_record.py"))
