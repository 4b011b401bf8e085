"""The recorder: its two doors, its mistakes, and, where PyTorch is, a recording that the program replays."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

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


LOOP = """
import sys
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    batches = DataLoader(TensorDataset(torch.randn(64, 64), torch.randint(0, 8, (64,))), 16, num_workers=2, pin_memory=True)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    print("arguments", sys.argv[1:])
    for _ in range(100):
        for inputs, labels in batches:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            print(loss.item())
"""
TRACE = SOURCE / "measurements" / "recordings" / "mlp-b128-fp32.jsonl.gz"
PROGRAM = os.environ["RIDGELINE_BINARY"]


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
    replayed = subprocess.run([PROGRAM, "replay", trace, "--hardware", "nvidia-t4", "--no-advice", "--format",
                               "json"], capture_output=True, text=True, check=True)
    answer = json.loads(replayed.stdout)
    assert answer["step"]["time_s"] > 0 and answer["memory"]["breakdown"]["weights"] > 0


# ---- a training loop as it is ------------------------------------------------------------------------------------------
def test_the_package_works_without_its_compiled_module_and_without_pytorch(tmp_path):
    inside = """
import sys
import ridgeline
from ridgeline import record
assert ridgeline.record is record and callable(record) and "torch" not in sys.modules
try:
    ridgeline.predict
except ImportError as mistake:
    print(mistake)
