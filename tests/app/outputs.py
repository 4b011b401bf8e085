"""Every option that names a file to write, as --help lists them: whole or not at all, never an input, never two to one file.

usage: outputs.py PROGRAM SOURCE
"""
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM, SOURCE = map(os.path.abspath, sys.argv[1:])
DATABASES = {"--points", "--keep"}  # SQLite files that are gone on from
FAILED = []


def expect(truth, words):
    if not truth:
        FAILED.append(words)


def run(words, error=subprocess.PIPE, output=subprocess.PIPE):
    done = subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=output, stderr=error, cwd=os.getcwd())
    return done.returncode, (done.stderr or b"").decode(errors="replace")


def write(name, text):
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def contents(name):
    with open(name, "rb") as file:
        return file.read()


def timed_cases():
    """Operations of a GPU whose memory is a quarter slower than the description says, so that a refit has something to find."""
    cases = [{"op": ("gelu", "softmax", "layer_norm")[i % 3], "dtype": "bf16", "params": {"rows": 1000 * (1 + i), "cols": 4096}} for i in range(60)]
    slower = subprocess.run([PROGRAM, "kernels", "--hardware", "nvidia-h200-sxm-141gb", "--set", "dram.bandwidth=3.6 TB/s"], input="".join(json.dumps(case) + "\n" for case in cases), capture_output=True, text=True, check=True)
    return "".join(json.dumps({**case, "us": json.loads(line)["predicted"]["time_us"]}) + "\n" for case, line in zip(cases, slower.stdout.split("\n")))


def commands():
    """For each command that writes files: its words, and which of them are files that it reads."""
    scenario = write("scenario.yaml", "hardware: nvidia-h200-sxm-141gb\nmodel: nanogpt-char\ntraining: {micro_batch: 1, sequence_length: 32, precision: fp32}\n")
    sweep = write("sweep.yaml", "scenario: {hardware: nvidia-t4, model: nanogpt-char, training: {sequence_length: 32, precision: fp32}}\naxes: {training.micro_batch: [1, 2]}\n")
    cases = write("cases.jsonl", timed_cases())
    with open(os.path.join(SOURCE, "hw/probe/results/nvidia-h200-sxm-141gb.json"), encoding="utf-8") as file:
        probe = write("probe.json", file.read())
    with open(os.path.join(SOURCE, "hw/nvidia-h200-sxm-141gb.yaml"), encoding="utf-8") as file:
        chip = write("chip.yaml", file.read())
    assert run(["predict", scenario, "--op-trace", "trace.jsonl"])[0] == 0
    return {
        "predict": ([scenario], ["predict", scenario, "--no-advice"]),
        "compare": ([scenario], ["compare", scenario, "nvidia-h200-sxm-141gb", "nvidia-a100-sxm4-80gb"]),
        "sweep": ([sweep], ["sweep", sweep]),
        "plan": ([scenario], ["plan", scenario, "--gpus", "2"]),
        "kernels": ([cases, chip], ["kernels", cases, "--hardware", "./" + chip, "--engine", "simulate"]),
        "replay": (["trace.jsonl", chip], ["replay", "trace.jsonl", "--hardware", "./" + chip]),
        "calibrate": ([probe, chip], ["calibrate", probe, "--hardware", "./" + chip]),
        "refit": ([cases, chip], ["refit", "--kernels", cases, "--hardware", "./" + chip]),
    }


def outputs_of(command):
    text = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  (?:-\w,)?(--[a-z-]+) OUTPUT\b", text, re.M)


def left_behind():
    return [name for name in os.listdir() if name.startswith(".ridgeline-")]


