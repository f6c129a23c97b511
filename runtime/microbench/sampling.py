"""Sampling: probabilities from norms, the draw, and the matrices of the drawn graph."""

from __future__ import annotations

import numpy as np
import torch

from gcnsim.core.streams import stream
from gcnsim.graph.parts import Part
from gcnsim.workload.draws import draw_edges, inclusion
from gcnsim.workload.samplers import sampler as sampling_rule
from runtime.aggregate import matrix_kind
from runtime.exchange import GraphBuilder
from runtime.microbench.bench import SEED, Bench
from runtime.microbench.inputs import made_part


def measure(bench: Bench) -> None:
    """`probabilities`, `inclusion`, `reweigh`, `draw` and `thin`.

    params: entries, rows (inner nodes), boundary (boundary nodes), cross (entries of boundary columns), epsilon;
    of draw and thin also kept (entries) and needed (boundary rows).
    """
    sizes = bench.budget.of([(400, 4_000)], [(8_000, 80_000), (40_000, 800_000)], [
        (8_000, 80_000), (40_000, 400_000), (16_000, 800_000), (80_000, 2_000_000),
    ])  # fmt: skip
    kind = matrix_kind(bench.request.aggregator)
    for nodes, entries in sizes:
        part = made_part(nodes, entries)
        builder = GraphBuilder(part, "symmetric", kind, torch.float32, bench.device)
        for epsilon in bench.budget.of((0.1,), (0.03, 0.3), (0.03, 0.1, 0.3)):
            _at(bench, part, builder, epsilon)


def _at(bench: Bench, part: Part, builder: GraphBuilder, epsilon: float) -> None:
    generator = stream(SEED, "drawing", part.entries)
    norms = generator.random(part.inner_nodes + part.boundary_nodes, dtype=np.float32) + np.float32(0.1)
    rule = sampling_rule("vr")
    p = rule(part, norms).probabilities(epsilon).p
    weights = builder.weights(1.0 / p.astype(np.float64))
    mask = draw_edges(part, p, generator)
    graph = builder.thinned(0, mask, weights)
    params: dict[str, float] = {
        "entries": part.entries,
        "rows": part.inner_nodes,
        "boundary": part.boundary_nodes,
        "cross": int(np.count_nonzero(part.columns >= part.inner_nodes)),
        "epsilon": epsilon,
    }
    chosen = {"kept": int(np.count_nonzero(mask)), "needed": graph.rows}
    bench.time("probabilities", params, lambda _: rule(part, norms).probabilities(epsilon))
    bench.time("inclusion", params, lambda _: inclusion(part, p))
    bench.time("reweigh", params, lambda _: builder.weights(1.0 / p.astype(np.float64)))
    bench.time("draw", params | chosen, lambda _: draw_edges(part, p, generator))
    bench.time("thin", params | chosen, lambda i: builder.thinned(i, mask, weights))
