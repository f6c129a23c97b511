"""GraphSAGE's pooling, forward and backward, by what the matrix is like and by the width of the rows."""

from __future__ import annotations

import torch

from runtime.aggregate import Matrix, neighbour_max
from runtime.microbench.bench import Bench
from runtime.microbench.inputs import Shape, made_rows, prepared


def measure(bench: Bench) -> None:
    """`pool` and `pool_backward`: the largest values over neighbours, and their gradients to the rows they came from.

    params: those of `facts_of`; width.
    """
    tiny = [(Shape(1_000, 100, 100), 16)]
    quick = [
        (Shape(entries, rows, columns, skewed=True, local=True), width)
        for entries, rows, columns in ((20_000, 2_000, 3_000), (200_000, 10_000, 14_000))
        for width in (16, 64, 128, 256)
    ]
    full = [
        *quick,
        *((Shape(600_000, 8_000, 10_000, skewed=True), width) for width in (64, 128)),
        *((Shape(100_000, 40_000, 50_000), width) for width in (64, 256)),
    ]
    for shape, width in bench.budget.of(tiny, quick, full):
        matrix, facts = prepared(shape, bench.device, bench.request.aggregator)
        _both(bench, matrix, {**facts, "width": width})


def _both(bench: Bench, matrix: Matrix, params: dict[str, float]) -> None:
    # As trained: what is pooled comes out of a ReLU, so many values are 0, and needs a gradient.
    x = made_rows(int(params["columns"]), int(params["width"]), bench.device, "pool").relu_().requires_grad_()
    bench.time("pool", params, lambda _: neighbour_max(matrix, x))
    made = neighbour_max(matrix, x)
    back = torch.ones_like(made)
    bench.time("pool_backward", params, lambda _: torch.autograd.grad(made, x, back, retain_graph=True))
