"""The same products by DGL's kernels. DGL's development has stopped; it is an extra, never the only path."""

from __future__ import annotations

import os

import numpy as np
import torch
from torch import Tensor

from runtime.aggregate.matrix import Rows

# Without it DGL prints a notice and writes a file into the home folder on first import.
os.environ.setdefault("DGLBACKEND", "pytorch")

import dgl


class DglMatrix:
    """See `Matrix`: n destination nodes, m source nodes, an edge per stored entry."""

    def __init__(self, rows: Rows, dtype: torch.dtype, device: torch.device) -> None:
        """Build the graph of the matrix and that of its transpose on `device`."""
        self.rows, self.dtype, self.device = rows, dtype, device
        count = rows.indptr.size - 1
        indptr, columns, place = rows.transposed
        self._graph = _graph(rows.indptr, rows.columns, rows.width, count, device)
        self._flipped = _graph(indptr, columns, count, rows.width, device)
        self._place = torch.from_numpy(place.astype(np.int64)).to(device)
        self._values = torch.from_numpy(np.ascontiguousarray(rows.values)).to(device, dtype)

    def multiply(self, x: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
        """See `Matrix`."""
        _product(self._graph, x, self._values if values is None else values, out, add)

    def multiply_transposed(self, g: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
        """See `Matrix`."""
        _product(self._flipped, g, (self._values if values is None else values)[self._place], out, add)


def _graph(indptr: object, columns: object, sources: int, targets: int, device: torch.device) -> dgl.DGLGraph:
    index = [torch.from_numpy(np.asarray(array).astype(np.int32)) for array in (indptr, columns)]
    # Numbered, though they are in order: DGL's float32 kernel for rows of width 1 refuses edges without a number.
    number = torch.arange(index[1].numel(), dtype=torch.int32)
    nodes = {"source": sources, "target": targets}
    kind = ("source", "edge", "target")
    return dgl.heterograph({kind: ("csc", (*index, number))}, num_nodes_dict=nodes).to(device)


def _product(graph: dgl.DGLGraph, x: Tensor, values: Tensor, out: Tensor, add: bool) -> None:
    if not out.numel():
        return
    if not x.numel() or not values.numel():
        if not add:
            out.zero_()
        return
    product = dgl.ops.gspmm(graph, "mul", "sum", x, values.unsqueeze(1))
    if add:
        out += product
    else:
        out.copy_(product)
