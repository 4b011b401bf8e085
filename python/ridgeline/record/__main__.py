"""python -m ridgeline.record FILE.py:FUNCTION --output TRACE: records the step that a function makes."""
import argparse
import pathlib
import runpy
import sys

EXIT_MISTAKE = 2


def options(arguments, program):
    parser = argparse.ArgumentParser(
        prog=program, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Records a PyTorch training step as an op trace, on a machine without a GPU.",
        epilog="FUNCTION takes nothing and returns step, or (step, model): step() does one whole training step as on the\n"
               "GPU. It is called where tensors exist in name only, so that the model needs neither a GPU nor memory.")
    parser.add_argument("step", metavar="FILE.py:FUNCTION", help="what makes the step")
    parser.add_argument("--output", required=True, metavar="TRACE", help="file to write (JSON Lines; .gz compresses)")
    parser.add_argument("--title", default="")
    parser.add_argument("--precision", default="", help="noted in the file: fp32, tf32, amp-fp16, amp-bf16 or bf16")
    parser.add_argument("--samples", type=int, default=0, help="of a step, for rates")
    parser.add_argument("--tokens", type=int, default=0, help="of a step, for rates")
    return parser.parse_args(arguments)


def maker(where):
    """The function that FILE.py:FUNCTION names. Raises ValueError where there is none."""
    file, colon, name = where.rpartition(":")
    if not colon or not file:
        raise ValueError(f"{where}: expected FILE.py:FUNCTION")
    if not pathlib.Path(file).is_file():
        raise ValueError(f"{file}: no such file")
    sys.path.insert(0, str(pathlib.Path(file).resolve().parent))  # as python FILE.py would
    function = runpy.run_path(file).get(name)
    if not callable(function):
        raise ValueError(f"{file}: has no function {name}")
    return function


def main(arguments=None, program="python -m ridgeline.record"):
    asked = options(arguments, program)
    try:
        import torch  # noqa: F401
    except ImportError:
        print(f"{program}: PyTorch is not installed; 2.5 or newer is needed, for CPUs is enough", file=sys.stderr)
        return EXIT_MISTAKE
    from .recorder import Recorder
    try:
        make = maker(asked.step)
    except ValueError as mistake:
        print(f"{program}: {mistake}", file=sys.stderr)
        return EXIT_MISTAKE
    recorder = Recorder(asked.output, title=asked.title, precision=asked.precision)
    with recorder.building():
        made = make()
    step, model = made if isinstance(made, tuple) else (made, None)
    recorder.record(step, model=model, samples=asked.samples, tokens=asked.tokens)
    return 0


if __name__ == "__main__":
    sys.exit(main())
