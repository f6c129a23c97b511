"""What ranks of a test do: train some iterations with the real runtime, and tell everything that can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import AnyArray
from gcnsim.graph.parts import Replicas
from gcnsim.timeline import Direction
from runtime.data import DatasetCache
from runtime.exchange import BlockSums, SampledGraph
from runtime.launch import Place, connect
from runtime.methods.worker import BlockWorker
from runtime.options import Options
from runtime.train.reduce import LocalSums
from runtime.train.setup import WorkerState, prepare


@dataclass
class RankRecord:
    """One rank's run. losses[t]; weights[t]: after t steps, by name; gradients[t]: summed over ranks, by name.

    logits: of the inner nodes with the last weights, full graph. inner: their global ids. used[t][layer]: boundary
    indices and the rows read. sent: bytes by (peer, kind).
    """

    losses: list[float] = field(default_factory=list)
    weights: list[dict[str, AnyArray]] = field(default_factory=list)
    gradients: list[dict[str, AnyArray]] = field(default_factory=list)
    used: list[dict[int, tuple[AnyArray, AnyArray]]] = field(default_factory=list)
    inputs: list[list[AnyArray]] = field(default_factory=list)
    logits: AnyArray = field(default_factory=lambda: np.zeros(0))
    inner: AnyArray = field(default_factory=lambda: np.zeros(0, np.int64))
    boundary: AnyArray = field(default_factory=lambda: np.zeros(0, np.int64))
    norms: list[AnyArray] = field(default_factory=list)
    sent: dict[tuple[int, str], int] = field(default_factory=dict)
    asked: tuple[int, int] = (0, 0)
    expected_rows: float = 0.0


def ready_at(place: Place, options: Options) -> WorkerState:
    """The worker at `place`, connected and prepared; on a GPU it shares the first one with the others."""
    if place.world > 1:
        connect(place, options.timeout, "gloo")
    device = torch.device("cpu") if options.device == "cpu" else torch.device("cuda", 0)
    return prepare(options, place, device, DatasetCache())


def trained(place: Place, options: Options) -> RankRecord:
    """Train `options.iterations` and tell all."""
    ready = ready_at(place, options)
    result = RankRecord(inner=ready.share.part.inner.copy(), boundary=ready.share.part.boundary.copy())
    if ready.method.exchange is not None:
        _watch(ready, result)
    if isinstance(ready.method, BlockWorker):
        _watch_blocks(ready, ready.method.sums, result)
    _watch_inputs(ready, result)
    hits = count = 0
    for t in range(options.iterations):
        result.weights.append(_weights(ready))
        result.used.append({})
        result.inputs.append([])
        sums, drawn = ready.trainer.iteration(t, LocalSums())
        assert sums.loss is not None
        result.losses.append(sums.loss)
        result.gradients.append({name: _array(weight.grad) for name, weight in ready.network.named_parameters()})
        hits, count = hits + drawn.hits, count + drawn.rows
        if ready.trainer.measured is not None:
            result.norms.append(_array(ready.trainer.measured))
    ready.method.drain()
    result.weights.append(_weights(ready))
    assert ready.evaluator is not None
    result.logits = _array(ready.evaluator.logits(ready.network, ready.trainer.x, ready.trainer.fixed))
    result.sent, result.asked = ready.method.bytes_sent(), (hits, count)
    result.expected_rows = float(ready.method.inclusion().sum(dtype=np.float64))
    ready.method.close()
    return result


def final_weights(place: Place, options: Options) -> bytes:
    """The bytes of all weights after the run."""
    ready = ready_at(place, options)
    for t in range(options.iterations):
        ready.trainer.iteration(t, LocalSums())
    ready.method.drain()
    ready.method.close()
    return b"".join(weight.tobytes() for weight in _weights(ready).values())


def _watch(ready: WorkerState, rank_record: RankRecord) -> None:
    """Keep a copy of every boundary row that a layer reads."""
    exchange = ready.method.exchange
    assert exchange is not None
    read = exchange.rows

    def rows(t: int, layer: int, graph: SampledGraph) -> Tensor:
        found = read(t, layer, graph)
        rank_record.used[t][layer] = graph.needed.copy(), _array(found)
        return found

    exchange.rows = rows  # type: ignore[method-assign]


def _watch_blocks(ready: WorkerState, sums: BlockSums, rank_record: RankRecord) -> None:
    """Keep a copy of every row of other workers that a layer multiplies, forward, and the global ids of these rows."""
    read = sums.block
    held = ready.held.part
    owner = Replicas(ready.place.world, ready.place.world // held.parts).merged(ready.partitioning).owner
    others = [np.setdiff1d(np.flatnonzero(owner == block), held.inner) for block in range(held.parts)]

    def kept(t: int, layer: int, direction: Direction, block: int, own: Tensor, *, fetch: bool) -> Tensor:
        found = read(t, layer, direction, block, own, fetch=fetch)
        if direction is Direction.FORWARD and others[block].size:
            index, rows = rank_record.used[t].get(layer, (np.zeros(0, np.int64), np.zeros((0, found.shape[1]))))
            rank_record.used[t][layer] = np.append(index, others[block]), np.concatenate([rows, _array(found)])
        return found

    sums.block = kept  # type: ignore[method-assign]


def _watch_inputs(ready: WorkerState, rank_record: RankRecord) -> None:
    """Keep every layer's inner input rows."""
    forward = ready.network.forward

    def noted(x: Tensor, boundaries: Any, seen: Any = None) -> Tensor:
        def keep(layer: int, given: Tensor, out: Tensor) -> Tensor:
            rank_record.inputs[-1].append(_array(given))
            result: Tensor = seen(layer, given, out)
            return result

        return forward(x, boundaries, keep if seen is not None else None)

    ready.network.forward = noted  # type: ignore[method-assign]


def _weights(ready: WorkerState) -> dict[str, AnyArray]:
    return {name: _array(weight) for name, weight in ready.network.named_parameters()}


def _array(tensor: Tensor | None) -> AnyArray:
    assert tensor is not None
    return tensor.detach().cpu().numpy().copy()
