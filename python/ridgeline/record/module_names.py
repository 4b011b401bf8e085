"""Which module of the network a call belongs to: by hooks around modules in the forward pass, and in the backward pass by
the forward call whose autograd node runs."""
import inspect

import torch
import torch.nn.modules.module as modules

from .older_pytorch import number_of, sequence_number


# A forward pass that ends in an exception is left too, where PyTorch can say so.
ALWAYS = {"always_call": True} if "always_call" in inspect.signature(modules.register_module_forward_hook).parameters else {}


class ModuleNames:
    """Numbers modules for an op trace, parents first, from 1. `write` is given their records."""

    def __init__(self, write):
        self.write = write
        self.paths, self.numbers = {}, {}  # by id of a module; by path
        self.owners = {}                   # of parameters, by id: number
        self.running = []                  # modules whose forward pass runs, outermost first
        self.of_node = {}                  # number of the module, by the sequence number of a node
        self.hooks = []
        self.on_root = self.name           # called with a network whose forward pass begins for the first time
        self.networks = []                 # names of those with parameters; of the first, none

    def name(self, model):
        """`model` is a whole network: paths begin below it, those of a second one with the name of its class."""
        around = self._around(model)
        for path, module in model.named_modules():
            self.paths.setdefault(id(module), around + path if path else around.rstrip("."))
        for path, tensor in [*model.named_parameters(), *model.named_buffers()]:
            self.owners.setdefault(id(tensor), self.number((around + path).rpartition(".")[0]))

    def _around(self, model):
        if next(model.parameters(), None) is None:
            return ""
        name = type(model).__name__ if self.networks else ""
        while name in self.networks:
            name += "_"
        self.networks.append(name)
        return name + "." if name else ""

    def __enter__(self):
        self.hooks = [modules.register_module_forward_pre_hook(self._enter),
                      modules.register_module_forward_hook(self._leave, **ALWAYS)]
        return self

    def __exit__(self, *_):
        for hook in self.hooks:
            hook.remove()

    def number(self, path):
        """Of "layers.7.attention"; 0 for the whole network."""
        if not path:
            return 0
        if path not in self.numbers:
            around, _, name = path.rpartition(".")
            record = {"record": "module", "name": name}
            if inside := self.number(around):
                record["inside"] = inside
            self.numbers[path] = len(self.numbers) + 1
            self.write(record)
        return self.numbers[path]

    def owner(self, tensor):
        """Of a parameter or buffer."""
        return self.owners.get(id(tensor), 0)

    def current(self):
        """Number of the module that calls now."""
        node = torch._C._current_autograd_node()
        if self.running:
            number = self.running[-1]
        elif node is None:
            return 0
        elif hasattr(node, "variable"):  # AccumulateGrad
            return self.owners.get(id(node.variable), 0)
        else:
            return self.of_node.get(number_of(node), 0)
        # The last node made is this call's, or one that is known already.
        if (of_next := sequence_number()) is not None:
            self.of_node.setdefault(of_next - 1, number)
        return number

    def _enter(self, module, _):
        if not self.running and id(module) not in self.paths:
            self.on_root(module)
        path = self.paths.get(id(module))
        self.running.append(self.running[-1] if path is None and self.running else self.number(path or ""))

    def _leave(self, *_):
        if self.running:
            self.running.pop()
