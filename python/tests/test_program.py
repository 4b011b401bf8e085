"""A user's module written as a program, which ridgeline models reads."""
import os
import subprocess
import sys

import pytest

PROGRAM = os.environ["RIDGELINE_BINARY"]
MODULE = """
import torch
from torch import nn
from torch.nn import functional as F

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        return x + self.drop(self.down(F.gelu(self.up(self.norm(x)))))

class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(50, 16), nn.Linear(16, 50, bias=False)
        self.layers = nn.ModuleList([Block(16) for _ in range(4)])

    def forward(self, ids, labels):
        x = self.table(ids)
        for layer in self.layers:
            x = layer(x)
        scores = self.head(x)
        return F.cross_entropy(scores.view(-1, 50), labels.view(-1))

def make(batch, length):
    return Network(), (torch.randint(50, (batch, length)), torch.randint(50, (batch, length)))
"""


def recorded(*arguments):
    return subprocess.run([sys.executable, "-m", "ridgeline.record", *map(str, arguments)], capture_output=True, text=True)


def test_one_of_the_ways_is_given(tmp_path):
    assert recorded("--blocks", "a.py:make", "--script", "a.py", "--output", tmp_path / "n.block").returncode == 2
    run = recorded("--blocks", tmp_path / "none.py", "--output", tmp_path / "n.block")
    assert run.returncode == 2 and not list(tmp_path.iterdir())


def test_a_module_becomes_a_program(tmp_path):
    pytest.importorskip("torch")
    (tmp_path / "network.py").write_text(MODULE)
    run = recorded("--blocks", f"{tmp_path}/network.py:make", "--output", tmp_path / "network.block")
    assert run.returncode == 0, run.stderr
    text = (tmp_path / "network.block").read_text()
    assert "layers: [block_() for i in range(4)]" in text and "int64[batch, length]" in text and "dropout(" in text
    said = subprocess.run([PROGRAM, "models", tmp_path / "network.block"], capture_output=True, text=True, check=True).stdout
    count = 2 * 50 * 16 + 4 * (2 * 16 + 2 * 3 * 16 * 16 + 3 * 16 + 16)
    assert f"{count:,} parameters" in said
