"""Which PyTorch is there, and whether it can be recorded."""
import re
import sys

OLDEST = (2, 1)


def found(error):
    """The version of PyTorch; raises `error` where there is none, a broken one or one too old."""
    oldest = ".".join(map(str, OLDEST))
    wanted = f"{oldest} or newer is needed; a build for CPUs is enough"
    try:
        import torch
        text = str(torch.__version__)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise error(f"PyTorch of {sys.executable} cannot be imported: {missing}") from missing
        raise error(f"PyTorch is not installed in {sys.executable}: {wanted}") from missing
    except Exception as mistake:  # a library it needs, or a folder named torch
        raise error(f"PyTorch of {sys.executable} cannot be imported: {mistake}") from mistake
    numbers = re.match(r"(\d+)\.(\d+)", text)
    version = tuple(map(int, numbers.groups())) if numbers else (0, 0)
    if version < OLDEST:
        raise error(f"PyTorch {text} of {sys.executable} is too old: {wanted}")
    return version
