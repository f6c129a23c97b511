"""A layer of graph attention, forward and backward: `--aggregator numba` and `plain` against DGL's GATConv.

CPU, one thread, real graphs (needs GCNSIM_DATA and DGL). All have the same weights, input and graph and must give the
same rows and gradients; they are taken in turn and timed in processor time of their thread. A dataset's name on the
command line: that one alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.bench_kernels import CPU, ROUNDS, in_turn
from benchmarks.measuring import Figure, report
from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import split
from runtime.aggregate import Matrix, matrix_kind
from runtime.exchange import GraphBuilder
from runtime.model import GatLayer

HEADS, WIDTHS, INPUT = (1, 4), (32, 64), 64
"""Heads, values of each, and values of a row of the input."""

Gradients = Callable[[], list[Tensor]]

NEAR = 1e-3
"""Largest difference from DGL's, of the largest value: sums of up to thousands of terms in single precision."""


class Whole:
    """A worker without neighbours: see `Neighbours`."""

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix

    def mapped_sum(self, h: Tensor, linear: nn.Linear) -> tuple[Tensor, Tensor]:
        """Attention asks for no such sum."""
        raise NotImplementedError

    def gathered(self, h: Tensor) -> tuple[Tensor, Matrix]:
        """All rows are inner ones."""
        return h, self.matrix


def learnt_by(layer: GatLayer) -> list[Tensor]:
    """All that the layer learns."""
    assert layer.bias is not None
    return [layer.linear.weight, layer.attn_target, layer.attn_source, layer.bias]


def ours(matrix: Matrix, layer: GatLayer, x: Tensor, weight: Tensor) -> Gradients:
    """The layer's rows, and all gradients of their sum weighed by `weight`."""
    neighbours = Whole(matrix)
    learnt = learnt_by(layer)

    def call() -> list[Tensor]:
        out = layer(x, neighbours)
        return [out.detach(), *torch.autograd.grad(out, [x, *learnt], weight)]

    return call


def dgls(matrix: Matrix, layer: GatLayer, x: Tensor, weight: Tensor) -> Gradients:
    """The same by DGL's own layer with the same weights."""
    import dgl

    rows = matrix.rows
    index = [torch.from_numpy(np.asarray(item).astype(np.int32)) for item in (rows.indptr, rows.columns)]
    graph = dgl.graph(("csc", (*index, torch.arange(index[1].numel(), dtype=torch.int32))), num_nodes=rows.width)
    graph.create_formats_()
    theirs = dgl.nn.GATConv(INPUT, layer.width, layer.heads, negative_slope=0.2, allow_zero_in_degree=True)
    learnt = [theirs.fc.weight, theirs.attn_r, theirs.attn_l, theirs.bias]
    with torch.no_grad():
        for own, tensor in zip(learnt, learnt_by(layer), strict=True):
            own.copy_(tensor.view_as(own))

    def call() -> list[Tensor]:
        out = theirs(graph, x)
        return [out.detach().flatten(1), *torch.autograd.grad(out, [x, *learnt], weight.view_as(out))]

    return call


def same(found: list[Tensor], wanted: list[Tensor]) -> bool:
    """Whether rows and gradients are the same but for rounding."""
    return all(
        float((one.flatten() - other.flatten()).abs().max()) <= NEAR * float(other.abs().max())
        for one, other in zip(found, wanted, strict=True)
    )


def layers(dataset: str) -> list[Figure]:
    """Layers of all heads and widths on the whole graph."""
    graph = load_graph(Path(os.environ["GCNSIM_DATA"]) / f"{dataset}.npz")
    (part,) = split(graph, partition_graph(graph, 1, "block"))
    matrices = [
        GraphBuilder(part, "mean", matrix_kind(name), torch.float32, CPU).whole().inner for name in ("numba", "plain")
    ]
    figures = []
    for heads in HEADS:
        for width in WIDTHS:
            draw = torch.Generator().manual_seed(0)
            x = torch.randn(part.inner_nodes, INPUT, generator=draw).requires_grad_()
            weight = torch.randn(part.inner_nodes, heads * width, generator=draw)
            layer = GatLayer(INPUT, heads * width, True, heads, False)
            with torch.no_grad():
                for parameter in layer.parameters():
                    parameter.copy_(torch.randn(parameter.shape, generator=draw) / parameter.shape[-1] ** 0.5)
            calls = {
                name: ours(matrix, layer, x, weight) for name, matrix in zip(("ours", "torch"), matrices, strict=True)
            }
            calls["DGL"] = dgls(matrices[0], layer, x, weight)
            made = {name: call() for name, call in calls.items()}
            name = f"{dataset}, {heads} x {width}"
            if not all(same(made[text], made["DGL"]) for text in ("ours", "torch")):
                raise RuntimeError(f"{name}: rows or gradients differ")
            took = in_turn(calls, ROUNDS[dataset])
            figures += [
                Figure(f"{name}: DGL", 1e3 * took["DGL"], "ms"),
                Figure(f"{name}: torch / DGL", took["torch"] / took["DGL"], ""),
                Figure(f"{name}: ours / DGL", took["ours"] / took["DGL"], "", "<= 1.2"),
            ]
    return figures


def main(words: Sequence[str]) -> int:
    """Measure and report."""
    torch.set_num_threads(1)
    figures = [figure for dataset in (words or ROUNDS) for figure in layers(dataset)]
    return report("bench_attention", "how fast is a layer of graph attention, forward and backward?", figures)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
