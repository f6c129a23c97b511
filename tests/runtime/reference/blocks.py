"""CAGNET and SANCUS in one process: the whole matrix, blocks of rows, and the copies that workers would have of them.

Gradients are written out layer by layer: M, that of a layer's sum after its weights; S = P^T M, of the blocks as the
workers have them; of the weights S^T H, with H the rows of this iteration; and S W of H.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt

import torch
from torch import Tensor
from torch.nn import functional

from gcnsim.core.ids import Iteration
from gcnsim.graph import Graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, split
from tests.runtime.reference.model import Edges, Model, Params, edges_of, indices
from tests.runtime.reference.training import Boundary, Descent, History, Problem, Training


@dataclass(frozen=True, slots=True)
class Stale:
    """test: `fixed`, `adaptive`, `at-once` (adaptive, without delay) or `gap`; none: every block is sent.

    warm: first iterations in which all are. backward: whether gradients of skipped blocks are skipped too. clip: th.
    """

    test: str = "none"
    threshold: float = 0.0
    warm: int = 0
    backward: bool = False
    clip: float = 0.0


@dataclass(slots=True)
class Flags:
    """Of one layer: when each block was sent last, who was found to be stale, and each block as it was sent."""

    sent_in: list[int]
    found: list[bool]
    sent: list[Tensor] = field(default_factory=list)
    active: list[bool] = field(default_factory=list)
    gradients: list[Tensor] = field(default_factory=list)


def decide(t: Iteration, stale: Stale, flags: Flags, rows: Sequence[Tensor]) -> None:
    """Decide who sends `rows`, one block a worker, and what the others then have."""
    first = t < max(stale.warm, 1) or stale.test == "none"
    for j, block in enumerate(rows):
        age = t - flags.sent_in[j]
        active = first or {
            "fixed": age > stale.threshold,
            "at-once": age > stale.threshold,
            "adaptive": flags.found[j],
            "gap": bool(flags.sent) and float((block - flags.sent[j]).abs().max()) > stale.threshold,
        }.get(stale.test, True)
        flags.active = [*flags.active[:j], active, *flags.active[j + 1 :]]
        if active:
            flags.sent_in[j] = t
            flags.sent = [*flags.sent[:j], block, *flags.sent[j + 1 :]]
        # What its readers find after this iteration's broadcasts is sent in the next.
        flags.found[j] = not active and age > stale.threshold


def blocks(
    graph: Graph,
    parts: Sequence[Part],
    problem: Problem,
    model: Model,
    params: Params,
    training: Training,
    stale: Stale,
) -> History:
    """Training by block rows; used[t][n][l].index are global ids of the other workers' nodes."""
    (whole,) = split(graph, partition_graph(graph, 1, "block"))
    edges = edges_of(whole, model)
    flipped = Edges(edges.columns, edges.rows, edges.weights, edges.own)
    descent, nodes = Descent(params, training), [indices(part.inner) for part in parts]
    flags = [Flags([0] * len(parts), [False] * len(parts)) for _ in range(model.layers)]
    for t in range(training.iterations):
        rows, used, sums = [problem.features], [list[Boundary]() for _ in parts], list[Tensor]()
        for index in range(model.layers):
            own = rows[index]
            decide(t, stale, flags[index], [own[mine] for mine in nodes])
            z = torch.zeros_like(own)
            for n, mine in enumerate(nodes):
                seen = _seen(own, flags[index].sent, nodes, n)
                z[mine] = _product(edges, seen)[mine]
                others = torch.cat([node for m, node in enumerate(nodes) if m != n] or [mine[:0]]).sort().values
                used[n].append(Boundary(others.numpy(), seen[others]))
            sums.append(z)
            rows.append(_mapped(model, descent.params, index, own, z)[1].detach())
        logits = rows[-1].clone().requires_grad_()
        loss = problem.loss(logits, torch.arange(graph.nodes))
        (above,) = torch.autograd.grad(loss, logits)
        total = dict[str, Tensor]()
        for index in reversed(range(model.layers)):
            above = _backward(model, descent.params, index, flipped, rows[index], sums[index], above, total,
                              nodes, flags[index], stale)  # fmt: skip
        descent.history.rows.append(rows)
        descent.history.used.append(used)
        descent.step(float(loss.detach()), {name: total[name] for name in descent.params})
    return descent.history


def _backward(
    model: Model,
    params: Params,
    index: int,
    flipped: Edges,
    own: Tensor,
    z: Tensor,
    above: Tensor,
    total: dict[str, Tensor],
    nodes: Sequence[Tensor],
    flags: Flags,
    stale: Stale,
) -> Tensor:
    """The gradient of `own` from that of what it was mapped to; `total` gets those of the weights."""
    before, after = _mapped(model, params, index, own, z)
    norms = {name: params[name] for name in params if name.startswith(f"norms.{index}.")}
    m, *of_norms = torch.autograd.grad(after, [before, *norms.values()], above)
    total.update(zip(norms, of_norms, strict=True))
    name = f"layers.{index}.{'linear' if model.kind == 'gcn' else 'linear_neigh'}"
    clipped = m.clone()
    for mine in nodes if stale.clip else []:
        clipped[mine] *= min(1.0, stale.clip / sqrt(len(nodes)) / float(m[mine].norm()))
    skips = stale.backward and bool(flags.gradients)
    flags.gradients = [
        flags.gradients[j] if skips and not flags.active[j] else clipped[mine] for j, mine in enumerate(nodes)
    ]
    s = torch.zeros_like(m)
    for n, mine in enumerate(nodes):
        s[mine] = _product(flipped, _seen(clipped, flags.gradients, nodes, n))[mine]
    with torch.no_grad():
        total[f"{name}.weight"], total[f"{name}.bias"] = s.T @ own, clipped.sum(0)
        below = s @ params[f"{name}.weight"]
        if model.kind == "graphsage":
            itself = f"layers.{index}.linear_self"
            total[f"{itself}.weight"], total[f"{itself}.bias"] = m.T @ own, m.sum(0)
            below = below + m @ params[f"{itself}.weight"]
    return below


def _product(edges: Edges, rows: Tensor) -> Tensor:
    """P times `rows`."""
    return (edges.own[:, None] * rows).index_add(0, edges.rows, edges.weights[:, None] * rows[edges.columns])


def _mapped(model: Model, params: Params, index: int, own: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """What the weights make of rows and their sums, as a leaf, and what norm and activation make of that."""
    name = f"layers.{index}"
    if model.kind == "gcn":
        before = z @ params[f"{name}.linear.weight"].T + params[f"{name}.linear.bias"]
    else:
        before = own @ params[f"{name}.linear_self.weight"].T + params[f"{name}.linear_self.bias"]
        before = before + z @ params[f"{name}.linear_neigh.weight"].T + params[f"{name}.linear_neigh.bias"]
    after = before = before.detach().requires_grad_()
    if index == model.layers - 1:
        return before, after * 1.0
    if model.norm:
        weight, bias = params[f"norms.{index}.weight"], params[f"norms.{index}.bias"]
        after = functional.layer_norm(after, (after.shape[1],), weight, bias, eps=1e-5)
    return before, torch.relu(after)


def _seen(own: Tensor, sent: Sequence[Tensor], nodes: Sequence[Tensor], n: int) -> Tensor:
    """All rows as worker n has them: its own fresh, the others' as they were sent."""
    seen = torch.empty_like(own)
    for m, mine in enumerate(nodes):
        seen[mine] = own[mine] if m == n else sent[m]
    return seen
