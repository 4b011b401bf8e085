#!/usr/bin/env python3
"""Makes data/output_schema.json, the JSON Schema of what the commands print, of what they print.

Each kind of output is printed by several commands; what all of them have is required, what docs/json.md says of a key is its
description. With --check, prints nothing and only says whether every output is as the committed file has it.

usage: tools/output_schema.py PROGRAM [--check]
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from json_schema import mistakes

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "data" / "output_schema.json"
BERT, LADDER = "scenarios/bert-large-fp32.yaml", "scenarios/gpt2-ladder-a100/4-flash-attention.yaml"
T4 = ["--hardware", "nvidia-t4", "--model", "bert-base", "--seq", "128"]
SMALL = [*T4, "--batch", "2"]
LLAMA = "model={family: llama, code: plain, layers: 8, heads: 8, hidden: 512, feed_forward: 1024, vocabulary: 8000}"
RECORDING = "measurements/recordings/bert-base-b8-t128-fp32.jsonl.gz"
CASES = [{"op": "mm", "dtype": "bf16", "params": {"m": 1024, "n": 1024, "k": 512, "layout": "nt"}, "id": "a"},
         {"op": "softmax", "dtype": "fp32", "params": {"rows": 1024, "cols": 128}, "input_sets": 4},
         {"op": "flash_attention", "dtype": "bf16", "params": {"batch": 1, "heads": 8, "seq": 256, "head_dim": 64, "causal": True}},
         {"op": "no such op"}]
# Objects whose keys are names of the question at hand: axes, keys of hardware, parameters of an operation.
FREE = {"prediction.question.scenario", "replay.question.scenario", "comparison.scenarios.0.question.scenario",
        "sweep_points.points.0.at", "kernel_line.params", "prediction.sensitivity.keys", "replay.sensitivity.keys",
        "kernel_line.predicted.sensitivity.keys", "hardware_sheet.values", "replay.defects", "models_list.0.sizes"}


def commands(folder):
    """Kind of output, whether each line is one, and the command that prints it."""
    cases = pathlib.Path(folder) / "cases.jsonl"
    cases.write_text("".join(json.dumps(case) + "\n" for case in CASES))
    predict = [[BERT], [*SMALL, "--no-advice", "--set", "run={examples: 1000, epochs: 3}"], [BERT, "--no-advice", "--memory-report", "--sensitivity"], [LADDER, "--set", "training.compile=true"],
               [*SMALL, "--no-advice", "--engine", "simulate"], [*SMALL, "--no-advice", "--datasheet"],
               ["scenarios/inference/gpt2-xl-beams.yaml", "--no-advice"],
               ["scenarios/several-gpus/gpt2-ddp-4-h200.yaml", "--no-advice"],
               ["--model", "gpt2-xl", "--hardware", "nvidia-t4", "--batch", "8", "--seq", "1024", "--memory-report"],
               [*SMALL, "--no-advice", "--set", "host.scale=1.4", "--set", "hardware.power.limit=50 W"]]
    for options in predict:
        yield "prediction", False, ["predict", *options]
    yield "predictions", False, ["predict", *SMALL, "--no-advice", "--on-every-gpu"]
    traces = sorted(str(path.relative_to(ROOT)) for folder in ("traces", "execution_traces")
                    for path in (ROOT / "measurements" / "h200" / folder).glob("*.json*"))[:3]
    for trace in [RECORDING, *traces]:
        yield "replay", False, ["replay", trace, "--hardware", "nvidia-a100-sxm4-80gb", "--no-advice"]
    yield "replay", False, ["replay", RECORDING, "--hardware", "nvidia-l4", "--memory-report", "--sensitivity"]
    table = "tests/fuzz/corpus/profile_table/sums.csv"
    for options in ([], ["--recorded-on", "nvidia-t4", "--hardware", "nvidia-l4"]):
        yield "kernel_table", False, ["replay", table, *options]
    for options in ([BERT], T4, ["--model", "llama-7b", "--hardware", "nvidia-t4", "--seq", "512"]):
        yield "fit", False, ["fit", *options]
    for gpu in ("nvidia-t4", "nvidia-h200-sxm-141gb"):
        yield "fits", False, ["fits", "gpt2", gpu, "--seq", "256"]
    yield "fits", False, ["fits", "llama-7b", "nvidia-t4", "--seq", "256"]
    yield "comparison", False, ["compare", BERT, "nvidia-h200-sxm-141gb", "--with", "training.precision=amp-fp16"]
    yield "comparison", False, ["compare", RECORDING, "nvidia-t4", "nvidia-l4"]
    for name in ("twice-the-bandwidth", "time-memory-energy"):
        yield "sweep_points", False, ["sweep", f"scenarios/sweeps/{name}.yaml"]
    yield "plan", False, ["plan", *T4, "--batch", "4", "--gpus", "1"]
    yield "plan", False, ["plan", *T4, "--batch", "1", "--gpus", "1", "--checkpointing", "none", "--set", "hardware.price_per_hour=0"]
    yield "plan", False, ["plan", "--cluster", "hgx-h200", "--set", LLAMA, "--set", "hardware.dram.capacity=2.1 GB", "--seq", "256",
                          "--precision", "bf16", "--batch", "8", "--gpus", "2,4"]
    for options in ([], ["--sensitivity"], ["--engine", "simulate"]):
        yield "kernel_line", True, ["kernels", "--hardware", "nvidia-h100-sxm5-80gb", *options, str(cases)]
    for file in sorted((ROOT / "measurements" / "h200" / "allocations").glob("*.csv*"))[:1]:
        yield "memory", False, ["memory", str(file.relative_to(ROOT))]
    yield "memory", False, ["memory", "build/schema-step.pickle"]
    yield "memory", False, ["memory", "tests/allocator/pickles/out-of-memory.pickle"]
    for name in ("out-of-memory.log", "out-of-memory-1.log", "summary.txt", "stats.json"):
        yield "memory", False, ["memory", f"tests/fuzz/corpus/any_file/{name}"]
    yield "exercises", False, ["exercise"]
    yield "exercise_text", False, ["exercise", "4"]
    yield "exercise_text", False, ["exercise", "4", "--answer", "1", "--solution"]
    yield "hardware_list", False, ["hardware"]
    yield "hardware_sheet", False, ["hardware", "nvidia-h200-sxm-141gb"]
    yield "models_list", False, ["models"]
    yield "model_sheet", False, ["models", "llama-7b"]


def printed(program, folder):
    """Kind and document, of all commands."""
    for kind, lines, command in commands(folder):
        command = [str(pathlib.Path(folder) / "step.pickle") if word == "build/schema-step.pickle" else word for word in command]
        run = subprocess.run([program, *command, "--format", "json"], cwd=ROOT, capture_output=True, text=True)
        # 2: a line that is a mistake, an answer that is wrong.
        if run.returncode not in ((0, 2) if lines or command[0] == "exercise" else (0,)):
            sys.exit(f"ridgeline {' '.join(command)}: exit code {run.returncode}: {run.stderr}")
        for text in run.stdout.splitlines() if lines else [run.stdout]:
            yield kind, " ".join(command), json.loads(text)


class Shape:
    """What was seen at one place of the documents of a kind."""

    def __init__(self):
        self.types, self.objects, self.keys, self.item = set(), 0, {}, None

    def see(self, value):
        name = {dict: "object", list: "array", str: "string", bool: "boolean", type(None): "null", int: "integer",
                float: "number"}[type(value)]
        self.types.add(name)
        if name == "object":
            self.objects += 1
            for key, inner in value.items():
                seen = self.keys.setdefault(key, [Shape(), 0])
                seen[0].see(inner)
                seen[1] += 1
        if name == "array":
            self.item = self.item or Shape()
            for inner in value:
                self.item.see(inner)

    def schema(self, place, said):
        types = self.types - ({"integer"} if "number" in self.types else set())
        out = {}
        if types:
            out["type"] = sorted(types)[0] if len(types) == 1 else sorted(types)
        if place in FREE:
            return out
        if self.objects:
            out["properties"] = {}
            for key, (shape, _) in self.keys.items():
                inner = shape.schema(f"{place}.{key}", said)
                out["properties"][key] = {"description": said[key], **inner} if key in said else inner
            required = [key for key, (_, times) in self.keys.items() if times == self.objects]
            if required:
                out["required"] = required
            out["additionalProperties"] = False
        if self.item is not None:
            out["items"] = self.item.schema(f"{place}.0", said)
        return out


def descriptions():
    """What docs/json.md says of a key that stands alone in a row of its tables."""
    said = {}
    for name, meaning in re.findall(r"^\| ([\w.]+) \| (.*) \|$", (ROOT / "docs" / "json.md").read_text(), re.M):
        said.setdefault(name.split(".")[-1], re.sub(r"\[(\w+)\]\([^)]*\)", r"\1", meaning))
    return said


def main(program, check=False):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "predict", *SMALL, "--no-advice", "--memory-snapshot", f"{folder}/step.pickle"], cwd=ROOT,
                       check=True, capture_output=True)
        documents = list(printed(program, folder))
    if check:
        root = json.loads(FILE.read_text())
        wrong = [f"{command}: {one}" for kind, command, document in documents
                 for one in mistakes(document, root["$defs"][kind], root)]
        unseen = set(root["$defs"]) - {kind for kind, _, _ in documents}
        if wrong or unseen:
            sys.exit("\n".join(wrong[:20] + [f"no command prints {kind}" for kind in sorted(unseen)] +
                               ["python3 tools/output_schema.py build/ridgeline makes data/output_schema.json anew"]))
        print(f"{len(documents)} outputs are as data/output_schema.json says")
        return
    shapes = {}
    for kind, _, document in documents:
        shapes.setdefault(kind, Shape()).see(document)
    said = descriptions()
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "What the commands of ridgeline print with --format json",
              "$defs": {kind: shape.schema(kind, said) for kind, shape in shapes.items()}}
    schema["$defs"]["predictions"] = {"type": "array", "items": {"$ref": "#/$defs/prediction"}}
    FILE.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], "--check" in sys.argv)