"""
    run = subprocess.run([sys.executable, "-c", inside], capture_output=True, text=True, cwd=tmp_path,
                         env={**os.environ, "PYTHONPATH": str(SOURCE / "python")})
    assert run.returncode == 0 and "needs the compiled module" in run.stdout, run.stderr


@pytest.mark.parametrize("text, said", [('__version__ = "1.13.1"', "1.13.1 of"), ("import of_a_library_that_is_missing", "of_a_library"),
                                        ('raise OSError("libcudart.so")', "libcudart.so")])
def test_pytorch_that_cannot_record_is_named(text, said, tmp_path):
    """A stand-in for PyTorch: what is read of it is its version."""
    (tmp_path / "torch.py").write_text(text)
    path = f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"
    (tmp_path / "train.py").write_text("print('not reached')")
    run = subprocess.run([*DOORS["package"], "--script", tmp_path / "train.py", "--output", tmp_path / "out.jsonl"],
                         capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert run.returncode == 2 and said in run.stderr and "Traceback" not in run.stderr and run.stdout == ""
    assert not (tmp_path / "out.jsonl").exists()


def test_of_the_steps_the_first_and_the_last_stay():
    from ridgeline.record.steps import Steps
    records = [{"record": "storage", "id": 0}]  # weights
    steps = Steps(records)
    records.append({"record": "step"})
    for step in range(4):
        gradient = 1 + 2 * step
        if step:
            records.append({"record": "free", "id": gradient - 2})
        records += [{"record": "storage", "id": gradient}, {"record": "storage", "id": gradient + 1},
                    {"record": "aten", "in": [{"storage": gradient}, {"tensors": [{"storage": gradient + 1}]}]},
                    {"record": "free", "id": gradient + 1}]
        steps.end()
    records.append({"record": "aten", "in": [{"storage": 7}]})  # of a step that is not whole
    whole = steps.whole()
    assert [r["record"] for r in whole].count("step") == [r["record"] for r in whole].count("end") == 3
    assert [r["id"] for r in whole if r["record"] == "storage"] == list(range(6))
    last = whole[len(whole) - 1 - [r["record"] for r in whole[::-1]].index("step"):]
    assert [r["record"] for r in last] == ["step", "free", "storage", "storage", "aten", "free", "end"]
    assert last[4]["in"] == [{"storage": last[2]["id"]}, {"tensors": [{"storage": last[3]["id"]}]}]
    alive = set()
    for record in whole:
        if record["record"] == "storage":
            alive.add(record["id"])
        elif record["record"] == "free":
            alive.remove(record["id"])
    assert alive == {0, last[2]["id"]}


@pytest.fixture
def predict(tmp_path):
    """predict --record with a stand-in for Python: it runs `body` in the place of the recorder."""
    folder = tmp_path / "temporary"
    folder.mkdir()

    def run(*arguments, body="", start=subprocess.run, **options):
        python = tmp_path / "python of its own"
        python.write_text(f"#!{sys.executable}\nimport json, os, shutil, sys, time\n{body}\n")
        python.chmod(0o755)
        environment = {**os.environ, "TMPDIR": str(folder), "RIDGELINE_PYTHON": str(python)}
        return start([PROGRAM, "predict", *map(str, arguments)], **options, env=environment)

    (tmp_path / "train it.py").write_text(LOOP)
    run.script, run.folder = tmp_path / "train it.py", folder
    yield run
    assert not list(folder.iterdir())


COPIES = f"shutil.copy({str(TRACE)!r}, sys.argv[sys.argv.index('--output') + 1]); print('of the script')"


def test_a_script_is_recorded_and_predicted(predict, tmp_path):
    given = ["--lr", "1 2", "$(touch x)", "'", "--", "predict"]
    body = f"json.dump([sys.argv, os.environ['PYTHONPATH']], open({str(tmp_path / 'said')!r}, 'w')); {COPIES}"
    run = predict("--record", predict.script, "--hardware", "nvidia-t4", "--no-advice", "--cuda-graphs", "--format", "json", "--",
                  *given, body=body, capture_output=True, text=True)
    assert run.returncode == 0 and "of the script" in run.stderr, run.stderr
    arguments, path = json.loads((tmp_path / "said").read_text())
    assert arguments[1:5] == ["-m", "ridgeline.record", "--script", str(predict.script)]
    assert arguments[arguments.index("--") + 1:] == given
    assert (pathlib.Path(path.split(":")[0]) / "ridgeline" / "record" / "__main__.py").is_file()
    replayed = subprocess.run([PROGRAM, "replay", TRACE, "--hardware", "nvidia-t4", "--no-advice", "--cuda-graphs", "--format",
                               "json"], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout)["step"] == json.loads(replayed.stdout)["step"]


@pytest.mark.parametrize("body, said", [("sys.exit(2)", "for the reason above"), ("sys.exit(7)", "exit code 7"),
                                        ("os.kill(os.getpid(), 9)", "enough memory")])
def test_what_ends_a_recording_is_said(predict, body, said):
    run = predict("--record", predict.script, "--hardware", "nvidia-t4", body=body, capture_output=True, text=True)
    assert run.returncode == 2 and said in run.stderr and run.stdout == ""


def test_mistakes_of_the_command_line_come_before_the_recording(predict, tmp_path):
    for arguments, said in [((tmp_path / "none.py", "--hardware", "nvidia-t4"), "no such file"),
                            ((tmp_path, "--hardware", "nvidia-t4"), "not a file"),
                            ((predict.script,), "--hardware"), ((predict.script, "--hardware", "nvidia-t5"), "no GPU of this name")]:
        run = predict("--record", *arguments, body="print('begun')", capture_output=True, text=True)
        assert run.returncode == 2 and said in run.stderr and "begun" not in run.stderr
    run = subprocess.run([PROGRAM, "predict", "--record", predict.script, "--hardware", "nvidia-t4"], capture_output=True, text=True,
                         env={**os.environ, "RIDGELINE_PYTHON": str(tmp_path / "python9")})
    assert run.returncode == 2 and "RIDGELINE_PYTHON" in run.stderr


@pytest.mark.parametrize("number, group", [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_signal_ends_the_script_and_leaves_nothing(predict, tmp_path, number, group):
    mark = tmp_path / "begun"
    body = f"open({str(mark)!r}, 'w').write(str(os.getpid()))\ntry: time.sleep(60)\nexcept KeyboardInterrupt: sys.exit(130)"
    run = predict("--record", predict.script, "--hardware", "nvidia-t4", body=body, start=subprocess.Popen,
                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    while not (mark.exists() and mark.read_text()):
        assert run.poll() is None
        time.sleep(0.01)
    (os.killpg if group else os.kill)(run.pid, number)
    assert run.wait(20) == 128 + number and run.stdout.read() == b""
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


# ---- where PyTorch is --------------------------------------------------------------------------------------------------
def test_a_loop_in_a_block_is_recorded(tmp_path):
    torch = pytest.importorskip("torch")
    import ridgeline
    trace = tmp_path / "step.jsonl.gz"
    outside = torch.nn.Linear(8, 8)
    weights = outside.weight.detach().clone()
    with ridgeline.record(trace, title="a layer", samples=4):
        optimizer = torch.optim.SGD(outside.parameters(), 0.1, momentum=0.9)
        for _ in range(4):
            outside(torch.randn(4, 8).to("cuda")).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    assert torch.equal(outside.weight, weights) and not torch.cuda.is_initialized()
    replayed = subprocess.run([PROGRAM, "replay", trace, "--hardware", "nvidia-t4", "--no-advice", "--format", "json"],
                              capture_output=True, text=True, check=True)
    held = json.loads(replayed.stdout)["memory"]["breakdown"]
    assert held["weights"] == held["optimizer_state"] > 0
    with pytest.raises(ridgeline.record.NotRecorded, match="no optimizer step"), ridgeline.record(tmp_path / "none.jsonl"):
        outside(torch.randn(4, 8)).sum().backward()
    with pytest.raises(ZeroDivisionError), ridgeline.record(tmp_path / "none.jsonl"):
        1 / 0
    assert not (tmp_path / "none.jsonl").exists()


def test_a_script_is_recorded_as_it_is(predict):
    pytest.importorskip("torch")
    environment = {**os.environ, "TMPDIR": str(predict.folder), "RIDGELINE_PYTHON": sys.executable}
    command = [PROGRAM, "predict", "--record", str(predict.script), "--hardware", "nvidia-t4", "--no-advice"]
    run = subprocess.run([*command, "--", "a b"], capture_output=True, text=True, env=environment)
    assert run.returncode == 0 and "arguments ['a b']" in run.stderr and run.stderr.count("0.0") <= 3, run.stderr
    predict.script.write_text("import torch\n\ndef wrong():\n    torch.nn.Linear(2, 3)(torch.randn(4, 5))\nwrong()\n")
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 2 and 'train it.py", line 5' in run.stderr and "record/script.py" not in run.stderr
    predict.script.write_text("import torch\ntorch.nn.Linear(2, 3)(torch.randn(4, 2)).sum().backward()\n")
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 2 and "no optimizer step was seen" in run.stderr
