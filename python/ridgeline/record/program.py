"""Writes a module as a program of docs/networks.md: its parts, modules and operations, with batch and length as names.

The module is run three times where tensors have no elements, at other batches and lengths each time. Numbers that
change from run to run become multiples of `batch` and `length`, and the third run checks them. Variables end where
Python gave their tensors up.
"""
import torch
from torch import nn

from . import NotRecorded
from .watch import KINDS, Value, watched

SIZES = ((3, 40), (5, 56), (7, 24))  # batch and length of each run

FUNCTIONS = {  # what functions and methods are called in a program
    "relu": "relu", "relu_": "relu_", "silu": "silu", "tanh": "tanh", "sigmoid": "sigmoid", "matmul": "matmul", "bmm": "matmul",
    "view": "view", "reshape": "reshape", "flatten": "flatten", "transpose": "transpose", "permute": "permute",
    "contiguous": "contiguous", "unsqueeze": "unsqueeze", "squeeze": "squeeze", "expand": "expand", "chunk": "chunk",
    "split": "split", "cat": "cat", "gelu": "gelu", "softmax": "softmax", "masked_fill": "masked_fill", "drop_path": "drop_path",
}
BINARY = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "div": "/", "pow": "**", "matmul": "@", "radd": "+",
          "rmul": "*", "rsub": "-"}
IN_PLACE = {"__iadd__": "add_", "add_": "add_"}

class Writer:
    def __init__(self, runs):
        self.runs = runs
        self.watch = runs[0][0]
        self.definitions, self.names, self.blocks = {}, {}, set()
        self.sides = self.watch.sides

    # Numbers.
    def number(self, values):
        if any(isinstance(one, bool) for one in values) or len(set(values)) == 1:
            return repr(values[0])
        for text, of in (("batch", lambda b, n: b), ("length", lambda b, n: n), ("batch * length", lambda b, n: b * n)):
            factors = {value / of(*SIZES[i]) for i, value in enumerate(values)}
            if len(factors) == 1 and (factor := factors.pop()) == int(factor):
                return text if factor == 1 else f"{int(factor)} * {text}"
        raise NotRecorded(f"a number that is {values} at batches and lengths of {SIZES}: it follows from neither")

    def text(self, given, scope):
        """Of the same argument in each run."""
        first = given[0]
        if isinstance(first, Value):
            return scope.variable(first.number)
        if isinstance(first, str) and first.startswith("self."):
            return scope.own(first[len("self."):])
        if isinstance(first, (list, tuple, torch.Size)):
            return "[" + ", ".join(self.text([run[i] for run in given], scope) for i in range(len(first))) + "]"
        if isinstance(first, float):
            return repr(first)
        if isinstance(first, int):
            return self.number(given)
        if first is None:
            return "None"
        if isinstance(first, str):
            return f'"{first}"'
        raise NotRecorded(f"an argument {first!r} has no place in a program")

    # Modules.
    def define(self, lines, inputs, outputs):
        """The name of the part or block that these lines (of one call in each run) are, and the tensors it takes."""
        scope = Scope(self, lines, inputs)
        body = scope.write(outputs)
        key = (type(lines[0].module).__name__, body, len(scope.arguments))
        if key not in self.definitions:
            name = base = snake(type(lines[0].module).__name__)
            for i in range(2, 1000):
                if name not in self.names:
                    break
                name = f"{base}_{i}"
            self.names[name] = True
            self.definitions[key] = (name, scope.arguments, body)
        return self.definitions[key][0], scope.outer


def snake(name):
    text = "".join("_" + c.lower() if c.isupper() and i and not name[i - 1].isupper() else c.lower() for i, c in enumerate(name))
    return text if text not in WORDS else text + "_"


WORDS = {"size", "input", "target", "block", "part", "network", "length", "batch", "ranks", "training", "for", "in", "if", "else", "elif",
         "with", "del", "return", "and", "or", "not", "linear", "column_linear", "row_linear", "embedding", "layer_norm", "rms_norm",
         "conv1d", "conv2d", "batch_norm", "group_norm", "parameter", "frozen", "buffer", "name", "family", "program"}


class Call:
    """A line that calls a module."""

    def __init__(self, results, name, arguments):
        self.results, self.name, self.arguments = results, name, arguments

    def __str__(self):
        return f"{self.results} = {self.name}({', '.join(self.arguments)})"


