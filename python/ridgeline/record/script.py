"""Runs a person's training script as it is, recorded, until its steady step was seen."""
import os
import runpy
import sys
import traceback

from . import NotRecorded

STEPS = 2  # whole ones: the first makes the optimizer's states, the second is the steady one


def report(script, error):
    """The traceback of a script's own mistake, from the script on."""
    trace = error.__traceback__
    frames = trace
    while frames is not None and os.path.abspath(frames.tb_frame.f_code.co_filename) != os.path.abspath(script):
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames or (None if isinstance(error, SyntaxError) else trace))


def run(script, arguments):
    """As `python SCRIPT ARGUMENTS` does. Raises what the script raises."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [script, *arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(script))  # in the place of where this program was started
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv, sys.path[:] = argv, path


def record_script(script, arguments, output, **header):
    """Records into `output`. Raises NotRecorded, with the reason, also where the script failed (its traceback is printed)."""
    from .block import Block, StepsSeen
    block = Block(output, stop_after=STEPS, **header)
    block.called = f"{script}: recorded"
    ended = None
    try:
        with block:
            try:
                run(script, arguments)
            except SystemExit as exit:
                if block.steps.count == 0:
                    ended = f"{script}: ended with exit code {exit.code!r} before an optimizer step was seen"
                    raise
            except NotRecorded:
                raise
            except Exception as error:
                if block.steps.count < STEPS:
                    report(script, error)
                    ended = f"{script}: raised {type(error).__name__} before its steps were seen (above)"
                    raise
    except StepsSeen:
        pass
    except NotRecorded as mistake:
        raise NotRecorded(f"{script}: {mistake}") from mistake
    except (SystemExit, Exception) as error:
        if ended is None:
            raise
        raise NotRecorded(ended) from error
