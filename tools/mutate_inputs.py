"""Inputs changed at random, through the program and its server: no crash, no hang, no fault of ours, no memory beyond 1.5 GB.

    mutate_inputs.py RIDGELINE SOURCE [--count N] [--seed S] [--keep FOLDER] [--only KIND]

Every input begins as one that is shipped or that the program wrote itself; lines, keys, numbers, words and whole parts of it
are changed, so that most get past the first check. Each is judged by its exit code (0, 2, 3), its words, its seconds of CPU and
its largest memory. What fails stays in FOLDER with the command."""
import argparse
import collections
import json
import os
import random
import re
import resource
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time

MOST_CPU = 12.0
MOST_BYTES = 1_500_000_000
WALL = 120
NUMBERS = ["0", "1", "-1", "2", "3", "7", "64", "65536", "1000000", "2147483648", "9223372036854775807", "-9223372036854775808", "18446744073709551616", "1e-308", "1e308", "1e999", "nan", "inf", "0.5", "1.0000001", "0x10", "1_000"]
WORDS = ["", "null", "true", "[]", "{}", "[1, 2]", "{a: 1}", "'", "\"", "&a", "*a", "~", "bf16", "fp32", "simulate", "nvidia-t4", "llama-3-8b", "../../../etc/passwd", "\u00e9", "\U0001f600", "\x00", "%s%n", "extends", "1 GiB", "3 TB/s", "100 %"]


class Bytes:
    """Changes of any text, by its structure: lines, words, numbers, brackets."""

    def __init__(self, chance):
        self.chance = chance

    def change(self, data):
        for _ in range(self.chance.choice((1, 1, 1, 2, 3, 6))):
            data = self.chance.choice((self.number, self.number, self.number, self.word, self.drop_line, self.double_line, self.swap_lines, self.byte, self.cut, self.nest, self.flood))(data)
        return data

    def spot(self, data, pattern):
        found = [m.span() for m in re.finditer(pattern, data)]
        return self.chance.choice(found) if found else None

    def put(self, data, span, text):
        return data if span is None else data[:span[0]] + text + data[span[1]:]

    def number(self, data):
        span = self.spot(data, rb"(?<![A-Za-z_])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
        if span and self.chance.random() < 0.4:
            value = float(data[span[0]:span[1]])
            value *= self.chance.choice((0.1, 0.5, 2, 3, 10, 1000, -1))
            return self.put(data, span, (b"%d" % int(value)) if abs(value) < 1e18 else b"%g" % value)
        return self.put(data, span, self.chance.choice(NUMBERS).encode())

    def word(self, data):
        return self.put(data, self.spot(data, rb"[A-Za-z_][A-Za-z0-9_.-]*"), self.chance.choice(WORDS).encode())

    def lines(self, data):
        return data.split(b"\n")

    def drop_line(self, data):
        lines = self.lines(data)
        del lines[self.chance.randrange(len(lines))]
        return b"\n".join(lines)

    def double_line(self, data):
        lines = self.lines(data)
        at = self.chance.randrange(len(lines))
        lines[at:at] = [lines[at]] * self.chance.choice((1, 1, 2, 50))
        return b"\n".join(lines)

    def swap_lines(self, data):
        lines = self.lines(data)
        a, b = self.chance.randrange(len(lines)), self.chance.randrange(len(lines))
        lines[a], lines[b] = lines[b], lines[a]
        return b"\n".join(lines)

    def byte(self, data):
        if not data:
            return data
        at = self.chance.randrange(len(data))
        return data[:at] + bytes([self.chance.randrange(256)]) + data[at + 1:]

    def cut(self, data):
        return data[:self.chance.randrange(len(data) + 1)]

    def nest(self, data):
        span = self.spot(data, rb"[\w.]+")
        levels = self.chance.choice((3, 70, 5000))
        return self.put(data, span, b"[" * levels + b"1" + b"]" * levels)

    def flood(self, data):
        span = self.spot(data, rb"[\w.]+")
        return self.put(data, span, self.chance.choice((b"9" * 400, b"a" * 5000, b"1, " * 3000, b"\t" * 100)))


def nsight_report(path):
    """A report of Nsight Systems with one step."""
    database = sqlite3.connect(path)
    work = "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER"
    database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
    database.execute(f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({work}, demangledName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER)")
    database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER)")
    database.execute("CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER)")
    database.execute("CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, computeMajor INTEGER, computeMinor INTEGER)")
    database.execute("INSERT INTO TARGET_INFO_GPU VALUES (0, 'Tesla T4', 15843721216, 40, 7, 5)")
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(1, "turing_fp16_s1688gemm_fp16_128x128"), (2, "cudaLaunchKernel_v7000")])
    for number in range(20):
        at = 1_000_000 + 100_000 * number
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 2)", (at, at + 5000, 7 << 24 | 7, number))
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, 1, 8, 8, 1)", (at + 9000, at + 90_000, number, 7 << 24))
    database.execute("INSERT INTO NVTX_EVENTS VALUES (900000, 3200000, 59, 'step 1', ?)", (7 << 24 | 7,))
    database.commit()
    database.close()
    with open(path, "rb") as file:
        return file.read()


