"""The recorder: its two doors, its mistakes, and, where PyTorch is, a recording that the program replays."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(os.environ["RIDGELINE_SOURCE_DIR"])
DOORS = {"package": [sys.executable, "-m", "ridgeline.record"],
         "file": [sys.executable, str(SOURCE / "tools" / "ridgeline_record.py")]}
STEP = """
import torch

def make_step():
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    inputs = torch.randn(32, 64, device="cuda")

    def step():
        model(inputs).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return step, model
"""


def called(door, *arguments):
    return subprocess.run([*DOORS[door], *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.parametrize("door", DOORS)
def test_help_needs_no_pytorch(door):
    run = called(door, "--help")
    assert run.returncode == 0 and "FILE.py:FUNCTION" in run.stdout


@pytest.mark.parametrize("door", DOORS)
def test_mistakes_end_with_2(door, tmp_path):
    run = called(door, "step.py", "--output", tmp_path / "trace.jsonl")
    assert run.returncode == 2 and ("PyTorch" in run.stderr or "FILE.py:FUNCTION" in run.stderr)
    assert called(door, "step.py:make_step").returncode == 2  # no --output
    assert not list(tmp_path.iterdir())


def test_where_the_function_is(tmp_path):
    from ridgeline.record.__main__ import maker
    file = tmp_path / "train.py"
    file.write_text("answer = 42\ndef make_step():\n    return answer\n")
    assert maker(f"{file}:make_step")() == 42
    for wrong in ("train.py", f"{file}:make", f"{file}:answer", f"{tmp_path}/none.py:make_step"):
        with pytest.raises(ValueError):
            maker(wrong)


@pytest.mark.parametrize("door", DOORS)
def test_a_recording_replays(door, tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "train.py").write_text(STEP)
    trace = tmp_path / "step.jsonl.gz"
    run = called(door, f"{tmp_path}/train.py:make_step", "--output", trace, "--title", "a perceptron", "--samples", 32)
    assert run.returncode == 0, run.stderr
    replayed = subprocess.run([os.environ["RIDGELINE_BINARY"], "replay", trace, "--hardware", "nvidia-t4", "--no-advice", "--format",
                               "json"], capture_output=True, text=True, check=True)
    answer = json.loads(replayed.stdout)
    assert answer["step"]["time_s"] > 0 and answer["memory"]["breakdown"]["weights"] > 0
