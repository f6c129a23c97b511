"""The ops of workers on GPUs, as blocks over all workers: kernels at their devices' rates, and copies.

Each of P workers has separate sizes, and may have a separate device; a kernel is one block of P ops.

Kernels take longer during transfers: overlap has a cost. In pipelined training, transfers are active during
computation; so they are in synchronous training that aggregates its inner columns meanwhile. Kernels then share the
device's memory with copies and pack kernels, and the host's threads with those that send and receive. One number
represents all of that: the relative speed of a GPU during transfers. It applies for as long as transfers are active in
an iteration. In synchronous training, only the transfers of a layer during the sum of its inner columns count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray, Layer
from gcnsim.cost import (
    LayerCost,
    attention_cost,
    host_bound,
    layer_cost,
    longest_row,
    loss_seconds,
    payload_width,
    spmm_seconds,
    with_host_calls,
)
from gcnsim.hardware import DeviceProfile, Figure, HostProfile
from gcnsim.methods.method import CENTRAL, Facts, Method
from gcnsim.schedule import COMPUTE_STREAM, Builder, Waits
from gcnsim.timeline import Direction, OpKind
from gcnsim.workload import NO_DROPOUT, LayerShape

TAG = {Direction.FORWARD: "f", Direction.BACKWARD: "b"}
"""Streams of the forward and the backward thread."""

Profile = TypeVar("Profile", DeviceProfile, HostProfile)

Ranks = slice | IntArray
"""Some of the workers, or all: the last axis of per-worker arrays."""


class GpuOps:
    """The ops of `method` for workers on GPUs, added to a builder."""

    def __init__(self, method: Method, facts: Facts) -> None:
        self.method = method
        self.tau = method.tau
        self.facts = facts
        self.builder = Builder(method.name, facts.cluster, facts.counts.iterations)
        self.size = facts.cluster.gpus
        self.workers = range(self.size)
        self.ranks: IntArray = np.arange(self.size, dtype=np.int64)
        self.exchanges = self.size > 1
        self.beneath = method.overlap == CENTRAL and not self.tau and self.exchanges
        """Whether inner columns are aggregated during this iteration's transfers, boundary columns after them."""
        self.first: list[IntArray] = []
        """Ops off the compute stream, int64[P], that wait for the end of the worker's previous iteration."""
        self.first_messages: list[tuple[IntArray, IntArray]] = []
        """Messages and their receivers that wait for the end of the receiver's previous iteration."""
        counts = facts.counts
        self.inner = counts.inner_nodes
        self.kept = counts.inner_edges + counts.boundary_edges
        """Stored entries of the graphs, int64[T, P], without self-loops."""
        self.trained = counts.rows
        """rows[t, n, m] of the graph trained in iteration t."""
        self.ahead = facts.ahead(counts.rows, self.tau)
        """The rows of the graph whose transfer starts in iteration t."""
        self.gathering = next((layer for layer, shape in enumerate(facts.shapes) if shape.exchanges), 0)
        """The first layer that exchanges rows: its rows leave as soon as the requests are known."""

    @property
    def costs(self) -> list[LayerCost]:
        """The kernels of each layer, float64[T, P] each."""
        return self._with_calls[0]

    @property
    def loss(self) -> FloatArray:
        """Seconds of the loss and its gradient, float64[T, P]."""
        return self._with_calls[1]

    @cached_property
    def _with_calls(self) -> tuple[list[LayerCost], FloatArray]:
        """Layers and loss with what the host takes longer than the GPU."""
        classes = self.facts.shapes[-1].d_out
        loss = self.on_devices(lambda device, ranks: loss_seconds(device, self.inner[ranks], classes))
        if self.facts.released:
            return [host_bound(cost, self.host.operation_s.value) for cost in self._kernels], loss
        waits = self.exchanges and not self.tau
        call_s, shapes, norm = self.host.call_s.value, self.facts.shapes, self.facts.norm
        return with_host_calls(self._kernels, loss, call_s, shapes, norm=norm, waits_in_layers=waits)

    @cached_property
    def _kernels(self) -> list[LayerCost]:
        """The kernels of each layer, beside transfers if there are any."""
        costs = [self.layer_cost(layer) for layer in range(len(self.facts.shapes))]
        factor = slowdown(self.facts, np.sum([cost.seconds for cost in costs], axis=0), stale=self.tau > 0)
        return [cost.slowed(factor) for cost in costs]

    @cached_property
    def host(self) -> HostProfile:
        """The host, with figures by graph as columns."""
        return by_graph(self.facts.host)

    def layer_cost(self, layer: Layer) -> LayerCost:
        """The kernels of a layer, float64[T, P] each, without concurrent transfers."""
        shape = self.facts.shapes[layer]
        law = self._attention if shape.heads else partial(layer_cost, released=self.facts.released)
        rows, entries = self.trained.sum(axis=2), self.kept + self.inner
        each = [
            law(
                device,
                shape,
                first=layer == 0,
                inner=self.inner[ranks],
                entries=entries[:, ranks],
                boundary_rows=rows[:, ranks],
                norm=self.facts.norm,
                last=layer + 1 == len(self.facts.shapes),
                dropout=self.facts.dropout,
            )
            for device, ranks in self.devices
        ]
        parts = (self.joined([getattr(cost, field.name) for cost in each]) for field in fields(LayerCost))
        cost = LayerCost(*parts)
        return cost if shape.gathers else cost.dense

    def _attention(
        self, device: DeviceProfile, shape: LayerShape, *, inner: IntArray, entries: IntArray, **more: Any
    ) -> LayerCost:
        """The same as `attention_cost`, for some workers. A row has no more entries than there are columns."""
        longest = longest_row(entries, inner, self.facts.degree_spread, inner + more["boundary_rows"])
        dropped = self.facts.released and self.facts.dropout != NO_DROPOUT
        return attention_cost(
            device,
            shape,
            inner=inner,
            entries=entries,
            longest=longest,
            weight_dropout=dropped,
            own_again=self.facts.released,
            **more,
        )

    @cached_property
    def devices(self) -> list[tuple[DeviceProfile, Ranks]]:
        """Each device with the workers that have it."""
        if not self.facts.devices:
            return [(by_graph(self.facts.device), slice(None))]
        names = [device.name for device in self.facts.devices]
        found = [(names.index(name), np.flatnonzero([own == name for own in names])) for name in dict.fromkeys(names)]
        return [(by_graph(self.facts.devices[first]), ranks) for first, ranks in found]

    def joined(self, parts: list[FloatArray]) -> FloatArray:
        """Values for the workers of each of `devices`, combined: float64[T, P], or broadcastable to it."""
        if len(parts) == 1:
            return parts[0]
        found = np.empty(self.kept.shape)
        for (_, ranks), part in zip(self.devices, parts, strict=True):
            found[:, ranks] = part
        return found

    def on_devices(self, seconds: Callable[[DeviceProfile, Ranks], FloatArray]) -> FloatArray:
        """Seconds of a kernel on every worker's device, float64[T, P]."""
        return self.joined([seconds(device, ranks) for device, ranks in self.devices])

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """Every worker and its peers, int64[P, P - 1] each. A worker writes to its peers from the next one on: in
        ascending order all would begin with the same receiver."""
        peers = (self.ranks[:, None] + np.arange(1, self.size)) % self.size
        return np.repeat(self.ranks, self.size - 1).reshape(peers.shape), peers

    @property
    def staged(self) -> BoolArray:
        """bool[P, P]: whether rows from one worker to another are copied to the host first."""
        return self.facts.cluster.staged

    @cached_property
    def direct_ways(self) -> IntArray:
        """int64[P, P]: the ways from GPU to GPU, -1 if rows are copied to the host."""
        found = np.full(self.staged.shape, -1, np.int64)
        for rank in self.workers:
            for peer in [*range(rank + 1, self.size), *range(rank)]:
                if not self.staged[rank, peer]:
                    found[rank, peer] = self.builder.way(self.facts.cluster.direct(rank, peer))
        return found

    @cached_property
    def to_host(self) -> IntArray:
        """Per worker, the way of its copies to the host, int64[P]."""
        return self.builder.ways(self.facts.cluster.to_host(rank) for rank in self.workers)

    @cached_property
    def to_device(self) -> IntArray:
        """Per worker, the way of its copies from the host, int64[P]."""
        return self.builder.ways(self.facts.cluster.to_device(rank) for rank in self.workers)

    def compute(
        self,
        kind: OpKind,
        seconds: FloatArray,
        layer: Layer = -1,
        direction: Direction = Direction.NONE,
        *,
        at: IntArray | None = None,
        after: list[Waits] | None = None,
        stream: str = COMPUTE_STREAM,
    ) -> IntArray:
        """A kernel of every worker, int64[P]; seconds: float64[T, P]."""
        return self.builder.block(
            kind, self.ranks, seconds, at=at, after=after or (), stream=stream, layer=layer, direction=direction
        )

    def held(self, layer: Layer) -> tuple[IntArray, IntArray]:
        """Rows of a layer that each worker gathers from its cache, int64[T, P], and the workers that do.

        Permanently cached rows are stored next to the inner ones, so they are gathered only if some are sampled.
        """
        counts, none = self.facts.counts, np.empty(0, np.int64)
        if self.facts.shapes[layer].keeps:
            sampled = self.exchanges and not self.method.sampling().whole
            return self.trained.sum(axis=2), np.flatnonzero(counts.boundary_nodes) if sampled else none
        return counts.hits.sum(axis=2), none if layer else np.flatnonzero(counts.cached_rows)

    def inner_sum(self, layer: Layer, direction: Direction) -> FloatArray:
        """Seconds of the sum over inner columns only, during the layer's transfer of that direction."""
        width, entries = self.facts.shapes[layer].d_in, self.facts.counts.inner_edges + self.inner
        alone = self.on_devices(
            lambda device, ranks: spmm_seconds(device, entries[:, ranks], self.inner[ranks], width, self.inner[ranks])
        )
        return slowed_beneath(self.facts, layer, direction, alone)

    def cross_sum(self, width: int, *, back: bool = False) -> FloatArray:
        """Seconds of the sum over boundary columns only; back: to the boundary's gradients."""
        outer, inner = self.trained.sum(axis=2), np.broadcast_to(self.inner, self.kept.shape)
        written, gathered = (outer, inner) if back else (inner, outer)
        entries = self.facts.counts.boundary_edges
        seconds = self.on_devices(
            lambda device, ranks: spmm_seconds(device, entries[:, ranks], written[:, ranks], width, gathered[:, ranks])
        )
        return np.where(entries > 0, seconds, 0.0)

    def copy(
        self,
        kind: OpKind,
        ranks: IntArray,
        nbytes: FloatArray,
        after: list[Waits],
        layer: Layer,
        direction: Direction,
        at: IntArray | None,
    ) -> IntArray:
        """Copies between the GPUs of `ranks` and their hosts, in a separate stream."""
        return self.builder.block(
            kind,
            ranks,
            nbytes,
            at=at,
            after=after,
            stream=f"{TAG[direction]}.{kind}",
            ways=(self.to_host if kind is OpKind.D2H else self.to_device)[ranks],
            layer=layer,
            direction=direction,
        )