def seeds(program, source, folder):
    """(kind, suffix, bytes, commands): `{}` of a command is the file; kinds that the server reads have its paths too."""
    def read(*names):
        for name in names:
            with open(os.path.join(source, name), "rb") as file:
                yield name, file.read()

    made = os.path.join(folder, "seed.jsonl")
    subprocess.run([program, "predict", "--model", "nanogpt-char", "--hardware", "nvidia-t4", "--batch", "1", "--seq", "32", "--precision", "fp32", "--op-trace", made, "--memory-snapshot", made + ".json", "--timeline", made + ".trace.json"], check=True, capture_output=True)
    small = "--model nanogpt-char --batch 1 --seq 32 --precision fp32"
    out = []
    questions = ["predict {}", "predict {} --engine simulate --no-advice", "fit {}", "predict {} --sensitivity --memory-report --modules 2", "compare {} --with training.micro_batch=2", "plan {} --gpus 2 --hardware nvidia-h200-sxm-141gb"]
    for name, text in read("scenarios/bert-large-fp32.yaml", "scenarios/nanogpt/" + sorted(os.listdir(os.path.join(source, "scenarios/nanogpt")))[0], "scenarios/inference/gpt2-xl-beams.yaml", "scenarios/several-gpus/" + sorted(n for n in os.listdir(os.path.join(source, "scenarios/several-gpus")) if n.endswith(".yaml"))[0], "scenarios/exercises/" + sorted(n for n in os.listdir(os.path.join(source, "scenarios/exercises")) if n.endswith(".yaml"))[0]):
        out.append(("scenario", ".yaml", text, questions, ["/api/predict", "/api/fit", "/api/predict?engine=roofline&advice=1&sensitivity=1&show=groups,spans,memory,blocks,power,caches", "/api/plan?gpus=2"]))
    small_scenario = b"hardware: nvidia-t4\nmodel: nanogpt-char\ntraining:\n  micro_batch: 2\n  sequence_length: 32\n  precision: fp32\n  gradient_accumulation: 2\n  optimizer: {name: adamw, implementation: foreach}\n  activation_checkpointing: none\n"
    out += [("scenario", ".yaml", small_scenario, questions, ["/api/predict", "/api/fit", "/api/predict?engine=simulate", "/api/plan?gpus=2"])] * 2
    for name, text in read("hw/nvidia-t4.yaml", "hw/nvidia-h200-sxm-141gb.yaml"):
        out.append(("hardware", ".yaml", text, [f"predict --hardware {{}} {small}", "hardware {}", f"predict --hardware {{}} {small} --engine simulate"], []))
    for name, text in read("models/gpt2.yaml", "models/mixtral-8x7b.yaml", "models/t5-large.yaml", "models/vit-large.yaml"):
        out.append(("model", ".yaml", text, ["predict --model {} --hardware nvidia-t4 --batch 1 --seq 32 --precision fp32", "models {}"], []))
    for name, text in read("hw/clusters/dgx-1-v100.yaml", "hw/clusters/p5.yaml"):
        out.append(("cluster", ".yaml", text, [f"predict --cluster {{}} {small} --parallel data=4", f"plan --cluster {{}} --gpus 4 {small.replace('--batch 1', '--batch 8')}", "collectives --cluster {}"], []))
    for name, text in read("hw/hosts/default.yaml", "hw/software/pytorch-2.11.yaml"):
        option = "--host" if "hosts" in name else "--software"
        out.append(("host and software", ".yaml", text, [f"predict {option} {{}} --hardware nvidia-t4 {small}"], []))
    for name, text in read(*("tests/training_files/examples/" + n for n in ("llama_factory.yaml", "deepspeed.json", "torchtitan.toml", "megatron.sh", "nanogpt.py"))):
        out.append(("training file", os.path.splitext(name)[1], text, ["predict --from {} --model gpt2 --hardware nvidia-h200-sxm-141gb --no-advice --set training.sequence_length=64", "predict --from {} --hardware nvidia-h200-sxm-141gb --print-scenario", "predict --from {} --cluster hgx-h100 --model gpt2 --no-advice --set training.sequence_length=64"], []))
    for name in sorted(os.listdir(os.path.join(source, "tests/fuzz/corpus/any_file"))):
        for _, text in read("tests/fuzz/corpus/any_file/" + name):
            out.append(("other file", os.path.splitext(name)[1], text, ["memory {}", "hardware {}", "hardware {} --as cluster", "models {}"], []))
    sweep = json.dumps({"scenario": {"hardware": "nvidia-t4", "model": "nanogpt-char", "training": {"micro_batch": 1, "sequence_length": 32, "precision": "fp32"}}, "axes": {"training.micro_batch": [1, 2], "training.sequence_length": {"range": [16, 64], "step": 16}}}, indent=1).encode()
    out.append(("sweep", ".yaml", sweep, ["sweep {}"], ["/api/sweep"]))
    with open(made, "rb") as file:
        lines = file.read().split(b"\n")
    short = b"\n".join(lines[:1] + [line for line in lines if b'"module"' in line[:20]] )
    whole = b"\n".join(lines)
    out += [("op trace", ".jsonl", whole, ["replay {} --hardware nvidia-t4", "predict {} --hardware nvidia-t4 --engine simulate", "compare {} nvidia-t4 nvidia-a100-sxm4-80gb", "replay {} --hardware nvidia-t4 --memory-report --timeline /dev/null"], [])] * 2
    for ending, kind, commands in ((".json", "snapshot", ["memory {}", "memory {} --capacity 1GiB"]), (".trace.json", "profile", ["replay {} --hardware nvidia-t4"])):
        with open(made + ending, "rb") as file:
            out.append((kind, ending, file.read(), commands, []))
    cases = b"\n".join(json.dumps(case).encode() for case in ({"op": "mm", "dtype": "bf16", "params": {"m": 128, "n": 256, "k": 64, "layout": "nt"}}, {"op": "layer_norm", "dtype": "fp32", "params": {"rows": 64, "cols": 768}}, {"op": "softmax", "dtype": "fp16", "params": {"rows": 64, "cols": 128}}))
    out.append(("kernel cases", ".jsonl", cases, ["kernels {} --hardware nvidia-t4", "kernels {} --hardware nvidia-a100-sxm4-80gb --engine simulate"], ["/api/kernels?hardware=nvidia-t4", "/api/kernels?hardware=nvidia-a100-sxm4-80gb&engine=simulate"]))
    out.append(("nsight database", ".sqlite", nsight_report(os.path.join(folder, "report.sqlite")), ["replay {}", "replay {} --hardware nvidia-t4 --no-advice --format json"], []))
    table = b"Time (%),Total Time (ns),Instances,Avg (ns),Name\n74.5,3500000,7,500000.0,\"void gemm<a, b>(int)\"\n25.5,1200000,3,400000.0,add\n\nTime (%),Total Time (us),Num Calls,Name\n60,4.5,2,cudaMemcpyAsync\n"
    out.append(("profiler's table", ".csv", table, ["replay {}", "replay {} --recorded-on nvidia-t4 --hardware nvidia-l4 --format json"], []))
    counters = b'"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum","lts__t_sector_hit_rate.pct"\n"","","","","us","%"\n"0","gemm(int, int)","(128, 1, 1)","(4, 4, 1)","1,234.5","62.5"\n'
    out.append(("counters", ".csv", counters, ["kernels {}", "kernels {} --format text"], []))
    out.append(("comparison", ".json", json.dumps({"sides": [{"scenario": {"hardware": "nvidia-t4", "model": "nanogpt-char", "training": {"micro_batch": 1, "sequence_length": 32}}}, {"scenario": {"hardware": "nvidia-t4", "model": "nanogpt-char", "training": {"micro_batch": 2, "sequence_length": 32}}, "label": "b", "set": ["training.precision=bf16"]}]}).encode(), [], ["/api/compare"]))
    return out


