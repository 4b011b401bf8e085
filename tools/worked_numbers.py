#!/usr/bin/env python3
"""Recomputes the worked numbers of docs/model/*.md and compares them with what the program says.

    worked_numbers.py PROGRAM ROOT [--write] [PAGE ...]

A block of a page, fenced as ```worked, is one calculation, line by line (what stands behind ` # ` is for the reader):

    $ ridgeline kernels ...        runs the program; said(a.b[0].c) is then a number of the JSON it printed, in base units
    gpu NAME                       the file of hw/ that hw(key) reads; at first that of the command's --hardware
    f(x) = EXPRESSION              a function
    name = EXPRESSION = 1.234 us   a number: the expression gives it to the digits that are printed
    program = EXPRESSION = 1.234 us   what the program says; prints the same as the line before

Expressions are arithmetic with the names above them, hw(key) of the GPU, law(table.class.constant) of data/laws, json(file,
key, ...) of a number in a JSON file, curve(name; row) of docs/microkernels.md, and the functions below. A block without a line
`program` is an error, as is a page without a block. A table behind <!-- errors: TABLE --> is that of the fits of
data/laws/TABLE.yaml. --write puts in numbers and tables; where calculation and program disagree it leaves a fault, as without
(`?4` asks for four digits).
"""
import ast
import json
import math
import os
import pathlib
import re
import subprocess
import sys
from decimal import Decimal