def by_graph(profile: Profile) -> Profile:
    """`profile` with per-graph figures, float64[T], as columns, float64[T, 1], because workers are the second axis."""
    found: dict[str, Any] = {}
    for field in fields(profile):
        figure: Any = getattr(profile, field.name)
        values: Any = figure.value if isinstance(figure, Figure) else 0.0
        if np.ndim(values):
            found[field.name] = replace(figure, value=values[:, None])
    return replace(profile, **found) if found else profile


def slowdown(facts: Facts, compute: FloatArray, *, stale: bool) -> FloatArray:
    """The factor on the workers' kernels, float64[T, P].

    compute: their seconds per iteration without transfers. stale: whether they read rows of earlier iterations, so that
    transfers overlap them. The factor is 1 without a pipeline. Transfers are active for at least the time of their
    busiest link. The GPU works at `rate_beside_copies` for that time, or all the time if transfers take longer than
    kernels.
    """
    if not stale or facts.cluster.gpus < 2:
        return np.ones_like(compute)
    layers = [layer for layer, shape in enumerate(facts.shapes) if shape.exchanges]
    moving = transfer_seconds(facts, layers, [layer for layer in layers if layer])
    return _slower(facts, compute, moving)


def slowed_beneath(facts: Facts, layer: Layer, direction: Direction, seconds: FloatArray) -> FloatArray:
    """Seconds of a sum during the transfer of one layer, float64[T, P]; seconds: without the transfer."""
    forward, backward = ([layer], []) if direction is Direction.FORWARD else ([], [layer])
    return seconds * _slower(facts, seconds, transfer_seconds(facts, forward, backward))