def run(command, folder):
    """Exit code, words, CPU seconds and bytes of one run."""
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=words, stderr=subprocess.STDOUT, cwd=folder, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (40, 41)))
        deadline = time.monotonic() + WALL
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                process.kill()
            time.sleep(0.004)
        process.returncode = os.waitstatus_to_exitcode(status)
        words.seek(0)
        return process.returncode, words.read(200_000).decode(errors="replace"), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


class Server:
    """The real server; begun anew where it died, and after each thousand questions."""

    def __init__(self, program):
        self.program, self.process = program, None

    def begin(self):
        self.end()
        self.process = subprocess.Popen([self.program, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().strip().rstrip("/").rsplit(":", 1)[1])
        self.asked = 0

    def end(self):
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)

    def forget_peak(self):
        """What a question before held is not held against this one."""
        try:
            with open(f"/proc/{self.process.pid}/clear_refs", "w", encoding="utf-8") as file:
                file.write("5")
        except OSError:
            pass

    def usage(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            held = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), held

    def ask(self, path, body):
        if self.process is None or self.process.poll() is not None or self.asked >= 1000:
            self.begin()
        self.asked += 1
        self.forget_peak()
        before = self.usage()[0]
        answer = b""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=WALL) as one:
                one.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
                while piece := one.recv(1 << 16):
                    answer += piece
        except OSError:
            pass
        if self.process.poll() is not None:
            return self.process.returncode, "the server died", 0.0, 0
        cpu, held = self.usage()
        status = int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0
        return (0 if status == 200 else 2 if status in (400, 404, 409, 413, 422) else status or 99), answer.decode(errors="replace"), cpu - before, held


