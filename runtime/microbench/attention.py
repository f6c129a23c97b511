"""Graph attention, forward and backward, by what the matrix is like, the number of heads and their width together."""

from __future__ import annotations

import torch

from runtime.aggregate import Matrix, attention_sum
from runtime.microbench.bench import Bench
from runtime.microbench.inputs import Shape, made_rows, prepared


def measure(bench: Bench) -> None:
    """`attention` and `attention_backward`.

    params: those of `facts_of`; heads; width, of all heads together.
    """
    tiny = [(Shape(1_000, 100, 100), 2, 16)]
    quick = [
        (Shape(entries, rows, columns, skewed=True, local=True), heads, width)
        for entries, rows, columns in ((20_000, 2_000, 3_000), (200_000, 10_000, 14_000))
        for heads, width in ((1, 16), (1, 128), (2, 128), (4, 64))
    ]
    full = [
        *quick,
        *((Shape(600_000, 8_000, 10_000, skewed=True), heads, width) for heads, width in ((1, 64), (2, 128), (8, 128))),
        *((Shape(100_000, 40_000, 50_000), heads, width) for heads, width in ((1, 64), (4, 256))),
    ]
    for shape, heads, width in bench.budget.of(tiny, quick, full):
        matrix, facts = prepared(shape, bench.device, bench.request.aggregator)
        _both(bench, matrix, {**facts, "heads": heads, "width": width})


def _both(bench: Bench, matrix: Matrix, params: dict[str, float]) -> None:
    heads, width = int(params["heads"]), int(params["width"])
    count, columns = int(params["rows"]), int(params["columns"])
    values = made_rows(columns, width, bench.device, "attention").view(columns, heads, width // heads)
    target = made_rows(count, heads, bench.device, "target")
    source = made_rows(columns, heads, bench.device, "source")
    leaves = [item.clone().requires_grad_() for item in (values, target, source)]
    bench.time("attention", params, lambda _: attention_sum(matrix, *leaves))
    made = attention_sum(matrix, *leaves)
    back = torch.ones_like(made)
    bench.time("attention_backward", params, lambda _: torch.autograd.grad(made, leaves, back, retain_graph=True))
