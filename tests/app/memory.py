"""One memory for all threads of a question: what is answered, what is refused, and how large the process becomes.

usage: memory.py PROGRAM SOURCE
"""
import os
import subprocess
import sys
import tempfile

PROGRAM, SOURCE = map(os.path.abspath, sys.argv[1:])
with open(PROGRAM, "rb") as program:
    if b"__asan_init" in (whole := program.read()) or b"__tsan_init" in whole:
        print("a sanitizer's memory is not the program's")
        sys.exit(0)
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
    # Wherever a budget ends, the question does and not the program: destructors and other threads included.
    layers = "--model llama-3-8b --hardware nvidia-h200-sxm-141gb --batch 1 --seq 256 --precision bf16 --set model.layers="
    write = f"--timeline {FOLDER}/a --op-trace {FOLDER}/b --memory-snapshot {FOLDER}/c"
    run(f"predict {layers}32 --no-advice --op-trace {FOLDER}/recorded.jsonl", 1_300_000_000)
    counts = {0: 0, 2: 0}
    for arguments in (f"predict {layers}400 {write}", f"predict {layers}300 --accumulation 8 --memory-report --modules 2 --sensitivity", f"predict {layers}200 --set model.code=plain --engine simulate",
                      f"predict {layers}200 --set training.activation_checkpointing=block --no-advice", f"predict {layers}200 --set training.compile=true --no-advice", f"predict --cluster h200-x4 --parallel pipeline=4 --accumulation 4 {layers.replace('--hardware nvidia-h200-sxm-141gb', '')}64 {write}",
                      f"fit {layers.replace('--batch 1', '')}500", f"compare {layers}200 nvidia-h200-sxm-141gb nvidia-a100-sxm4-80gb", f"replay {FOLDER}/recorded.jsonl --hardware nvidia-t4 {write}",
                      "plan --gpus 8 --batch 16 --model gpt2-xl --cluster p5 --seq 512 --precision bf16 --threads 16", f"sweep {sweep} --threads 16"):
        for budget in (3, 8, 15, 25, 40, 60, 90, 140, 220):
            code, words, _ = run(arguments, budget * 1_000_000)
            counts[code] = counts.get(code, 0) + 1
            if code not in counts or code not in (0, 2):
                failed.append(f"{arguments} within {budget} MB: ends with {code}: {words[-400:]}")
            elif code == 2 and ("RIDGELINE_MEMORY_BUDGET" not in words or "our bug" in words):
                failed.append(f"{arguments} within {budget} MB: says {words[-300:]}")
    print(f"{counts[0]} answered and {counts[2]} refused within 3 to 220 MB")
    if min(counts[0], counts[2]) < 10:
        failed.append("too few are answered, or refused, to say anything")
    sys.exit("\n".join(failed) if failed else 0)
