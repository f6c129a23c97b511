"""The same products with DGL's kernels. DGL's development has stopped, so it is an optional extra."""

from __future__ import annotations

import os
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from runtime.aggregate.matrix import Rows, kept_for_compute

# Without this, DGL prints a notice and writes a file to the home folder on first import.
os.environ.setdefault("DGLBACKEND", "pytorch")

import dgl

Scales: TypeAlias = tuple[Tensor | None, Tensor | None]
"""Factors of rows and of columns, [n, 1] and [m, 1]; None: ones."""


class DglMatrix:
    """See `Matrix`: n destination nodes, m source nodes, an edge per stored entry."""

    def __init__(self, rows: Rows, dtype: torch.dtype, device: torch.device, *, turned: bool = True) -> None:
        """Build the graph of the matrix and that of its transpose on `device`."""
        self.rows, self.dtype, self.device = rows, dtype, device
        count = rows.indptr.size - 1
        self._graph = _graph(rows.indptr, rows.columns, rows.width, count, device)
        if turned:
            indptr, columns, place = rows.transposed()
            self._flipped = _graph(indptr, columns, count, rows.width, device)
            self._place = torch.from_numpy(place.astype(np.int64)).to(device)
            kept_for_compute(self._place)
        self._values: Tensor | None = None
        self._scales: Scales = (None, None)
        if rows.factors is None:
            self._values = torch.from_numpy(np.ascontiguousarray(rows.values)).to(device, dtype)
            kept_for_compute(self._values)
        else:
            left, right = (
                None if factor is None else torch.from_numpy(factor).to(device, dtype).unsqueeze(1)
                for factor in rows.factors
            )
            self._scales = left, right
            kept_for_compute(*(factor for factor in self._scales if factor is not None))

    def multiply(self, x: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
        """See `Matrix`."""
        weights = self._values if values is None else values
        _product(self._graph, x, weights, self._scales, out, add)

    def multiply_transposed(self, g: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
        """See `Matrix`."""
        weights = self._values if values is None else values
        _product(self._flipped, g, None if weights is None else weights[self._place], self._scales[::-1], out, add)


def _graph(indptr: object, columns: object, sources: int, targets: int, device: torch.device) -> dgl.DGLGraph:
    index = [torch.from_numpy(np.asarray(array).astype(np.int32)) for array in (indptr, columns)]
    # Explicit edge numbers, although in order: DGL's float32 kernel for rows of width 1 needs them.
    number = torch.arange(index[1].numel(), dtype=torch.int32)
    nodes = {"source": sources, "target": targets}
    kind = ("source", "edge", "target")
    graph = dgl.heterograph({kind: ("csc", (*index, number))}, num_nodes_dict=nodes).to(device)
    if device.type == "cuda":
        graph.record_stream(torch.cuda.default_stream(device))
    return graph


def _product(graph: dgl.DGLGraph, x: Tensor, values: Tensor | None, scales: Scales, out: Tensor, add: bool) -> None:
    """Weighted by the values of entries; without them, by the factors of rows and columns before and after a sum."""
    if not out.numel():
        return
    if not x.numel() or not graph.num_edges():
        if not add:
            out.zero_()
        return
    if values is not None:
        product = dgl.ops.gspmm(graph, "mul", "sum", x, values.unsqueeze(1))
    else:
        product = dgl.ops.gspmm(graph, "copy_lhs", "sum", x if scales[1] is None else x * scales[1], None)
        if scales[0] is not None:
            product *= scales[0]
    if add:
        out += product
    else:
        out.copy_(product)
