"""Every shipped file is as `ridgeline schema` has it, every mistake of tests/bad_inputs that a schema can see is not, and every command prints
what it says.

usage: check_schema.py PROGRAM SOURCE
"""
import json
import pathlib
import subprocess
import sys

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
sys.path.insert(0, str(SOURCE / "tools"))
from json_schema import mistakes  # noqa: E402

try:
    import yaml
except ImportError:
    print("No module named yaml: shipped files are not checked")
    sys.exit(0)


class Loader(yaml.SafeLoader):
    """YAML 1.2's scalars, as editors read them: no `on`, no dates, no numbers of base 60."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (("bool", r"^(?:true|false)$", "tf"), ("null", r"^(?:null|~|)$", ["n", "~", ""]),
                            ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
                            ("float", r"^[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", "-+.0123456789")):
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", __import__("re").compile(pattern), list(first))


def schema():
    return json.loads(subprocess.run([PROGRAM, "schema"], capture_output=True, text=True, check=True).stdout)


def kind_of(path):
    parts = path.relative_to(SOURCE).parts
    if parts[0] == "models":
        return "model"
    if parts[0] == "hw":
        return {"hosts": "host", "software": "software", "clusters": "cluster", "interconnects": "cluster"}.get(parts[1], "hardware")
    return {"sweeps": "sweep", "exercises": "exercise"}.get(parts[1], "scenario")


def wrong_with(file, kind, root):
    document = yaml.load(file.read_text(), Loader)
    if "architectures" in file.parts and isinstance(document, dict):
        document.setdefault("title", "what an architecture brings")
        document.pop("derive", None)  # of these files alone: sim/hardware/derived_defaults.cpp
    if isinstance(document, dict) and "model_type" in document:  # keys of Hugging Face, which the schema does not list
        return []
    return [f"{file.relative_to(SOURCE)}{one}" for one in mistakes(document, {"$ref": f"#/$defs/{kind}"}, root)]


def main():
    root = schema()
    files = [path for folder in ("hw", "models", "scenarios") for path in sorted((SOURCE / folder).rglob("*.yaml"))
             if path.parent not in (SOURCE / "models" / "families", SOURCE / "models" / "unbuilt")]  # tables of sim/workload/huggingface_table.h
    wrong = [one for file in files for one in wrong_with(file, kind_of(file), root)]
    # The checker has to find something where there is something to find.
    seen = 0
    bad = [(path, kind) for kind in ("hardware", "scenario") for path in sorted((SOURCE / "tests/bad_inputs" / kind).rglob("*.yaml"))]
    for path, kind in bad:
        try:
            seen += bool(wrong_with(path, kind, root))
        except (yaml.YAMLError, UnicodeDecodeError, RecursionError):  # refused before any schema
            seen += 1
    if 2 * seen < len(bad) or not bad:
        wrong.append(f"of {len(bad)} files with mistakes the schema refuses {seen} only")
    if len(files) < 80:
        wrong.append(f"{len(files)} shipped files found, at least 80 expected")
    if wrong:
        sys.exit("\n".join(wrong[:30]))
    print(f"{len(files)} shipped files are as the schema says; it refuses {seen} of {len(bad)} with mistakes")


main()
