"""One memory for all threads of a question: what is answered, what is refused, and how large the process becomes.

usage: memory.py PROGRAM SOURCE
"""
import os
import subprocess
import sys
import tempfile

PROGRAM, SOURCE = map(os.path.abspath, sys.argv[1:])
BESIDE = 60_000_000  # the program itself, and freed memory that the allocator keeps


def run(arguments, budget):
    """Exit code, words and most bytes of one command."""
    environment = {**os.environ, "RIDGELINE_DATA": SOURCE, "RIDGELINE_MEMORY_BUDGET": f"{budget} B"}
    process = subprocess.Popen([PROGRAM, *arguments.split()], cwd=SOURCE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    words = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, words, usage.ru_maxrss * 1024


def changed(name, **keys):
    """A shipped model with other values, as a file."""
    with open(os.path.join(SOURCE, "models", name + ".yaml"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    path = os.path.join(FOLDER, "-".join([name, *map(str, keys.values())]) + ".yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(f"{line.split(':')[0]}: {keys[line.split(':')[0]]}" if line.split(":")[0] in keys else line for line in lines))
    return path


with tempfile.TemporaryDirectory() as FOLDER:
    tokens = "--hardware nvidia-t4 --batch 1 --seq 32 --precision fp32"
    sweep = os.path.join(FOLDER, "sweep.yaml")
    with open(sweep, "w", encoding="utf-8") as file:
        file.write("scenario: {hardware: nvidia-h200-sxm-141gb, model: mixtral-8x7b, training: {micro_batch: 1, sequence_length: 512, precision: bf16}}\n"
                   "axes: {training.sequence_length: {range: [512, 2048], step: 64}}\n")
    failed = []
    for arguments, budget, codes in (
            (f"predict --model {changed('gpt2', vocabulary=2147483648)} {tokens}", 1_300_000_000, (0, 2)),
            (f"predict --model {changed('mixtral-8x7b', feed_forward=1000000)} {tokens}", 1_300_000_000, (0, 2)),
            (f"predict --model {changed('gpt2', vocabulary=2147483648)} {tokens} --no-advice", 400_000_000, (2,)),
            # Its text is as large as that, and goes to the file as it is made.
            (f"predict --model gpt2-xl --hardware nvidia-h200-sxm-141gb --batch 1 --seq 64 --precision bf16 --accumulation 50 --no-advice --timeline {FOLDER}/timeline.json", 180_000_000, (0,)),
            # Sixteen threads of some 120 MB each have room for two: they wait for each other, and nothing is refused.
            (f"sweep {sweep} --threads 16", 400_000_000, (0,)),
            ("plan --gpus 8 --batch 64 --model llama-3-8b --cluster p5 --seq 2048 --precision bf16 --threads 16", 800_000_000, (0,))):
        code, words, most = run(arguments, budget)
        print(f"{most / 1e6:5.0f} MB of {budget / 1e6:.0f} MB, ends with {code}: {arguments.replace(FOLDER, '.')}")
        if code not in codes:
            failed.append(f"{arguments}: ends with {code}: {words[-300:]}")
        if code == 2 and ("RIDGELINE_MEMORY_BUDGET" not in words or words.count("\n") != 1):
            failed.append(f"{arguments}: says {words[-300:]}")
        if most > budget + BESIDE:
            failed.append(f"{arguments}: {most / 1e6:.0f} MB where {budget / 1e6:.0f} MB are allowed")
    sys.exit("\n".join(failed) if failed else 0)
