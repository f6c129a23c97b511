"""What is trained and how, what a training leaves behind, and training in one process: no parts, no messages."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gcnsim.core.ids import BoolArray, Float32Array, IntArray
from gcnsim.graph import Graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import split
from tests.runtime.reference.model import Model, Params, edges_of, layer


@dataclass(frozen=True, slots=True)
class Problem:
    """features: float64[N, d_0]. labels: int64[N], or float64[N, d_L] of 0 and 1 where a node has many.

    train: bool[N], the nodes in the loss.
    """

    features: Tensor
    labels: Tensor
    train: Tensor

    def loss(self, outputs: Tensor, nodes: Tensor) -> Tensor:
        """The share of `nodes` (global ids of the rows of `outputs`) in the loss of all training nodes."""
        chosen = self.train[nodes]
        logits, labels = outputs[chosen], self.labels[nodes][chosen]
        if labels.dim() == 2:
            total = functional.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
        else:
            total = functional.cross_entropy(logits, labels, reduction="sum")
        return total / self.train.sum()


@dataclass(frozen=True, slots=True)
class Training:
    """optimizer: `adam` or `sgd`, as torch has them."""

    iterations: int = 10
    lr: float = 0.01
    optimizer: str = "adam"
    weight_decay: float = 0.0


@dataclass(frozen=True, slots=True)
class Boundary:
    """Boundary rows that one layer of one worker used. index: int64[k] boundary indices. rows: float64[k, d_l]."""

    index: IntArray
    rows: Tensor


@dataclass(frozen=True, slots=True)
class History:
    """Everything of T iterations, by iteration t first.

    losses[t]: before step t. weights[t]: before step t; weights[T] the final ones. gradients[t]: summed over workers.
    rows[t][l]: H^(t,l) of all nodes in global order, float64[N, d_l], l = 0..L; rows[t][L] are the outputs.
    used[t][n][l]: boundary rows of worker n. masks[t][n]: the entries kept in the graph worker n trained at t.
    norms[r]: s_j of all nodes measured in the refresh iteration r, float32[N].
    """

    losses: list[float] = field(default_factory=list)
    weights: list[Params] = field(default_factory=list)
    gradients: list[Params] = field(default_factory=list)
    rows: list[list[Tensor]] = field(default_factory=list)
    used: list[list[list[Boundary]]] = field(default_factory=list)
    masks: list[list[BoolArray]] = field(default_factory=list)
    norms: dict[int, Float32Array] = field(default_factory=dict)


class Descent:
    """The replica: its parameters, its optimizer, and the history it writes."""

    def __init__(self, params: Params, training: Training) -> None:
        """Start from a copy of `params`."""
        self.params = {name: value.detach().clone().requires_grad_() for name, value in params.items()}
        kinds = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
        values = list(self.params.values())
        self._optimizer = kinds[training.optimizer](values, lr=training.lr, weight_decay=training.weight_decay)
        self.history = History(weights=[copied(self.params)])

    def step(self, loss: float, gradients: Params) -> None:
        """One step along `gradients`; all are kept."""
        for name, value in self.params.items():
            value.grad = gradients[name].detach().clone()
        self.history.losses.append(loss)
        self.history.gradients.append(copied(gradients))
        self._optimizer.step()
        self.history.weights.append(copied(self.params))


def copied(params: Params) -> Params:
    """The values of today."""
    return {name: value.detach().clone() for name, value in params.items()}


def differentiated(loss: Tensor, params: Params) -> Params:
    """The gradient of `loss` by parameter name."""
    return dict(zip(params, torch.autograd.grad(loss, list(params.values())), strict=True))


def single(graph: Graph, problem: Problem, model: Model, params: Params, training: Training) -> History:
    """Full-graph training in one process, by plain autograd."""
    (part,) = split(graph, partition_graph(graph, 1, "block"))
    edges, nodes = edges_of(part, model), torch.arange(graph.nodes)
    descent = Descent(params, training)
    for _ in range(training.iterations):
        rows = [problem.features]
        for index in range(model.layers):
            nothing = rows[index].new_zeros(0, model.widths[index])
            rows.append(layer(model, descent.params, index, edges, rows[index], nothing))
        loss = problem.loss(rows[-1], nodes)
        descent.history.rows.append([row.detach() for row in rows])
        descent.history.masks.append([np.ones(graph.entries, np.bool_)])
        descent.step(float(loss.detach()), differentiated(loss, descent.params))
    return descent.history