def _slower(facts: Facts, compute: FloatArray, moving: FloatArray) -> FloatArray:
    loss = 1.0 / facts.rate_beside_copies - 1.0
    return np.asarray(1.0 + loss * np.minimum(1.0, moving / np.maximum(compute, 1e-12)))


def transfer_seconds(facts: Facts, forward: Sequence[Layer], backward: Sequence[Layer]) -> FloatArray:
    """The least seconds per iteration in which each worker's rows of these layers cross its busiest link, float64[T,
    P].

    The links are its copies down and up, its host side, and the NIC it shares with the workers of its server.
    """
    cluster, rows, hits = facts.cluster, facts.counts.rows, facts.counts.hits
    first = [layer for layer in forward if layer == 0]

    def weigh(layers: Sequence[Layer]) -> int:
        return sum(payload_width(facts.shapes[layer].d_in, facts.payload) for layer in layers)

    requested = rows * weigh(forward) - hits * weigh(first)
    returned = rows * weigh(backward)
    moved = requested.transpose(0, 2, 1) + returned
    """moved[t, n, m]: bytes from n to m."""
    out, into = moved.sum(axis=2), moved.sum(axis=1)

    def capacity(routes: Iterable[tuple[int, ...]]) -> FloatArray:
        return np.array([min(cluster.links[link].spec.capacity for link in route) for route in routes])

    ranks = range(cluster.gpus)
    busy = [out / capacity(map(cluster.to_host, ranks)), into / capacity(map(cluster.to_device, ranks))]
    if cluster.staging:
        busy.append((out + into) / np.array([cluster.links[link].spec.capacity for link in cluster.staging]))
    if cluster.servers > 1:
        server = np.array(cluster.server_of)
        begins = np.flatnonzero(np.diff(server, prepend=-1))
        # Ranks of a server are consecutive; any other server is reached by the same NIC.
        by_server = np.add.reduceat(moved, begins, axis=1)
        by_server = np.add.reduceat(by_server, begins, axis=2)
        away = 1 - np.eye(cluster.servers, dtype=np.int64)
        share = capacity(cluster.route(f"host{item}", f"host{0 if item else 1}") for item in range(cluster.servers))
        busy += [((by_server * away).sum(axis=axis) / share)[:, server] for axis in (2, 1)]
    return np.asarray(np.max(busy, axis=0), dtype=np.float64)
