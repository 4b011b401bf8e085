"""Calls whose results are as large as values say. Values are not known: of marks, the part is taken that how they were made
tells (one_hot of 8 classes marks one of 8), else all."""
import math

import torch
from torch._subclasses.fake_tensor import FakeTensor

SIZED_BY_VALUES = {"aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive",
                   "aten::bincount", "aten::repeat_interleave"}
INDEXED = {"aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"}


def chosen(recorder, mask):
    """How many elements of a mask are taken to be marked."""
    recorder.notes.add("sizes that values decide (nonzero, masks as indices): of marks all, of one_hot one of its classes")
    part = recorder.marked.get(recorder._key(mask), 1.0)
    return max(1, math.ceil(mask.numel() * part))


def places(recorder, indices):
    """Indices with masks without values as the places of what they mark, which is what PyTorch makes of them."""
    if not any(isinstance(index, FakeTensor) and index.dtype in (torch.bool, torch.uint8) for index in indices):
        return indices
    made = []
    for index in indices:
        if isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8):
            rows = found(recorder, recorder.stand_in(index))
            with recorder.unseen():
                made += rows.unbind(1)
        else:
            made.append(index)
    return made


def sized(recorder, name, args, kwargs):
    first = args[0]
    if name == "aten::nonzero":
        return found(recorder, first)
    with recorder.unseen():
        if name == "aten::masked_select":
            out = first.new_empty(chosen(recorder, recorder.stand_in(args[1])))
        elif name == "aten::bincount":
            out = torch.empty(max(1, int(args[2]) if len(args) > 2 else kwargs.get("minlength", 1)), dtype=torch.int64)
        elif name == "aten::repeat_interleave":
            out = torch.empty(kwargs.get("output_size") or first.numel(), dtype=torch.int64)
        else:
            flat = first.numel() if name != "aten::unique_dim" else None
            out = (first.new_empty(flat) if flat is not None else first.clone(),
                   torch.empty(first.shape if flat is not None else first.shape[args[1]], dtype=torch.int64),
                   torch.empty(flat if flat is not None else first.shape[args[1]], dtype=torch.int64))
    recorder.call(name, list(args), [out] if isinstance(out, torch.Tensor) else out)
    recorder.wait()  # the host learns the size
    return out


def found(recorder, mask):
    """Places of what is marked, a row each."""
    with recorder.unseen():
        rows = torch.empty(chosen(recorder, mask), mask.dim(), dtype=torch.int64)
    recorder.call("aten::nonzero", [mask], [rows])
    recorder.wait()
    return rows


def remember_marks(recorder, name, args, out):
    """Which part of a mask is marked, by how it was made."""
    if not isinstance(out, torch.Tensor):
        return
    if name in ("aten::scatter_", "aten::scatter") and not isinstance(args[3], torch.Tensor):
        recorder.marked[recorder._key(recorder.stand_in(out))] = args[2].numel() / max(1, out.numel())
    elif name in ("aten::eq", "aten::ne", "aten::gt", "aten::greater", "aten::_to_copy", "aten::clone"):
        source = recorder._key(recorder.stand_in(args[0]))
        if source in recorder.marked:
            recorder.marked[recorder._key(recorder.stand_in(out))] = recorder.marked[source]
