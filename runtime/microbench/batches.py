"""Mini-batches: drawn, turned into matrices, their input rows picked out of memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gcnsim.graph import Graph
from gcnsim.sampling import BatchDraws, NeighbourDraws, WalkDraws
from gcnsim.streams import stream
from runtime.aggregate import matrix_kind
from runtime.exchange.batches import BatchBuilder, DrawnScaling
from runtime.microbench.bench import SEED, Bench, Call
from runtime.microbench.inputs import made_graph, made_rows

AROUND = 16
"""Batches that are taken in turn: the memory of one is not still in a cache when it comes again."""


def measure(bench: Bench) -> None:
    """`draw_batch`, `build_batch`, `batch_matrix` and `load_rows`; on CPUs alone, where batches are drawn.

    params of draw_batch: entries looked at, drawn (one by one; 0 of a sub-graph), rows (of all layers that are drawn).
    Of build_batch: entries, rows. Of batch_matrix: entries, turned (1: its transpose too). Of load_rows: rows, width.
    They are means of AROUND batches.
    Nothing is in a core's cache before any of them, since in training a whole batch is trained in between.
    """
    nodes, entries, sizes, shares = bench.budget.of(
        (400, 4_000, (20,), (0.2,)),
        (40_000, 600_000, (100, 400, 1_600), (0.03, 0.15)),
        (40_000, 600_000, (50, 100, 400, 1_600, 4_000), (0.01, 0.03, 0.08, 0.15)),
    )
    graph = made_graph(nodes, entries)
    around = range(graph.nodes)
    for fanout in bench.budget.of(((2, 2),), ((3, 3), (10, 10)), ((2, 2), (5, 5), (5, 5, 5), (25, 10))):
        for batch in sizes:
            _of(bench, graph, NeighbourDraws(graph, [np.array(around)], batch, fanout, (), SEED), fanout, sampled=True)
    for share in shares:
        _of(bench, graph, WalkDraws(graph, share, 1, 1, SEED), (1,), sampled=False)
    for rows, width in bench.budget.of(
        [(100, 16)],
        [(1_000, 128), (10_000, 128), (10_000, 32)],
        [(rows, width) for rows in (500, 4_000, 20_000) for width in (16, 64, 128, 512)],
    ):
        bench.time_cold("load_rows", {"rows": rows, "width": width}, _loading(bench, rows, width))


def _of(bench: Bench, graph: Graph, draws: BatchDraws, amounts: tuple[int, ...], *, sampled: bool) -> None:
    builder = BatchBuilder(graph, "symmetric", DrawnScaling(graph, amounts))
    batches = [draws.draw(t, 0, keep=True) for t in range(AROUND)]
    built = [builder.built(t, batch) for t, batch in enumerate(batches)]
    entries = _mean([sum(batch.entries) for batch in batches])
    # A sub-graph is one matrix, whichever layers use it.
    rows = _mean(
        [sum(level.size for level in (batch.levels[1:] if sampled else batch.levels[-1:])) for batch in batches]
    )
    sizes = {"looked": _mean([batch.looked for batch in batches]), "drawn": entries if sampled else 0.0, "rows": rows}
    bench.time_cold("draw_batch", sizes, lambda i: draws.draw(i % AROUND, 0, keep=True))
    bench.time_cold("build_batch", {"entries": entries, "rows": rows}, lambda i: builder.built(i, batches[i % AROUND]))
    kind = matrix_kind(bench.request.aggregator)
    first = [graph.rows[0] for graph in built]
    stored = _mean([0 if rows is None else rows.columns.size for rows in first])
    for turned in (False, True):

        def made(i: int, turned: bool = turned) -> None:
            rows = first[i % AROUND]
            assert rows is not None
            kind(rows, torch.float32, bench.device, turned=turned)

        bench.time_cold("batch_matrix", {"entries": stored, "turned": float(turned)}, made)


def _loading(bench: Bench, rows: int, width: int) -> Call:
    """Rows into new memory, as a batch loads them."""
    source = 4 * rows
    x = made_rows(source, width, bench.device, "load")
    chosen = [
        torch.from_numpy(stream(SEED, "load", rows, width, index).permutation(source)[:rows]) for index in range(AROUND)
    ]

    def call(i: int) -> None:
        x.index_select(0, chosen[i % AROUND])

    return call


def _mean(counts: Sequence[int]) -> float:
    return float(np.mean(counts))
