"""The wheel is made and installed, without a network, into a new environment and by Debian's Python, whose system is managed.

usage: install_python.py SOURCE BUILD
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

INSIDE = """
import json, pathlib, pickle, shutil, ridgeline
from ridgeline import record
hw = pathlib.Path(ridgeline.__file__).parent / "share" / "ridgeline" / "hw"
shutil.copy(hw / "nvidia-t4.yaml", hw / "another-t4.yaml")
answer = ridgeline.predict(hardware="Tesla T4", model="bert-base", training={"micro_batch": 2, "sequence_length": 128})
shipped = ridgeline.predict("bert-large-fp32")
assert pickle.loads(pickle.dumps(answer)).step == answer.step
program = ridgeline.predict(hardware="T4", model="resnet50", training={"micro_batch": 2})
print(json.dumps({"version": ridgeline.__version__, "time": answer.step.time, "place": ridgeline.__file__, "title": shipped.title,
                  "record": record.__file__, "hardware": ridgeline.hardware()}))
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(python, outside, inside, build):
    said = json.loads(run(python, "-c", INSIDE, env=outside, cwd=inside))
    assert 0.001 < said["time"] < 1, said
    assert said["version"] in run(f"{build}/ridgeline", "--version"), said
    assert "another-t4" in said["hardware"], "descriptions are not read from the package"
    assert said["title"].startswith("BERT-Large"), said
    for file in (said["place"], said["record"]):
        assert pathlib.Path(file).resolve().is_relative_to(inside.resolve()), f"{file} is not of the installed package"
    assert "FILE.py:FUNCTION" in run(python, "-m", "ridgeline.record", "--help", env=outside, cwd=inside)


def main(source, build):
    for module in ("pip", "venv"):
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode != 0:
            print(f"No module named {module}: the package is not installed")
            return
    outside = {key: value for key, value in os.environ.items() if not key.startswith(("RIDGELINE_", "PYTHON", "PIP_"))}
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        made = {**outside, "RIDGELINE_BUILD": build}
        wheel = run(sys.executable, "-B", f"{source}/python/wheel_backend.py", place / "wheel", env=made).split()[-1]
        run(sys.executable, "-m", "venv", place / "new")
        python = place / "new/bin/python3"
        run(python, "-m", "pip", "install", "--no-index", wheel, env=outside)
        check(python, outside, place / "new", build)
        # From the source tree, in an environment without setuptools and wheel.
        run(sys.executable, "-m", "venv", place / "tree")
        run(place / "tree/bin/python3", "-m", "pip", "install", "--no-index", f"{source}/python", env=made)
        check(place / "tree/bin/python3", outside, place / "tree", build)
        # Where the system's packages are managed by another installer, for one user.
        own = {**outside, "PYTHONUSERBASE": str(place / "user"), "HOME": str(place / "user")}
        (place / "user").mkdir()
        run(sys.executable, "-m", "pip", "install", "--no-index", "--user", "--break-system-packages", wheel, env=own)
        check(sys.executable, own, place / "user", build)
    print("installed, imported and run in three ways")


main(*sys.argv[1:])
