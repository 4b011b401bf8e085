"""Ctrl+C in the middle of every command: it ends within a second with 130, says so in a line, and leaves nothing half-written.

usage: stops.py PROGRAM SOURCE
"""
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM, SOURCE = map(os.path.abspath, sys.argv[1:])
SANITIZED = b"__asan_init" in open(PROGRAM, "rb").read() or b"__tsan_init" in open(PROGRAM, "rb").read()
SOON = 5.0 if SANITIZED else 1.0  # seconds
LARGE = "--model llama-3-70b --hardware nvidia-h200-sxm-141gb --batch 4 --seq 4096 --precision bf16"
SMALL = "hardware: nvidia-t4, model: nanogpt-char, training: {sequence_length: 32, precision: fp32, micro_batch: 1}"
# Answered from what is shipped, in less than 0.3 s.
SHORT = {"exercise", "hardware", "models", "schema", "completion", "calibrate"}


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def long_commands():
    """Commands that take seconds, with the files they would write."""
    cases = write("cases.jsonl", "".join(json.dumps({"op": "mm", "dtype": "bf16", "params": {"m": 128 * (1 + i % 40), "n": 8192, "k": 8192, "layout": "nt"}, "us": 100.0 + i % 40}) + "\n" for i in range(4000)))
    calls = write("calls.jsonl", '{"op": "all_reduce", "bytes": 1000000, "ranks": 8}\n' * 400000)
    sweep = write("sweep.yaml", f"scenario: {{{SMALL}}}\naxes: {{training.micro_batch: {{range: [1, 400], step: 1}}, training.sequence_length: {{range: [16, 512], step: 16}}}}\n")
    phases = write("phases.yaml", "hardware: nvidia-h200-sxm-141gb\nmodel: gpt2-xl\nphases:\n" + "".join(f"  - {{name: p{i}, training: {{micro_batch: {i + 1}, sequence_length: 1024, precision: bf16}}}}\n" for i in range(8)))
    subprocess.run([PROGRAM, "predict", *LARGE.split(), "--no-advice", "--op-trace", "trace.jsonl"], check=True, capture_output=True)
    return {
        "predict": f"predict {LARGE} --engine simulate --timeline out.json --html out.html --memory-snapshot out.pickle --op-trace out.jsonl",
        "fit": "fit --model gpt2-xl --hardware nvidia-b300 --seq 64 --precision bf16 --set model.layers=3000",
        "fits": "fits bert-large nvidia-h200-sxm-141gb --seq 512 --engine simulate",
        "compare": f"compare {LARGE} nvidia-h200-sxm-141gb nvidia-a100-sxm4-80gb --engine simulate --html out.html",
        "sweep": f"sweep {sweep} --points out.db --html out.html",
        "plan": "plan --gpus 256 --batch 5040 --model llama-3-70b --cluster p5 --seq 4096 --precision bf16 --keep out.db",
        "kernels": f"kernels {cases} --hardware nvidia-h200-sxm-141gb --engine simulate --timeline out.json",
        "collectives": f"collectives {calls} --cluster p5",
        "memory": "memory /dev/stdin",
        "replay": "replay trace.jsonl --hardware nvidia-h200-sxm-141gb --engine simulate --timeline out.json --html out.html",
        "validate": "validate",
        "phases": f"phases {phases} --engine simulate",
        "refit": f"refit --kernels {cases} --hardware nvidia-h200-sxm-141gb --output out.yaml",
        "serve": "serve --port 0",
    }


# A sweep and a plan keep what is done in their database, which is whole at each moment.
MAY_STAY = {"sweep": {"out.db"}, "plan": {"out.db"}}
ENDS_WELL = {"serve"}  # a server that is stopped has done what it was told


def stopped(words, after, by_terminal):
    """Exit code, seconds from the signal to the end, and what was said; None where it was over before."""
    if by_terminal:
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(PROGRAM, [PROGRAM, *words])
        said, end = b"", time.monotonic() + after
        while (left := end - time.monotonic()) > 0:
            if select.select([terminal], [], [], left)[0]:
                try:
                    said += os.read(terminal, 65536)
                except OSError:
                    break
        begin = time.monotonic()
        try:
            os.write(terminal, b"\x03")
            while piece := os.read(terminal, 65536):
                said += piece
        except OSError:  # the other end is closed
            pass
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status), time.monotonic() - begin, said.decode(errors="replace")
    process = subprocess.Popen([PROGRAM, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        process.wait(after)
        return None
    except subprocess.TimeoutExpired:
        pass
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    said = process.stdout.read().decode(errors="replace")
    code = process.wait()
    return code, time.monotonic() - begin, said


def judge(name, words, before, after, by_terminal):
    told = stopped(words.split(), after, by_terminal)
    if told is None:
        return f"{name}: over within {after} s; give it more to do"
    code, seconds, said = told
    left = {file for file in os.listdir() if file not in before and not (name in MAY_STAY and file.split("-")[0] in MAY_STAY[name])}
    for file in set(os.listdir()) - before:
        os.remove(file)
    where = f"{name} {'on a terminal' if by_terminal else 'in a pipe'} after {after} s"
    if code != (0 if name in ENDS_WELL else 130):
        return f"{where}: ends with {code}: {said[-300:]}"
    if seconds > (2.0 * SOON if name in ENDS_WELL else SOON):
        return f"{where}: {seconds:.2f} s"
    if left:
        return f"{where}: leaves {sorted(left)}"
    if re.search(r"Traceback|our bug|terminate called|Sanitizer", said):
        return f"{where}: says {said[-300:]}"
    if name not in ENDS_WELL and "stopped" not in said:
        return f"{where}: does not say that it was stopped: {said[-300:]}"
    print(f"{where}: {seconds:.3f} s")
    return ""


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RIDGELINE_DATA"] = SOURCE
        os.chdir(folder)
        commands = long_commands()
        if b"npm's packages" in subprocess.run([PROGRAM, *f"predict {LARGE} --no-advice --html page.html".split()], capture_output=True).stderr:
            commands = {name: words.replace(" --html out.html", "") for name, words in commands.items()}
        if os.path.exists("page.html"):
            os.remove("page.html")
        listed = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout.split("Subcommands:")[1].split("Exit codes")[0]
        names = set(re.findall(r"^  ([a-z]+) ", listed, re.M))
        failed = [f"{name}: no long command of it is tried; add one to {sys.argv[0]}" for name in sorted(names - SHORT - set(commands))]
        before = set(os.listdir())
        for name, words in commands.items():
            for after, by_terminal in ((0.1, False), (0.5, False), (0.3, True)):
                if why := judge(name, words, before, after, by_terminal):
                    failed.append(why)
        sys.exit("\n".join(failed) if failed else 0)


main()
