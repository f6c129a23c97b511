"""What ranks of a test do with mini-batches: train some iterations, and tell what each batch read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gcnsim.core.ids import AnyArray
from gcnsim.timeline.span import Span
from runtime.exchange import LoadedBatch
from runtime.launch import Place
from runtime.options import Options
from runtime.train.evaluate import Scores
from runtime.train.reduce import LocalSums
from tests.runtime.jobs import ready_at

CASES: dict[str, dict[str, Any]] = {
    "graphsage": {"batch": 9, "fanout": (3, 2, 4)},
    "clustergcn": {"subgraph": 0.3},
    "graphsaint": {"subgraph": 0.3, "coverage": 30},
    "dgl": {"batch": 9, "fanout": (3, 2, 4)},
    "pagraph": {"batch": 9, "fanout": (3, 2, 4), "cache": "40%", "queue": 2},
    "distdgl": {"batch": 9, "layer_sizes": (40, 30, 20)},
}
"""Knobs of every method of mini-batches on the small graph."""


@dataclass
class Batches:
    """One rank's run. losses[t]; weights[t]: before step t; gradients[t]; nodes[t]: whose input rows the batch read, in
    the order of rows[t]. hits[t]: of them out of the cache."""

    losses: list[float] = field(default_factory=list)
    weights: list[dict[str, AnyArray]] = field(default_factory=list)
    gradients: list[dict[str, AnyArray]] = field(default_factory=list)
    nodes: list[AnyArray] = field(default_factory=list)
    rows: list[AnyArray] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)
    trained: list[int] = field(default_factory=list)
    sent: dict[tuple[int, str], int] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    streams: tuple[str, ...] = ()


def trained(place: Place, options: Options) -> Batches:
    """Train `options.iterations` and tell all."""
    ready = ready_at(place, options)
    batches = Batches()
    for t in range(options.iterations):
        batches.weights.append(_weights(ready.network))
        sums, batch = ready.trainer.iteration(t, LocalSums())
        assert isinstance(batch, LoadedBatch)
        assert sums.loss is not None
        batches.losses.append(sums.loss)
        batches.trained.append(sums.trained)
        batches.gradients.append({name: _array(weight.grad) for name, weight in ready.network.named_parameters()})
        batches.nodes.append(batch.graph.nodes.copy())
        batches.rows.append(_array(batch.x))
        batches.hits.append(batch.hits)
    ready.method.drain()
    batches.weights.append(_weights(ready.network))
    batches.sent = ready.method.bytes_sent()
    timeline = ready.recorder.timeline(0)
    batches.spans, batches.streams = list(timeline), timeline.streams
    ready.method.close()
    return batches


def scored(place: Place, options: Options) -> Scores:
    """Train without a record, then evaluate the last weights on the full graph."""
    ready = ready_at(place, replace(options, record=False))
    for t in range(options.iterations):
        ready.trainer.iteration(t, LocalSums())
    ready.method.drain()
    assert ready.evaluator is not None
    scores = ready.evaluator.scores(ready.network, ready.trainer.x)
    ready.method.close()
    return scores


def _weights(network: object) -> dict[str, AnyArray]:
    from runtime.model import Network

    assert isinstance(network, Network)
    return {name: _array(weight) for name, weight in network.named_parameters()}


def _array(tensor: object) -> AnyArray:
    import torch

    assert isinstance(tensor, torch.Tensor)
    found: AnyArray = np.array(tensor.detach().cpu().numpy())
    return found