class Scope:
    """One call of a module that is no kind: variables, declarations and lines."""

    def __init__(self, writer, lines, inputs):
        self.writer, self.lines = writer, lines
        self.variables, self.arguments, self.outer = {}, [], []
        self.declared, self.body, self.made = {}, [], 0
        self.prefix = writer.watch.names[id(lines[0].module)]
        for given in inputs:
            if isinstance(given, Value):
                self.variable(given.number)

    def variable(self, number):
        if number not in self.variables:  # of a caller
            self.variables[number] = f"x{len(self.arguments) or ''}"
            self.arguments.append(self.variables[number])
            self.outer.append(number)
        return self.variables[number]

    def new(self, number):
        if number not in self.variables:
            self.made += 1
            self.variables[number] = f"h{self.made}"
        return self.variables[number]

    def own(self, name):
        inside = name[len(self.prefix) + 1:] if self.prefix and name.startswith(self.prefix + ".") else name
        tensor = dict(list(self.lines[0].module.named_parameters()) + list(self.lines[0].module.named_buffers())).get(inside)
        if tensor is None:
            raise NotRecorded(f"{name} is read by another module than its owner's")
        inside = inside.replace(".", "_")
        sizes = ", ".join(str(one) for one in tensor.shape)
        self.declare(inside, f"{'parameter' if isinstance(tensor, nn.Parameter) and tensor.requires_grad else 'frozen'}({sizes})")
        return inside

    def declare(self, name, kind):
        self.declared.setdefault(name, kind)

    def write(self, outputs):
        for number in range(len(self.lines[0].lines)):
            one = [run.lines[number] for run in self.lines]
            if any((run.what, run.name) != (one[0].what, one[0].name) for run in one):
                raise NotRecorded("other operations at another batch or length: a program runs the same ones")
            self.line(one)
        self.declare_rest()
        self.fold_loops()
        returned = ", ".join(self.variable(value.number) for value in outputs)
        kept = {self.variable(value.number) for value in outputs}
        body = [str(line) for line in self.body]
        body = [line for line in body if not (line.startswith("del ") and line[4:] in kept)]
        declarations = [f"{name}: {kind}" for name, kind in self.declared.items()]
        return "\n".join("  " + line for line in declarations + body + [f"return {returned}"])

    def fold_loops(self):
        """Calls one after the other of blocks in one list, each with the result of the one before, become a loop."""
        at = 0
        while at < len(self.body):
            calls, end = self.chain(at)
            if len(calls) < 2:
                at += 1
                continue
            name = calls[0].name.rpartition("_")[0] or calls[0].name
            while name in self.declared:
                name += "_"
            kinds = [self.declared.pop(call.name) for call in calls]
            for kind in kinds:
                self.writer.blocks.add(kind[:-2])
            same = len(set(kinds)) == 1
            self.declared[name] = f"[{kinds[0]} for i in range({len(kinds)})]" if same else f"[{', '.join(kinds)}]"
            x, rest = calls[-1].results, calls[0].arguments[1:]
            gone = {f"del {call.results}" for call in calls[:-1]}
            self.body[end:] = [line for line in self.body[end:] if not (isinstance(line, str) and line in gone)]
            self.body[at:end] = [f"{x} = {calls[0].arguments[0]}",
                                 f"for {name}_block in {name}: {x} = {name}_block({', '.join([x] + rest)})"]
            at += 2

    def chain(self, at):
        calls, end = [], at
        for place in range(at, len(self.body)):
            line = self.body[place]
            if isinstance(line, str) and line.startswith("del ") and calls:
                if line[4:] not in [call.results for call in calls]:
                    break
                continue
            fits = isinstance(line, Call) and self.declared[line.name].endswith("()") and line.name.rpartition("_")[2].isdigit() and "," not in line.results and line.arguments
            if not fits or (calls and (line.arguments != [calls[-1].results] + calls[0].arguments[1:]
                                       or line.name.rpartition("_")[0] != calls[0].name.rpartition("_")[0]
                                       or line.name in [call.name for call in calls])):
                break
            calls.append(line)
            end = place + 1
        return calls, end

    def declare_rest(self):
        """Parameters that the pass did not read."""
        module = self.lines[0].module
        for name, parameter in module.named_parameters(recurse=False):
            self.declare(name, f"frozen({', '.join(str(one) for one in parameter.shape)})")

    def line(self, runs):
        first = runs[0]
        if first.what == "del":
            number = first.inputs[0].number
            if number in self.variables and number not in self.outer:
                self.body.append(f"del {self.variables[number]}")
            return
        if first.what == "op":
            return self.operation(runs)
        name = self.module_name(first.module)
        inputs = [value for value in first.inputs if isinstance(value, Value)]
        if type(first.module) in KINDS:
            self.declare(name, KINDS[type(first.module)](first.module))
            arguments = [self.variable(value.number) for value in inputs]
        else:
            of, outer = self.writer.define(runs, inputs, first.outputs)
            arguments = [self.variable(number) for number in outer]
            self.declare(name, f"{of}()")
        results = ", ".join(self.new(value.number) for value in first.outputs)
        if first.outputs and arguments != [results]:
            self.body.append(Call(results, name, arguments))

    def module_name(self, module):
        full = self.writer.watch.names[id(module)]
        inside = full[len(self.prefix) + 1:] if self.prefix else full
        plain = inside.replace(".", "_")
        return f"m_{plain}" if plain[0].isdigit() or plain in WORDS else plain

    def operation(self, runs):
        arguments = [[run.inputs[i] for run in runs] for i in range(len(runs[0].inputs))]
        result = self.new(runs[0].outputs[0].number)
        if len(runs[0].outputs) > 1:
            result = ", ".join([result] + [self.new(value.number) for value in runs[0].outputs[1:]])
        self.body.append(f"{result} = {self.expression(runs[0].name, arguments)}")

    def expression(self, name, given):
        positional = [one for one in given if not isinstance(one[0], tuple)]
        if name in ("silu", "gelu", "hardtanh", "leaky_relu", "dropout", "cross_entropy", "mse_loss"):
            keep = 2 if name in ("cross_entropy", "mse_loss") else 1
            positional, further = positional[:keep], positional[keep:]
        else:
            further = []
        named = {one[0][0]: [run[1] for run in one] for one in given if isinstance(one[0], tuple) and len(one[0]) == 2}
        if name == "__getitem__":
            return self.element(self.writer.text(positional[0], self), positional)
        if name == "layer_norm":
            weight = [self.writer.text(one, self) for one in positional[2:4]] or \
                     [self.writer.text(named[key], self) for key in ("weight", "bias") if key in named]
            return f"layer_norm({', '.join([self.writer.text(positional[0], self)] + weight)})"
        if name in ("to", "float", "type", "half", "bfloat16"):
            wanted = [one[0] for one in positional[1:] if isinstance(one[0], torch.dtype)] + [v[0] for k, v in named.items() if k == "dtype"]
            wide = name == "float" or wanted == [torch.float32]
            return f"to({self.writer.text(positional[0], self)}, \"{'float32' if wide else 'as weights'}\")"
        if name in ("adaptive_avg_pool2d", "avg_pool2d"):
            return self.pool(name, positional, named)
        text = [self.writer.text(one, self) for one in positional]
        plain = name.strip("_")
        if name in IN_PLACE:
            return f"{IN_PLACE[name]}({text[0]}, {text[1]})"
        if plain == "relu" and (named.get("inplace", [False])[0] or (len(positional) > 1 and positional[1][0] is True)):
            return f"relu_({text[0]})"
        if plain in BINARY and len(text) == 2 and name != "relu_":
            if plain.startswith("r"):
                text.reverse()
            return f"{text[0]} {BINARY[plain]} {text[1]}" if BINARY[plain] != "@" else f"matmul({text[0]}, {text[1]})"
        if plain == "neg":
            return f"-{text[0]}"
        if name == "scaled_dot_product_attention":
            causal = named.get("is_causal", [False])[0]
            mask = self.writer.text(named["attn_mask"], self) if named.get("attn_mask", [None])[0] is not None else "None"
            return f"attention({', '.join(text[:3])}, causal={bool(causal)}, mask={mask}, dropout={named.get('dropout_p', [0.0])[0]!r})"
        if name == "dropout":
            p = further[0][0] if further else named.get("p", [0.5])[0]
            return f"dropout({text[0]}, {float(p)!r})"
        if name in ("cross_entropy", "mse_loss"):
            return f"{name}({text[0]}, {text[1]})"
        if name == "mean":
            dims = positional[1] if len(positional) > 1 else named.get("dim", [None])
            if dims[0] is None:
                return f"mean_all({text[0]})"
            return f"mean({text[0]}, {self.writer.text(dims, self)}, keepdim={bool(named.get('keepdim', [False])[0])})"
        if name == "max_pool2d":
            return f"max_pool2d({text[0]}, {self.side(given, named, 1, 'kernel_size')}, stride={self.side(given, named, 2, 'stride')}, " \
                   f"padding={self.side(given, named, 3, 'padding', 0)})"
        if name in FUNCTIONS:
            further = [f"{key}={self.writer.text(value, self)}" for key, value in named.items()
                       if key in ("dim", "approximate") and value[0] is not None]
            return f"{FUNCTIONS[name]}({', '.join(text + further)})"
        raise NotRecorded(f"{name}: no such operation in a program; write the network by hand (docs/networks.md)")

    def pool(self, name, positional, named):
        x, size = self.writer.text(positional[0], self), positional[1][0]
        sides = size if isinstance(size, list) else [size, size]
        if name == "avg_pool2d":
            return f"avg_pool2d({x}, {sides[0]}, stride={self.side(positional, named, 2, 'stride', sides[0]) or sides[0]}, " \
                   f"padding={self.side(positional, named, 3, 'padding', 0)})"
        if sides == [1, 1]:
            return f"mean({x}, [2, 3], keepdim=True)"
        given = self.writer.sides.get(positional[0][0].number)
        if given is None or given[0] % sides[0] or given[0] // sides[0] != given[1] // sides[1]:
            raise NotRecorded(f"adaptive_avg_pool2d to {sides}: windows of one size alone")
        return f"avg_pool2d({x}, {given[0] // sides[0]})"

    @staticmethod
    def side(given, named, place, key, otherwise=None):
        value = given[place][0] if len(given) > place and not isinstance(given[place][0], tuple) else named.get(key, [otherwise])[0]
        return value[0] if isinstance(value, (list, tuple)) else value

    def element(self, of, positional):
        index = positional[1]
        parts = index[0] if isinstance(index[0], list) else [index[0]]
        text, dim = of, 0
        for place, part in enumerate(parts):
            every = [run[place] if isinstance(run, list) else run for run in index]
            if part is None:
                text, dim = f"unsqueeze({text}, {dim})", dim + 1
            elif isinstance(part, slice):
                if part.step not in (None, 1):
                    raise NotRecorded("a slice with a step has no place in a program")
                if part != slice(None, None, None):
                    last = self.writer.number([run.stop for run in every]) if part.stop is not None else "None"
                    text = f"slice({text}, {dim}, {self.writer.number([run.start or 0 for run in every])}, {last})"
                dim += 1
            elif isinstance(part, int):
                text = f"select({text}, {dim}, {self.writer.number(every)})"
            else:
                raise NotRecorded(f"an index {part!r} has no place in a program")
        return text


