"""GraphSAGE's pooling, forward and backward: `--aggregator numba` and `plain` against DGL's maximum of copied rows.

CPU, one thread, real graphs (needs GCNSIM_DATA; DGL is left out where it is not installed). All have the same graph and
rows, no two values alike since DGL has a rule of its own for these, and must give the same values and gradients; they
are taken in turn and timed in processor time of their thread. A dataset's name on the command line: that one alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.bench_kernels import CPU, in_turn
from benchmarks.measuring import Figure, report
from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import split
from runtime.aggregate import Matrix, matrix_kind, neighbour_max
from runtime.exchange import GraphBuilder

ROUNDS = {"amazon_cs": 9, "coauthor_phy": 9}
WIDTHS = (32, 128)

NEAR = 1e-4
"""Largest difference from plain's gradients, of the largest: sums of up to thousands of terms in single precision."""

Both = Callable[[], tuple[Tensor, Tensor]]


def ours(matrix: Matrix, x: Tensor, weight: Tensor) -> Both:
    """The largest values, and the gradient of their sum weighed by `weight`."""

    def call() -> tuple[Tensor, Tensor]:
        out = neighbour_max(matrix, x)
        return out.detach(), torch.autograd.grad(out, x, weight)[0]

    return call


def dgls(matrix: Matrix, x: Tensor, weight: Tensor) -> Both:
    """The same by DGL's message passing."""
    os.environ.setdefault("DGLBACKEND", "pytorch")
    import dgl

    rows = matrix.rows
    index = [torch.from_numpy(np.asarray(item).astype(np.int32)) for item in (rows.indptr, rows.columns)]
    number = torch.arange(index[1].numel(), dtype=torch.int32)
    nodes = {"source": rows.width, "target": rows.indptr.size - 1}
    graph = dgl.heterograph({("source", "edge", "target"): ("csc", (*index, number))}, num_nodes_dict=nodes)
    graph.create_formats_()

    def call() -> tuple[Tensor, Tensor]:
        out = dgl.ops.gspmm(graph, "copy_lhs", "max", x, None)
        return out.detach(), torch.autograd.grad(out, x, weight)[0]

    return call


def same(found: tuple[Tensor, Tensor], wanted: tuple[Tensor, Tensor], filled: Tensor) -> bool:
    """Whether values are the same where there are entries, and gradients but for rounding."""
    error, size = float((found[1] - wanted[1]).abs().max()), float(wanted[1].abs().max())
    return torch.equal(found[0][filled], wanted[0][filled]) and error <= NEAR * size


def pooled(dataset: str) -> list[Figure]:
    """The whole graph at each width."""
    graph = load_graph(Path(os.environ["GCNSIM_DATA"]) / f"{dataset}.npz")
    (part,) = split(graph, partition_graph(graph, 1, "block"))
    numba, plain = (
        GraphBuilder(part, "mean", matrix_kind(name), torch.float32, CPU).whole().inner for name in ("numba", "plain")
    )
    # DGL's rows without an entry are minus infinity, and row 0 gets their gradients.
    filled = torch.from_numpy(np.diff(plain.rows.indptr) > 0)
    figures = []
    for width in WIDTHS:
        draw = torch.Generator().manual_seed(0)
        order = torch.randperm(part.inner_nodes * width, generator=draw)
        x = order.float().view(part.inner_nodes, width).requires_grad_()
        weight = torch.randn(part.inner_nodes, width, generator=draw) * filled.unsqueeze(1)
        calls = {"ours": ours(numba, x, weight), "torch": ours(plain, x, weight)}
        if find_spec("dgl") is not None:
            calls["DGL"] = dgls(plain, x, weight)
        made = {name: call() for name, call in calls.items()}
        name = f"{dataset}, width {width}"
        if not all(same(tensors, made["torch"], filled) for tensors in made.values()):
            raise RuntimeError(f"{name}: values or gradients differ")
        took = in_turn(calls, ROUNDS[dataset])
        figures += [
            Figure(f"{name}: torch", 1e3 * took["torch"], "ms"),
            Figure(f"{name}: ours / torch", took["ours"] / took["torch"], "", "<= 0.2"),
        ]
        if "DGL" in took:
            figures.append(Figure(f"{name}: ours / DGL", took["ours"] / took["DGL"], "", "<= 1.1"))
    return figures


def main(words: Sequence[str]) -> int:
    """Measure and report."""
    torch.set_num_threads(1)
    figures = [figure for dataset in (words or ROUNDS) for figure in pooled(dataset)]
    return report("bench_pooling", "how fast is pooling over neighbours, forward and backward?", figures)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
