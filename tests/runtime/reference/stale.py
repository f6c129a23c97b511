"""PipeGCN and PSC-GCN in one process: workers and layers in plain loops, every iteration's rows and gradients kept.

What an asynchronous system would have received by iteration t is looked up in iteration t - tau.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from gcnsim.core.ids import IntArray, Iteration
from gcnsim.graph.parts import Part
from tests.runtime.reference.drawn import Rule, SampledGraph, drawn, norms_of
from tests.runtime.reference.model import Model, Params, indices, layer, of_layer
from tests.runtime.reference.training import Boundary, Descent, History, Problem, Training


@dataclass(frozen=True, slots=True)
class Lag:
    """tau: age of boundary rows and gradients. smoothing: averages of `f` features, `g` gradients, `gf` both.

    gamma: decay of these averages, which start at 0. features_first: true features instead of zeros for t < tau.
    """

    tau: int
    smoothing: str = ""
    gamma: float = 0.95
    features_first: bool = False


@dataclass(slots=True)
class _Layer:
    """One layer of one worker in one iteration: its leaves and what it made of them."""

    inner: Tensor
    boundary: Tensor
    out: Tensor


@dataclass(slots=True)
class _Run:
    parts: Sequence[Part]
    problem: Problem
    model: Model
    lag: Lag
    descent: Descent
    sent: list[dict[tuple[int, int], Tensor]] = field(default_factory=list)
    """sent[t][l, n]: gradients of n's boundary rows at layer l, float64[B_n, d_l]."""
    averages: dict[tuple[str, int, int], Tensor] = field(default_factory=dict)
    """By direction, layer, and the worker whose boundary it is."""

    def forward(self, t: Iteration, graphs: Sequence[SampledGraph]) -> list[list[_Layer]]:
        """The layers of iteration t, by layer and worker."""
        rows, made = [self.problem.features], list[list[_Layer]]()
        self.descent.history.rows.append(rows)
        self.descent.history.used.append([[] for _ in self.parts])
        for index in range(self.model.layers):
            made.append([])
            after = rows[0].new_zeros(rows[0].shape[0], self.model.widths[index + 1])
            for n, part in enumerate(self.parts):
                inner = rows[index][indices(part.inner)].requires_grad_()
                boundary = self._boundary(t, index, n, graphs[n].needed).requires_grad_()
                out = layer(self.model, self.descent.params, index, graphs[n].edges, inner, boundary)
                after[indices(part.inner)] = out.detach()
                made[index].append(_Layer(inner, boundary, out))
            rows.append(after)
        return made

    def _boundary(self, t: Iteration, index: int, n: int, needed: IntArray) -> Tensor:
        """The boundary rows of worker n, float64[B, d]; zeros for those that the graph has no entry of."""
        nodes, wanted = indices(self.parts[n].boundary), indices(needed)
        source = t - self.lag.tau
        rows = torch.zeros(nodes.shape[0], self.model.widths[index], dtype=torch.float64)
        if source >= 0:
            received = self.descent.history.rows[source][index][nodes]
            rows[wanted] = self._smoothed("f", index, n, received)[wanted]
        elif self.lag.features_first and index == 0:
            rows[wanted] = self.problem.features[nodes[wanted]]
        self.descent.history.used[t][n].append(Boundary(needed, rows[wanted].clone()))
        return rows

    def backward(self, t: Iteration, made: list[list[_Layer]]) -> tuple[float, Params]:
        """The loss and the gradient of the weights, summed over workers; `sent` gets what others' rows are owed."""
        outputs = [item.out.detach().requires_grad_() for item in made[-1]]
        nodes = [indices(part.inner) for part in self.parts]
        losses = [self.problem.loss(out, own) for out, own in zip(outputs, nodes, strict=True)]
        above = [torch.autograd.grad(loss, out)[0] for loss, out in zip(losses, outputs, strict=True)]
        total = {name: torch.zeros_like(value) for name, value in self.descent.params.items()}
        self.sent.append({})
        for index in reversed(range(self.model.layers)):
            weights = of_layer(self.descent.params, index)
            below = []
            for n, item in enumerate(made[index]):
                leaves = [item.inner, item.boundary, *weights.values()]
                inner, self.sent[t][index, n], *gradients = torch.autograd.grad(item.out, leaves, above[n])
                below.append(inner)
                for name, gradient in zip(weights, gradients, strict=True):
                    total[name] += gradient
            if index > 0:
                late = self._late(t, index)
                above = [inner + late[own] for inner, own in zip(below, nodes, strict=True)]
        return sum(float(loss.detach()) for loss in losses), total

    def _late(self, t: Iteration, index: int) -> Tensor:
        """What other workers owe to H^(index) of all nodes, float64[N, d], tau iterations old."""
        late = torch.zeros(self.problem.features.shape[0], self.model.widths[index], dtype=torch.float64)
        if t >= self.lag.tau:
            for m, part in enumerate(self.parts):
                received = self.sent[t - self.lag.tau][index, m]
                late.index_add_(0, indices(part.boundary), self._smoothed("g", index, m, received))
        return late

    def _smoothed(self, direction: str, index: int, n: int, received: Tensor) -> Tensor:
        """The running average where `direction` has one, otherwise what was received."""
        if direction not in self.lag.smoothing:
            return received
        old = self.averages.get((direction, index, n), torch.zeros_like(received))
        new = self.lag.gamma * old + (1.0 - self.lag.gamma) * received
        self.averages[direction, index, n] = new
        return new


def stale(
    parts: Sequence[Part],
    problem: Problem,
    model: Model,
    params: Params,
    training: Training,
    lag: Lag,
    rule: Rule | None = None,
    *,
    seed: int = 0,
) -> History:
    """PSC-GCN with the age `lag.tau` and the drawing `rule`; without a rule nothing is drawn, as in PipeGCN.

    tau = 0 is synchronous. seed: of the drawn graphs.
    """
    rule = rule or Rule()
    if rule.epsilon < 1.0 and lag.smoothing:
        raise ValueError("smoothing has no fixed rows under sampling")
    run = _Run(parts, problem, model, lag, Descent(params, training))
    history = run.descent.history
    for t in range(training.iterations):
        graphs = [drawn(part, model, rule, lag.tau, t, history.norms, seed) for part in parts]
        history.masks.append([graph.mask for graph in graphs])
        loss, gradients = run.backward(t, run.forward(t, graphs))
        if rule.epsilon < 1.0 and rule.sampler == "vr" and t % rule.refresh == 0:
            history.norms[t] = norms_of(model, run.descent.params, history.rows[t])
        run.descent.step(loss, gradients)
    return history