def check_one(inputs, words, option):
    where = f"{words[0]} {option}"
    code, said = run([*words, option, "made"])
    wrote = os.path.exists("made")
    expect(code == 0 and wrote, f"{where}: ends with {code}, file there: {wrote}: {said}")
    if not wrote:
        return
    os.chmod("made", 0o640)
    once = contents("made")
    if option not in DATABASES:
        code, said = run([*words, option, "made"], error=subprocess.DEVNULL)
        expect(code == 0 and contents("made") == once and os.stat("made").st_mode & 0o777 == 0o640, f"{where}: written again it is another file, or has another mode")
    for name, wrong, code_wanted in (("no name", "", (2,)), ("no such folder", "none/made", (1, 2)), ("a folder", ".", (1, 2)), ("a full disk", "/dev/full", (1, 2))):
        code, said = run([*words, option, wrong])
        expect(code in code_wanted and said.count("\n") >= 1 and "our bug" not in said, f"{where}, {name}: ends with {code}: {said}")
    for name in inputs:
        before = contents(name)
        for spelled in (name, "./" + name, os.path.abspath(name), "linked"):
            if spelled == "linked":
                os.symlink(name, spelled)
            code, said = run([*words, option, spelled])
            expect(code == 2, f"{where} {spelled}: ends with {code} where it would write over its input: {said}")
            expect(contents(name) == before, f"{where} {spelled}: wrote over its input")
            write(name, before.decode())
        os.remove("linked")
    # What is said on standard error is not part of the answer, nor is a standard output that takes nothing of the file.
    os.remove("made")
    code, _ = run([*words, option, "made"], error=open("/dev/full", "wb"))
    expect(code == 0 and os.path.exists("made"), f"{where} 2>/dev/full: ends with {code}, file there: {os.path.exists('made')}")
    code, _ = run([*words, option, "made"], output=open("/dev/full", "wb"))
    expect(code == 1, f"{where} >/dev/full: ends with {code}")
    for redirection in ("2>&-", ">&-", "2>&- >&-", "<&-"):
        os.remove("made")
        command = " ".join(f"'{word}'" for word in [PROGRAM, *words, option, "made"])
        code = subprocess.run(["bash", "-c", f"{command} {redirection}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        expect(code == (1 if ">&-" in redirection.split() else 0), f"{where} {redirection}: ends with {code}")
        if not os.path.exists("made"):
            expect(">&-" in redirection.split() and words[0] == "kernels", f"{where} {redirection}: writes nothing")
            write("made", "")  # cases are printed one by one, and the first that is not taken ends them
        elif option not in DATABASES:
            expect(contents("made") == once, f"{where} {redirection}: another file")
    if option not in DATABASES:
        killed(where, [*words, option, "made"], once)
    for name in ("made", "made-journal"):
        if os.path.exists(name):
            os.remove(name)


def killed(where, words, whole):
    """kill -9 at any moment: the file is the old one or the new one, and what was begun is gone after the next run."""
    for _ in range(4):
        write("made", "old")
        process = subprocess.Popen([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(CHANCE.random() * 0.08)
        process.send_signal(signal.SIGKILL)
        process.wait()
        expect(contents("made") in (b"old", whole), f"{where}: killed, it leaves {len(contents('made'))} bytes of {len(whole)}")
    run(words)
    expect(contents("made") == whole and not left_behind(), f"{where}: after a kill the next run leaves {left_behind()}")


def check_pairs(words, options):
    for first, second in itertools.combinations(options, 2):
        code, said = run([*words, first, "both", second, "./both"])
        expect(code == 2 and "both write" in said and not os.path.exists("both"), f"{words[0]} {first} {second}: both write one file, ends with {code}: {said}")
        code, said = run([*words, first, "one", second, "two"])
        expect(code == 0 and os.path.exists("one") and os.path.exists("two"), f"{words[0]} {first} {second}: ends with {code}: {said}")
        for name in ("one", "two"):
            if os.path.exists(name):
                os.remove(name)


def shipped():
    state = {}
    for folder in ("hw", "models", "scenarios", "data", "docs"):
        for path, _, names in os.walk(os.path.join(SOURCE, folder)):
            for name in names:
                stat = os.stat(os.path.join(path, name))
                state[os.path.join(path, name)] = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return state


def main():
    os.environ["RIDGELINE_DATA"] = SOURCE
    before = shipped()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        known = commands()
        page = "npm's packages" not in run([*known["predict"][1], "--html", "page.html"])[1]
        listed = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout.split("Subcommands:")[1].split("Exit codes")[0]
        count = 0
        for command in re.findall(r"^  ([a-z]+) ", listed, re.M):
            options = [option for option in outputs_of(command) if page or option != "--html"]
            if options and command not in known:
                FAILED.append(f"{command} writes {options}, and no use of it is tried; add one to {sys.argv[0]}")
                continue
            for option in options:
                check_one(*known[command], option)
                count += 1
            if len(options) > 1:
                check_pairs(known[command][1], options)
            if command in known:  # without the option
                run(known[command][1])
        expect(count >= (15 if page else 11), f"only {count} options are shown as OUTPUT")
        expect(not left_behind(), f"left behind: {left_behind()}")
        print(f"{count} options of {len(known)} commands")
    after = shipped()
    expect(before == after, f"changed among what is shipped: {sorted(k for k in before.keys() | after.keys() if before.get(k) != after.get(k))}")
    sys.exit("\n".join(FAILED) if FAILED else 0)


CHANCE = random.Random(1)
main()
