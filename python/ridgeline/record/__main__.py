"""python -m ridgeline.record --script TRAIN.py --output TRACE: records a training script, or the step that a function makes."""
import argparse
import os
import pathlib
import runpy
import sys

from . import NotRecorded, check_pytorch

EXIT_MISTAKE, EXIT_INTERRUPTED = 2, 130


def options(arguments, program):
    parser = argparse.ArgumentParser(
        prog=program, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s --script TRAIN.py --output TRACE [options] [-- ARGUMENTS]\n"
              "       %(prog)s FILE.py:FUNCTION --output TRACE [options]\n"
              "       %(prog)s --blocks FILE.py:FUNCTION --output NAME.block",
        description="Records a PyTorch training step as an op trace, on a machine without a GPU.",
        epilog="TRAIN.py runs as it is, with ARGUMENTS, until two steps of its optimizer were seen.\n\n"
               "FUNCTION takes nothing and returns step, or (step, model): step() does one whole\n"
               "training step as on the GPU. It is called where tensors exist in name only, so that\n"
               "the model needs neither a GPU nor memory.\n\n"
               "With --blocks, FUNCTION takes batch and length and returns a module and its inputs; the\n"
               "module returns its loss. It is written as a program whose batch, length, precision,\n"
               "optimizer and parallelism ridgeline predict can then change.")
    parser.add_argument("step", nargs="?", metavar="FILE.py:FUNCTION", help="what makes the step")
    parser.add_argument("--blocks", metavar="FILE.py:FUNCTION", help="what makes a module, written as a program")
    parser.add_argument("--script", metavar="TRAIN.py", help="a training script, recorded as it is")
    parser.add_argument("--output", required=True, metavar="TRACE", help="file to write (JSON Lines; .gz compresses)")
    parser.add_argument("--title", default="")
    parser.add_argument("--precision", default="", help="noted in the file: fp32, tf32, amp-fp16, amp-bf16, bf16")
    parser.add_argument("--samples", type=int, default=0, help="of a step, for rates")
    parser.add_argument("--tokens", type=int, default=0, help="of a step, for rates")
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    asked = parser.parse_args(arguments[:cut])
    asked.arguments = arguments[cut + 1:]
    if [asked.step, asked.script, asked.blocks].count(None) != 2:
        parser.error("one of FILE.py:FUNCTION, --blocks and --script is needed")
    if asked.script is None and asked.arguments:
        parser.error("arguments after -- are those of --script")
    return asked


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


def record_function(asked):
    from .recorder import Recorder
    try:
        make = maker(asked.step)
    except ValueError as mistake:
        raise NotRecorded(mistake) from mistake
    recorder = Recorder(asked.output, title=asked.title, precision=asked.precision)
    with recorder.building():
        made = make()
    step, model = made if isinstance(made, tuple) else (made, None)
    recorder.record(step, model=model, samples=asked.samples, tokens=asked.tokens)


def record_blocks(asked):
    from .program import write_program
    try:
        make = maker(asked.blocks)
    except ValueError as mistake:
        raise NotRecorded(mistake) from mistake
    write_program(make, asked.output, title=asked.title)


def main(arguments=None, program="python -m ridgeline.record"):
    asked = options(sys.argv[1:] if arguments is None else arguments, program)
    try:
        if asked.script is not None and not os.path.isfile(asked.script):
            raise NotRecorded(f"{asked.script}: no such file")
        check_pytorch()
        if asked.blocks is not None:
            record_blocks(asked)
        elif asked.script is None:
            record_function(asked)
        else:
            from .script import record_script
            record_script(asked.script, asked.arguments, asked.output, title=asked.title or os.path.basename(asked.script),
                          precision=asked.precision, samples=asked.samples, tokens=asked.tokens)
    except NotRecorded as mistake:
        print(f"{program}: {mistake}", file=sys.stderr)
        return EXIT_MISTAKE
    except KeyboardInterrupt:
        print(f"{program}: interrupted, nothing was recorded", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