def verdict(code, words, cpu, held):
    if code not in (0, 2, 3):
        return f"ends with {code}"
    for sign in ("our bug", "json.exception", "terminate called", "Sanitizer"):
        if sign in words:
            return f"says '{sign}'"
    if cpu > MOST_CPU:
        return f"{cpu:.1f} s of CPU"
    if held > MOST_BYTES:
        return f"{held / 1e6:.0f} MB"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("source")
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", default="")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    found, codes, slowest, largest = [], collections.Counter(), 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RIDGELINE_DATA"] = os.path.abspath(options.source)
        all_seeds = [seed for seed in seeds(program, options.source, folder) if options.only in seed[0]]
        server = Server(program)
        for number in range(options.seed * 1_000_000, options.seed * 1_000_000 + options.count):
            chance = random.Random(number)
            kind, suffix, data, commands, paths = chance.choice(all_seeds)
            data = Bytes(chance).change(data)
            ask = chance.choice([("run", command) for command in commands] + [("ask", path) for path in paths])
            if ask[0] == "run":
                path = os.path.join(folder, "input" + suffix)
                with open(path, "wb") as file:
                    file.write(data)
                code, words, cpu, held = run([program, *ask[1].replace("{}", path).split()], folder)
            else:
                code, words, cpu, held = server.ask(ask[1], data)
            codes[code] += 1
            slowest, largest = max(slowest, cpu), max(largest, held)
            if why := verdict(code, words, cpu, held):
                found.append(f"{number} ({kind}; {ask[1]}): {why}")
                print(found[-1], flush=True)
                if options.keep:
                    os.makedirs(options.keep, exist_ok=True)
                    with open(os.path.join(options.keep, f"{number}{suffix}"), "wb") as file:
                        file.write(data)
        server.end()
    answered = ", ".join(f"{count} with {code}" for code, count in sorted(codes.items()))
    print(f"{options.count} changed inputs from seed {options.seed}: {answered}; {slowest:.1f} s of CPU and {largest / 1e6:.0f} MB at most; {len(found)} failed")
    sys.exit(1 if found else 0)


main()