ERRORS = re.compile(r"^(<!-- errors: (\w+) -->\n\n)((?:\|.*\n)*)", re.M)
BLOCK = re.compile(r"^```worked\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"^(?P<digits>-?[\d.]+(?:e[+-]?\d+)?|\?\d+)(?: (?P<unit>\S+))?$")
UNITS = {None: 1.0, "cycles": 1.0, "blocks": 1.0, "warps": 1.0, "kernels": 1.0, "%": 1e-2, "B": 1.0, "W": 1.0, "J": 1.0, "s": 1.0, "B/cycle": 1.0}
for _prefix, _factor in (("p", 1e-12), ("n", 1e-9), ("u", 1e-6), ("m", 1e-3), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
    for _unit in ("s", "B", "J", "W", "FLOP", "Hz", "B/s", "FLOP/s", "J/B", "J/FLOP"):
        UNITS[_prefix + _unit] = _factor
for _i, _prefix in enumerate(("Ki", "Mi", "Gi", "Ti"), 1):
    UNITS[_prefix + "B"] = 1024.0 ** _i
BASE_OF_KEY = {"_us": 1e-6, "_ms": 1e-3, "_mhz": 1e6}


class Wrong(Exception):
    """What a page says and what comes out differ, or a line cannot be understood."""


def norm(p, *terms):
    most = max(terms)
    return most * sum((x / most) ** p for x in terms) ** (1.0 / p) if most > 0 else 0.0


def clamp(x, low=0.0, high=1.0):
    return min(max(x, low), high)


def share_below(x):
    """Share of a normal distribution below x."""
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


FUNCTIONS = {"ceil": lambda x: math.ceil(x - 1e-9), "floor": lambda x: math.floor(x + 1e-9), "sqrt": math.sqrt, "exp": math.exp,
             "ln": math.log, "log2": math.log2, "min": min, "max": max, "abs": abs, "norm": norm, "clamp": clamp,
             "share_below": share_below}
OPERATORS = {ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Div: lambda a, b: a / b,
             ast.Pow: lambda a, b: a ** b, ast.Mod: lambda a, b: a % b}


def quantity(text):
    """A number with a unit, as the files of hw/ write it, in base units."""
    match = NUMBER.match(text.strip())
    if not match or match["unit"] not in UNITS:
        raise Wrong(f"no number: {text!r}")
    return float(match["digits"]) * UNITS[match["unit"]]


def values_of(path):
    """Values `key: {value: X` of a YAML file of data/laws or hw/, by dotted path; those below `measured` count before others."""
    values, measured, open_keys = {}, {}, []
    for line in path.read_text().splitlines():
        match = re.match(r"^( *)([\w.]+):(.*)$", line)
        if not match:
            continue
        depth, key, rest = len(match[1]), match[2], match[3].strip()
        open_keys = [(d, k) for d, k in open_keys if d < depth] + [(depth, key)]
        value = re.match(r"^\{ *value: *([^,}]+)", rest)
        if value:
            dotted = ".".join(k for _, k in open_keys)
            into = measured if dotted.startswith("measured.") else values
            into[dotted.removeprefix("measured.")] = value[1].strip()
    return {**values, **measured}


class Calculation:
    """One block: names, functions, the GPU and the last output."""

    def __init__(self, program, root, outputs):
        self.program, self.root, self.outputs = program, root, outputs
        self.names, self.functions, self.said_json, self.gpu = {}, {}, None, None

    def run(self, command):
        if command not in self.outputs:
            said = ("LANG", "LANGUAGE", "COLUMNS", "LINES", "TERM", "NO_COLOR")
            kept = {k: v for k, v in os.environ.items() if k not in said and not k.startswith(("LC_", "RIDGELINE_"))}
            line = re.sub(r"(^|\| |&& )ridgeline(?= )", lambda found: found[1] + str(self.program), command)
            done = subprocess.run(["bash", "-c", line], cwd=self.root, env={**kept, "LC_ALL": "C.UTF-8"}, capture_output=True, text=True,
                                  timeout=120)
            if done.returncode != 0:
                raise Wrong(f"$ {command}\nexit code {done.returncode}\n{done.stderr}")
            self.outputs[command] = json.loads(done.stdout)
        self.said_json = self.outputs[command]
        hardware = re.search(r"--hardware (\S+)", command)
        if hardware and self.gpu is None:
            self.gpu = hardware[1]

    def said(self, path):
        values = [self.said_json]
        for index, name, wanted, key in re.findall(r"\[(\d+)\]|\[(\w+)=([^\]]+)\]|(\w+)", path):
            if name:  # of a list those that are so named; numbers of several are added up
                entries = [entry for value in values for entry in (value if isinstance(value, list) else [value])]
                values = [entry for entry in entries if str(entry.get(name)) == wanted]
            elif index:
                values = [(values[0] if isinstance(values[0], list) else values)[int(index)]]
            else:
                values = [value[key] for value in values]
        if not values:
            raise Wrong(f"the program says nothing of {path}")
        last = re.findall(r"\w+", path)[-1]
        return sum(map(float, values)) * next((factor for end, factor in BASE_OF_KEY.items() if last.endswith(end)), 1.0)

    def hw(self, key):
        values = values_of(self.root / "hw" / f"{self.gpu}.yaml")
        if key not in values:
            raise Wrong(f"hw/{self.gpu}.yaml has no {key}")
        text = values[key]
        unit = {"cycles": 1.0, "MiB": 1024.0 ** 2}
        number, _, rest = text.partition(" ")
        return float(number) * unit.get(rest, 1.0) if rest in unit else quantity(text)

    def law(self, path):
        table, name = path.split(".", 1)
        kernel_class, constant = name.split(".", 1)
        values = values_of(self.root / "data" / "laws" / f"{table}.yaml")
        dotted = f"classes.{kernel_class}.constants.{constant}"
        if dotted not in values:
            raise Wrong(f"data/laws/{table}.yaml: {kernel_class} has no {constant}")
        return float(values[dotted])

    def curve(self, arguments):
        """The analytic column of a row of docs/microkernels.md, which a test of its own holds to what the program says."""
        name, row = [part.strip() for part in arguments.split(";")]
        section = (self.root / "docs" / "microkernels.md").read_text().partition(f"## {name} (")[2].partition("\n## ")[0]
        for line in section.splitlines():
            if line.strip().startswith(row + " "):
                return float(line.strip()[len(row):].split()[2])
        raise Wrong(f"docs/microkernels.md: {name} has no row {row}")

    def of_json(self, arguments):
        file, *keys = [part.strip() for part in arguments.split(",")]
        value = json.loads((self.root / file).read_text())
        for key in keys:
            value = value[int(key) if isinstance(value, list) else key]
        return float(value)

    def value_of(self, expression):
        for word, read in (("hw", self.hw), ("law", self.law), ("said", self.said), ("json", self.of_json), ("curve", self.curve)):
            expression = re.sub(rf"\b{word}\(([^()]*)\)", lambda found, read=read: f"({read(found[1])!r})", expression)
        return self.of_tree(ast.parse(expression, mode="eval").body, {})

    def of_tree(self, tree, arguments):
        if isinstance(tree, ast.Constant) and isinstance(tree.value, (int, float)):
            return tree.value
        if isinstance(tree, ast.Name):
            if tree.id in arguments:
                return arguments[tree.id]
            if tree.id in self.names:
                return self.names[tree.id]
            raise Wrong(f"{tree.id} is not known here")
        if isinstance(tree, ast.BinOp) and type(tree.op) in OPERATORS:
            return OPERATORS[type(tree.op)](self.of_tree(tree.left, arguments), self.of_tree(tree.right, arguments))
        if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.USub):
            return -self.of_tree(tree.operand, arguments)
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            if tree.func.id == "root":  # root(EXPRESSION, x, low, high): where the expression, which grows with x, is zero
                return self.root_of(tree.args[0], tree.args[1].id, *[self.of_tree(end, arguments) for end in tree.args[2:4]])
            values = [self.of_tree(argument, arguments) for argument in tree.args]
            if tree.func.id in self.functions:
                argument, body = self.functions[tree.func.id]
                return self.of_tree(body, {argument: values[0]})
            if tree.func.id in FUNCTIONS:
                return FUNCTIONS[tree.func.id](*values)
        raise Wrong(f"cannot be computed: {ast.unparse(tree)}")

    def root_of(self, tree, name, low, high):
        for _ in range(200):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.of_tree(tree, {name: middle}) > 0 else (middle, high)
        return high


def printed(value, digits):
    """The value to as many significant digits, without an exponent."""
    return format(Decimal(f"{value:.{digits - 1}e}"), "f") if value else "0"


def significant(text):
    return max(1, len(re.sub(r"e.*", "", text).replace(".", "").replace("-", "").lstrip("0")))


def checked(lines, calculation, write):
    """The lines with their numbers; an exception where one is wrong."""
    out, before, compared = [], None, 0
    for line in lines:
        code = line.split(" # ")[0].rstrip()
        if not code:
            out.append(line)
            continue
        if code.startswith("$ "):
            calculation.run(code[2:])
        elif code.startswith("gpu "):
            calculation.gpu = code.split()[1]
        elif function := re.match(r"^(\w+)\((\w+)\) += (.*)$", code):
            body = function[3]
            for word, read in (("hw", calculation.hw), ("law", calculation.law)):
                body = re.sub(rf"\b{word}\(([^()]*)\)", lambda found, read=read: f"({read(found[1])!r})", body)
            calculation.functions[function[1]] = (function[2], ast.parse(body, mode="eval").body)
        else:
            parts = [part.strip() for part in re.split(r" = ", code)]
            number = NUMBER.match(parts[-1]) if len(parts) == 3 else None
            if not number or number["unit"] not in UNITS:
                raise Wrong(f"`{code}` is not `name = EXPRESSION = NUMBER UNIT`")
            name, expression = parts[0], parts[1]
            value = calculation.value_of(expression)
            scaled = value / UNITS[number["unit"]]
            asked = number["digits"].startswith("?")
            digits = int(number["digits"][1:]) if asked else significant(number["digits"])
            text = printed(scaled, digits)
            if not asked:
                decimals = -Decimal(number["digits"]).as_tuple().exponent
                wrong = abs(scaled - float(number["digits"])) > 0.5000001 * 10.0 ** -decimals
            if asked or wrong:
                if not write:
                    raise Wrong(f"`{code}`: comes to {scaled:.8g} {number['unit'] or ''}")
                line = re.sub(r"= " + re.escape(parts[-1]), "= " + " ".join(filter(None, (text, number["unit"]))), line, count=1)
                shown = text
            else:
                shown = number["digits"]
            if name == "program":
                compared += 1
                if before is None or abs(value - before[0]) > 1e-3 * abs(value) or shown != before[1]:
                    raise Wrong(f"`{code}`: the program says {value:.8g}, the calculation {before and before[0]:.8g}")
            calculation.names[name] = value
            before = (value, shown)
        out.append(line)
    if compared == 0:
        raise Wrong("a block compares nothing with the program")
    return out


def errors_of(root, table):
    """The table of errors of data/laws/TABLE.yaml, a row a class; one row of all where there are many."""
    rows, name = {}, None
    for line in (root / "data" / "laws" / f"{table}.yaml").read_text().splitlines():
        if found := re.match(r"^  (\w+):$", line):
            name = found[1]
        if found := re.match(r"^      (\w+): \{kernels: (\d+), median: ([\d.]+), mean: ([\d.]+)\}", line):
            rows.setdefault(name, {})[found[1]] = (int(found[2]), float(found[3]), float(found[4]))
    parts = ("in_sample", "cross_validated", "held_out")
    if len(rows) > 20:  # medians of classes have no common one
        def mean(part):
            cases = [row[part] for row in rows.values() if part in row]
            count = sum(case[0] for case in cases)
            return count, sum(case[0] * case[2] for case in cases) / count
        cells = [mean(part) for part in parts]
        return ("| classes | fitted on, mean % | cross-validated, mean % | no fit saw, mean % |\n|---|---|---|---|\n" +
                f"| {len(rows)} | " + " | ".join(f"{count:,}: {value:.1f}" for count, value in cells) + " |\n")
    out = "| class | fitted on, median, mean % | cross-validated: median, mean % | no fit saw, median, mean % |\n|---|---|---|---|\n"
    for name, row in rows.items():
        shown = [row.get(part, (0, 0.0, 0.0)) for part in parts]
        out += (f"| {name} | {shown[0][0]:,}: {shown[0][1]:.1f}, {shown[0][2]:.1f} | {shown[1][1]:.1f}, {shown[1][2]:.1f} | " +
                f"{shown[2][0]:,}: {shown[2][1]:.1f}, {shown[2][2]:.1f} |\n")
    return out


def main():
    write = "--write" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    program, root = pathlib.Path(arguments[0]).resolve(), pathlib.Path(arguments[1]).resolve()
    pages = [root / page for page in arguments[2:]] or sorted((root / "docs" / "model").glob("*.md"))
    if not pages:
        sys.exit("worked numbers: docs/model has no pages")
    outputs, faults, blocks = {}, [], 0
    for page in pages:
        text = page.read_text()
        found = list(BLOCK.finditer(text))
        if not found:
            faults.append(f"{page.relative_to(root)}: no worked number")
        for block in reversed(found):
            blocks += 1
            try:
                lines = checked(block[1].splitlines(), Calculation(program, root, outputs), write)
                text = text[: block.start(1)] + "\n".join(lines) + "\n" + text[block.end(1):]
            except (Wrong, KeyError, IndexError, ValueError, TypeError, ZeroDivisionError, SyntaxError) as fault:
                faults.append(f"{page.relative_to(root)}:{text[:block.start()].count(chr(10)) + 1}: {type(fault).__name__}: {fault}")
        for table in reversed(list(ERRORS.finditer(text))):
            now = errors_of(root, table[2])
            if now != table[3]:
                if write:
                    text = text[: table.start(3)] + now + text[table.end(3):]
                else:
                    faults.append(f"{page.relative_to(root)}: the errors of data/laws/{table[2]}.yaml are others now (--write)")
        if write:
            page.write_text(text)
    print("\n".join(faults) or f"{blocks} worked numbers on {len(pages)} pages agree")
    sys.exit(1 if faults else 0)


main()
