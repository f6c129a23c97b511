"""`--aggregator auto`: the kernels that sum neighbours quickest here.

Kernels differ in the order of their sums, so in the last bits: a run uses the same from start to end.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

import torch

from gcnsim.errors import ScenarioError
from gcnsim.partition import Part
from runtime.aggregate import matrix_kind
from runtime.exchange import Channel, GraphBuilder
from runtime.options import Options

KERNELS: Final = ("plain", "numba", "dgl")
ROUNDS: Final = 3
"""Products of each that are timed; the quickest counts."""


def with_kernels(options: Options, part: Part, weights: str, dtype: torch.dtype, control: Channel | None) -> Options:
    """`options`, naming the kernels that `auto` stands for; all workers together, worker 0 measures on its part."""
    if options.aggregator != "auto":
        return options
    if options.device != "cpu":
        return replace(options, aggregator="plain")
    if options.pools:
        # Maxima are not timed here: compiled ones took 0.03 to 0.07 of torch's (`benchmarks/bench_pooling.py`).
        return replace(options, aggregator="numba")
    chosen = torch.zeros(1, dtype=torch.int32)
    if part.rank == 0:
        chosen[0] = KERNELS.index(quickest(options, part, weights, dtype))
    if control is not None:
        control.broadcast(chosen)
    return replace(options, aggregator=KERNELS[int(chosen)])


def quickest(options: Options, part: Part, weights: str, dtype: torch.dtype) -> str:
    """The kernels with the least time for a sum over all neighbours of `part` and its gradient, of the hidden width.

    Where edges are sampled or weights are learnt, the sums that are timed have a weight per entry.
    """
    took = {}
    for name in KERNELS:
        try:
            kind = matrix_kind(name)
        except ScenarioError:
            continue
        matrix = GraphBuilder(part, weights, kind, dtype, torch.device("cpu")).whole().inner
        values = torch.ones(matrix.rows.columns.size, dtype=dtype) if _weighed(options) else None
        x = torch.ones(part.inner_nodes, options.hidden, dtype=dtype)
        out = torch.zeros_like(x)
        seconds = []
        for _ in range(1 + ROUNDS):
            start = time.perf_counter()
            matrix.multiply(x, out, values=values)
            matrix.multiply_transposed(x, out, values=values)
            seconds.append(time.perf_counter() - start)
        took[name] = min(seconds[1:])
    return min(took, key=lambda name: took[name])


def _weighed(options: Options) -> bool:
    """Whether sums of the run read a weight per entry."""
    epsilon = options.knobs.get("epsilon", 1.0)
    sampled = isinstance(epsilon, int | float) and epsilon < 1.0 and options.knobs.get("estimator") != "mean"
    return sampled or options.model == "gat"
