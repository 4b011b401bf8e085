"""pip installs the Python package, without a network, into an environment of its own, where it works without the source tree.

usage: install_python.py SOURCE BUILD
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

NEEDED = ("pip", "setuptools", "wheel", "venv", "numpy")
INSIDE = """
import json, pathlib, shutil, ridgeline
from ridgeline import record
hw = pathlib.Path(ridgeline.__file__).parent / "share" / "ridgeline" / "hw"
shutil.copy(hw / "nvidia-t4.yaml", hw / "another-t4.yaml")
answer = ridgeline.predict(hardware="nvidia-t4", model="bert-base", training={"micro_batch": 2, "sequence_length": 128})
print(json.dumps({"version": ridgeline.__version__, "time": answer.step.time, "place": ridgeline.__file__,
                  "record": record.__file__, "hardware": ridgeline.hardware()}))
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main(source, build):
    for module in NEEDED:
        if subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode != 0:
            print(f"No module named {module}: the package is not installed")
            return
    outside = {key: value for key, value in os.environ.items() if not key.startswith(("RIDGELINE_", "PYTHON"))}
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", "--system-site-packages", f"{folder}/venv")
        python = f"{folder}/venv/bin/python3"
        run(python, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps", f"{source}/python",
            env={**outside, "RIDGELINE_BUILD": build})
        said = json.loads(run(python, "-c", INSIDE, env=outside, cwd=folder))
        inside = pathlib.Path(folder).resolve()
        assert 0.001 < said["time"] < 1, said
        assert said["version"] in run(f"{build}/ridgeline", "--version"), said
        assert "another-t4" in said["hardware"], "descriptions are not read from the package"
        for file in (said["place"], said["record"]):
            assert pathlib.Path(file).resolve().is_relative_to(inside), f"{file} is not of the installed package"
        assert "FILE.py:FUNCTION" in run(python, "-m", "ridgeline.record", "--help", env=outside, cwd=folder)
    print("installed, imported and run")


main(*sys.argv[1:])
