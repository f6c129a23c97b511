"""A layer of graph attention, forward and backward: our compiled kernel and plain torch against DGL's GATConv.

CPU, one thread, real graphs (needs GCNSIM_DATA, and DGL beside ours). The same linear map, heads and widths, the same
entries; layers are taken in turn and timed in processor time of their thread, so other work shows as little as it can.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.bench_kernels import CPU, ROUNDS, Call, in_turn
from benchmarks.measuring import Figure, report
from gcnsim.graph import load_graph
from gcnsim.partition import partition_graph, split
from runtime.aggregate import Matrix, matrix_kind
from runtime.exchange import GraphBuilder
from runtime.model.layers import GatLayer

D_IN = 128
HEADS = ((1, 32), (1, 128), (4, 32), (8, 8))
"""Heads and the width of each."""


class Around:
    """Neighbours of a worker that has them all (`runtime.model.layers.Neighbours`)."""

    def __init__(self, matrix: Matrix) -> None:
        """The pattern of `matrix`."""
        self._matrix = matrix

    def gathered(self, h: Tensor) -> tuple[Tensor, Matrix]:
        """All rows."""
        return h, self._matrix


def both_ways(layer: Callable[[Tensor], Tensor], x: Tensor, grad: Tensor) -> Call:
    """The layer, and the gradients of its weights and of x."""

    def call() -> None:
        layer(x).backward(grad)  # type: ignore[no-untyped-call]

    return call


def convolution(matrix: Matrix, heads: int, width: int) -> Callable[[Tensor], Tensor]:
    """DGL's GATConv over the entries of `matrix`."""
    import dgl

    row, column = (torch.from_numpy(each) for each in matrix.rows.places)
    graph: Any = dgl.graph((column, row), num_nodes=matrix.rows.width).int()
    graph.create_formats_()
    # Nodes without a neighbour have zero rows in both.
    layer = dgl.nn.GATConv(D_IN, width, heads, bias=False, allow_zero_in_degree=True)
    return lambda x: layer(graph, x).flatten(1)


def layers(dataset: str) -> list[Figure]:
    """Each number of heads on the whole graph."""
    graph = load_graph(Path(os.environ["GCNSIM_DATA"]) / f"{dataset}.npz")
    (part,) = split(graph, partition_graph(graph, 1, "block"))
    matrices = {
        name: GraphBuilder(part, "mean", matrix_kind(kind), torch.float32, CPU).whole().inner
        for name, kind in (("ours", "numba"), ("torch", "plain"))
    }
    figures = []
    for heads, width in HEADS:
        draw = torch.Generator().manual_seed(0)
        x = torch.randn(part.inner_nodes, D_IN, generator=draw).requires_grad_()
        grad = torch.randn(part.inner_nodes, heads * width, generator=draw)
        calls = {"DGL": both_ways(convolution(matrices["ours"], heads, width), x, grad)}
        for name, matrix in matrices.items():
            layer, around = GatLayer(D_IN, heads * width, False, heads, False), Around(matrix)
            calls[name] = both_ways(lambda given, layer=layer, around=around: layer(given, around), x, grad)  # type: ignore[misc]
        took, name = in_turn(calls, ROUNDS[dataset]), f"{dataset}, {heads} x {width}"
        figures += [
            Figure(f"{name}: DGL", 1e3 * took["DGL"], "ms"),
            Figure(f"{name}: torch / DGL", took["torch"] / took["DGL"], ""),
            Figure(f"{name}: ours / DGL", took["ours"] / took["DGL"], "", "<= 1.2"),
        ]
    return figures


def main() -> int:
    """Measure and report."""
    torch.set_num_threads(1)
    figures = [figure for dataset in ROUNDS for figure in layers(dataset)]
    return report("bench_attention", "how fast is a layer of graph attention?", figures)


if __name__ == "__main__":
    raise SystemExit(main())
