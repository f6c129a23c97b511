"""Training on mini-batches in one process: every layer over all nodes, by the entries that each batch kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.graph import Graph
from gcnsim.workload.mini_batches import Batch, BatchDraws
from tests.runtime.reference.model import Edges, Model, Params, layer
from tests.runtime.reference.training import Descent, Problem, Training, differentiated

Factors = Callable[[int, IntArray, IntArray], FloatArray]
"""Of a layer's entries, from the rows that sum them and their neighbours (node ids, int64[E])."""

Degrees = Callable[[IntArray], FloatArray]
"""Of all nodes, float64[N], from the rows of the entries kept."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How entries of a batch weigh, and (by node) what a training node's share in the loss is; None: the mean.

    ready: layers, the first ones, that sum all entries of the graph."""

    factors: Factors
    degrees: Degrees
    shares: FloatArray | None = None
    ready: int = 0


@dataclass(frozen=True, slots=True)
class Trained:
    """losses, weights, gradients: as of `History`. read[t][n]: nodes whose input rows worker n's batch reads."""

    losses: list[float]
    weights: list[Params]
    gradients: list[Params]
    read: list[list[IntArray]] = field(default_factory=list)
    counted: list[int] = field(default_factory=list)


def whole_degrees(graph: Graph) -> Degrees:
    """Those in the whole graph, whatever is kept."""
    degree = graph.degrees.astype(np.float64)
    return lambda rows: degree


def drawn_factors(graph: Graph, amounts: tuple[int | float, ...]) -> Factors:
    """n / k of n neighbours of which k were drawn, or 1 over the chance of each."""

    def factors(index: int, rows: IntArray, columns: IntArray) -> FloatArray:
        amount = amounts[index]
        if isinstance(amount, float):
            return np.full(rows.size, 1.0 / amount)
        drawn = {int(node): int((rows == node).sum()) for node in np.unique(rows)}
        return np.array([graph.degrees[node] / drawn[int(node)] for node in rows])

    return factors


def batched(
    graph: Graph,
    problem: Problem,
    model: Model,
    params: Params,
    training: Training,
    draws: BatchDraws,
    workers: int,
    rules: Rules,
) -> Trained:
    """Every worker's batch one after the other, gradients and losses summed, one step."""
    descent, trained = Descent(params, training), Trained([], [], [])
    for t in range(training.iterations):
        batches = [draws.draw(t, rank, keep=True) for rank in range(workers)]
        chosen = [np.flatnonzero(_trains(problem, batch)) for batch in batches]
        count = sum(nodes.size for nodes in chosen)
        total = torch.zeros((), dtype=torch.float64)
        for batch, nodes in zip(batches, chosen, strict=True):
            total = total + _loss(problem, _logits(graph, problem, model, descent.params, batch, rules), nodes, rules)
        loss = total if rules.shares is not None else total / max(1, count)
        descent.step(float(loss.detach()), differentiated(loss, descent.params))
        trained.read.append([batch.levels[0] for batch in batches])
        trained.counted.append(count)
    history = descent.history
    return Trained(history.losses, history.weights, history.gradients, trained.read, trained.counted)


def _trains(problem: Problem, batch: Batch) -> IntArray:
    inside = np.zeros(problem.train.shape[0], np.bool_)
    inside[batch.levels[-1]] = True
    return np.asarray(inside & problem.train.numpy())


def _logits(graph: Graph, problem: Problem, model: Model, params: Params, batch: Batch, rules: Rules) -> Tensor:
    """Of all nodes; those outside the batch mean nothing."""
    rows = problem.features
    for index in range(model.layers):
        places = np.arange(graph.entries) if index < rules.ready else batch.places[index]
        edges = _edges(graph, model, index, places, rules)
        rows = layer(model, params, index, edges, rows, rows.new_zeros(0, rows.shape[1]))
    return rows


def _edges(graph: Graph, model: Model, index: int, places: IntArray, rules: Rules) -> Edges:
    """The entries at these places of the graph."""
    row = np.repeat(np.arange(graph.nodes), np.diff(graph.indptr))[places]
    column = graph.indices[places].astype(np.int64)
    degree, own = rules.degrees(row), np.zeros(graph.nodes)
    if model.kind == "gcn":
        weights, own = 1.0 / np.sqrt((degree[row] + 1.0) * (degree[column] + 1.0)), 1.0 / (degree + 1.0)
    elif model.with_self:
        weights, own = 1.0 / (degree[row] + 1.0), 1.0 / (degree + 1.0)
    else:
        weights = 1.0 / degree[row]
    if index >= rules.ready:
        weights = weights * rules.factors(index, row, column)
    return Edges(torch.tensor(row), torch.tensor(column), torch.tensor(weights), torch.tensor(own))


def _loss(problem: Problem, logits: Tensor, nodes: IntArray, rules: Rules) -> Tensor:
    each = functional.cross_entropy(logits[nodes], problem.labels[nodes], reduction="none")
    return each.sum() if rules.shares is None else (each * torch.tensor(rules.shares[nodes])).sum()
