"""Which module of the network a call belongs to: by hooks around modules in the forward pass, and in the backward pass by
the forward call whose autograd node runs."""
import torch
import torch.nn.modules.module as modules


class ModuleNames:
    """Numbers modules for an op trace, parents first, from 1. `write` is given their records."""

    def __init__(self, write):
        self.write = write
        self.paths, self.numbers = {}, {}  # by id of a module; by path
        self.owners = {}                   # of parameters, by id: number
        self.running = []                  # modules whose forward pass runs, outermost first
        self.of_node = {}                  # number of the module, by the sequence number of a node
        self.hooks = []

    def name(self, model):
        """`model` is the whole network: paths begin below it."""
        for path, module in model.named_modules():
            self.paths.setdefault(id(module), path)
        for path, tensor in [*model.named_parameters(), *model.named_buffers()]:
            self.owners[id(tensor)] = self.number(path.rpartition(".")[0])

    def __enter__(self):
        self.hooks = [modules.register_module_forward_pre_hook(self._enter),
                      modules.register_module_forward_hook(self._leave, always_call=True)]
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
            return self.of_node.get(node._sequence_nr(), 0)
        # The last node made is this call's, or one that is known already.
        self.of_node.setdefault(torch.autograd._get_sequence_nr() - 1, number)
        return number

    def _enter(self, module, _):
        if not self.running and id(module) not in self.paths:
            self.name(module)
        path = self.paths.get(id(module))
        self.running.append(self.running[-1] if path is None and self.running else self.number(path or ""))

    def _leave(self, *_):
        if self.running:
            self.running.pop()