def write_program(make, output, title=""):
    """`make(batch, length)` returns the model and its inputs; the model returns its loss."""
    runs = [watched(make, batch, length) for batch, length in SIZES]
    writer = Writer(runs)
    names = [f"input{i}" for i in range(len(runs[0][1]))]
    top = [[line for line in run[0].stack[0].lines if line.what == "module"] for run in runs]
    if any(len(one) != 1 for one in top):
        raise NotRecorded("the model is called once")
    calls = [one[0] for one in top]
    scope = Scope(writer, calls, runs[0][1])
    for value, name in zip(runs[0][1], names):
        scope.variables[value.number] = name
    body = scope.write([runs[0][2]])
    lines = [f"# {title or type(calls[0].module).__name__}, recorded"]
    for i, name in enumerate(names):
        sizes = ", ".join(writer.number([run[3][i][k] for run in runs]) for k in range(len(runs[0][3][i])))
        whole = not runs[0][4][i].is_floating_point
        lines.append(f"input {name}: {'int64' if whole else 'float'}[{sizes}]")
    for name, arguments, text in writer.definitions.values():
        lines += ["", f"{'block' if name in writer.blocks else 'part'} {name}({', '.join(arguments)}):", text]
    lines += ["", f"network {snake(type(calls[0].module).__name__)}({', '.join(names)}):", body, ""]
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
