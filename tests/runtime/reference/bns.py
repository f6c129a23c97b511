"""BNS-GCN in one process: all workers' layers side by side in one autograd graph, which is what synchronous means.

With GAT the softmax runs over the neighbours present, and nothing is scaled: attention has no sum to keep unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import BoolArray, FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph.parts import Part
from tests.runtime.reference.model import Edges, Model, Params, edges_of, indices, kept, layer
from tests.runtime.reference.training import Boundary, Descent, History, Problem, Training, differentiated


def bns(
    parts: Sequence[Part],
    problem: Problem,
    model: Model,
    params: Params,
    training: Training,
    *,
    p: float,
    scale: str = "rate",
    seed: int = 0,
) -> History:
    """Training with a share `p` of each boundary. scale: chosen rows count 1/p (`rate`) or n/k (`ratio`)."""
    descent = Descent(params, training)
    nodes = [indices(part.inner) for part in parts]
    place = torch.argsort(torch.cat(nodes))
    for t in range(training.iterations):
        factors = [_factors(part, p, scale, seed, t) for part in parts]
        edges = [_sampled(part, model, factor) for part, factor in zip(parts, factors, strict=True)]
        rows = [problem.features]
        used: list[list[Boundary]] = [[] for _ in parts]
        for index in range(model.layers):
            pieces = []
            for n, part in enumerate(parts):
                boundary = rows[index][indices(part.boundary)]
                pieces.append(layer(model, descent.params, index, edges[n], rows[index][nodes[n]], boundary))
                used[n].append(_used(boundary, factors[n]))
            rows.append(torch.cat(pieces)[place])
        loss = torch.stack([problem.loss(rows[-1][own], own) for own in nodes]).sum()
        descent.history.rows.append([row.detach() for row in rows])
        descent.history.used.append(used)
        descent.history.masks.append([_mask(part, factor) for part, factor in zip(parts, factors, strict=True)])
        descent.step(float(loss.detach()), differentiated(loss, descent.params))
    return descent.history


def _factors(part: Part, p: float, scale: str, seed: int, t: int) -> FloatArray:
    """What each boundary row counts in iteration t, float64[B]; 0: not chosen."""
    factors = np.zeros(part.boundary_nodes)
    for owner in range(part.parts):
        first, last = (int(end) for end in part.boundary_ptr[owner : owner + 2])
        n = last - first
        if n == 0:
            continue
        generator = stream(seed, "bns", owner, part.rank, t)
        whole = math.floor(p * n)
        k = whole + (1 if generator.random() < p * n - whole else 0)
        chosen = np.sort(generator.choice(n, size=k, replace=False))
        factors[first + chosen] = (n / k if k else 0.0) if scale == "ratio" else (1.0 / p if p else 0.0)
    return factors


def _mask(part: Part, factors: FloatArray) -> BoolArray:
    """The entries whose column is an inner node or a chosen boundary node."""
    present: BoolArray = np.concatenate([np.ones(part.inner_nodes), factors])[part.columns] > 0
    return present


def _sampled(part: Part, model: Model, factors: FloatArray) -> Edges:
    factor = np.concatenate([np.ones(part.inner_nodes), factors])[part.columns]
    return kept(edges_of(part, model), _mask(part, factors), factor)


def _used(boundary: Tensor, factors: FloatArray) -> Boundary:
    index = np.flatnonzero(factors)
    return Boundary(index, boundary.detach()[indices(index)])
