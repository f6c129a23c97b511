"""The graphs that PSC-GCN draws, and the norms its probabilities come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import BoolArray, Float32Array, FloatArray, IntArray, Iteration
from gcnsim.core.streams import stream
from gcnsim.graph.parts import Part
from gcnsim.workload.samplers import VarianceReduction
from tests.runtime.reference.model import Edges, Model, Params, edges_of, kept
from tests.sampled import draw_edges


@dataclass(frozen=True, slots=True)
class Rule:
    """How graphs are drawn; at epsilon 1 nothing is drawn.

    sampler: `uniform` or `vr`. refresh: R. estimator: kept entries weigh P/p (`inverse`), P times the row's whole
    weight over its kept weight (`self-normalised`), or a share of one each as does the node itself (`mean`).
    """

    epsilon: float = 1.0
    sampler: str = "uniform"
    refresh: int = 20
    estimator: str = "inverse"


@dataclass(frozen=True, slots=True)
class SampledGraph:
    """One worker's graph. mask: bool[nnz] entries kept. needed: int64[k] boundary indices it has entries of."""

    edges: Edges
    mask: BoolArray
    needed: IntArray


def measured_in(graph: Iteration, tau: int, refresh: int) -> Iteration | None:
    """The refresh whose norms graph `graph` is drawn with: the last one before the iteration that draws it."""
    before = graph - tau - 1
    return before // refresh * refresh if before >= 0 else None


def norms_of(model: Model, params: Params, rows: Sequence[Tensor]) -> Float32Array:
    """s_j = sqrt(sum over layers of ||H_j^(l) W_l||^2) of all nodes, float32[N]; rows[l]: H^(l), float64[N, d_l]."""
    linear = "linear_neigh" if model.kind == "graphsage" else "linear"
    squares = torch.zeros(rows[0].shape[0], dtype=torch.float64)
    for index in range(model.layers):
        products = rows[index] @ params[f"layers.{index}.{linear}.weight"].detach().T
        squares += (products**2).sum(1)
    found: Float32Array = squares.sqrt().numpy().astype(np.float32)
    return found


def probabilities(
    part: Part, model: Model, rule: Rule, tau: int, graph: Iteration, norms: Mapping[Iteration, Float32Array]
) -> Float32Array:
    """p of every entry in graph `graph`, float32[nnz]; norms: by refresh iteration, of all nodes in global order."""
    measured = measured_in(graph, tau, rule.refresh)
    if rule.sampler == "uniform" or measured is None:
        return np.full(part.entries, rule.epsilon, np.float32)
    local = norms[measured][np.concatenate([part.inner, part.boundary])]
    if model.kind != "gcn" or rule.estimator == "mean":
        degree = np.concatenate([part.inner_degree, part.boundary_degree])
        # The rule weighs columns as the GCN does, by 1 / sqrt(deg_j + 1); a mean does not, nor is attention taken to.
        local = (local * np.sqrt(degree + 1.0)).astype(np.float32)
    return VarianceReduction(part, local).probabilities(rule.epsilon).p


def drawn(
    part: Part,
    model: Model,
    rule: Rule,
    tau: int,
    graph: Iteration,
    norms: Mapping[Iteration, Float32Array],
    seed: int,
) -> SampledGraph:
    """Graph `graph` of one worker."""
    edges = edges_of(part, model)
    if rule.epsilon == 1.0:
        everything = np.ones(part.entries, np.bool_)
        return SampledGraph(edges, everything, np.arange(part.boundary_nodes))
    p = probabilities(part, model, rule, tau, graph, norms)
    mask = draw_edges(part, p, stream(seed, "trace", part.rank, graph))
    columns = part.columns[mask].astype(np.int64)
    needed = np.unique(columns[columns >= part.inner_nodes]) - part.inner_nodes
    if rule.estimator == "mean":
        return SampledGraph(_means(edges, mask), mask, needed)
    factor = 1.0 / p.astype(np.float64) if rule.estimator == "inverse" else _row_factors(edges, mask)
    return SampledGraph(kept(edges, mask, factor), mask, needed)


def _means(edges: Edges, mask: BoolArray) -> Edges:
    """The entries in `mask`, and the node itself where it counts, in equal shares."""
    chosen, looped = torch.tensor(mask), edges.own > 0
    present = torch.zeros(edges.own.shape[0], dtype=torch.float64)
    present.index_add_(0, edges.rows[chosen], torch.ones(int(chosen.sum()), dtype=torch.float64))
    share = 1.0 / (present + looped).clamp(min=1.0)
    rows = edges.rows[chosen]
    return Edges(rows, edges.columns[chosen], share[rows], share * looped)


def _row_factors(edges: Edges, mask: BoolArray) -> FloatArray:
    """Per entry, its row's weight over the kept weight of the row; 1 where a row keeps nothing."""
    rows, weights = edges.rows.numpy(), edges.weights.numpy()
    whole = np.bincount(rows, weights=weights, minlength=edges.own.shape[0])
    left = np.bincount(rows, weights=weights * mask, minlength=edges.own.shape[0])
    factor: FloatArray = np.divide(whole, left, out=np.ones_like(whole), where=left > 0)[rows]
    return factor
