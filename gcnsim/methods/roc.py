"""ROC (`roc`): the whole graph lives in the servers' memory, and each layer's piece is swapped to a GPU and back.

Source: ROC, as PipeGCN (Table 6) compares with it; what its tables print as communication is that swapping, and they
print no time for an all-reduce, so there is none: compared with the others, its iteration lacks it. In the released
code the replicas' gradients are copied to one GPU, added and stepped there; that would be as many times the weights'
bytes over PCIe as there are workers, below a millisecond at the sizes of Table 6. Readings:
- rows meet the weights before they are summed, as in the released code: sums go at a layer's output width, backward in
  the first layer too;
- forward, a worker's inner rows come in and go out transformed; when all workers' have, those of inner and boundary
  nodes come in with the entries of its rows (column and value), are summed, and its inner rows go out;
- backward, the gradients of inner and boundary rows come in with the entries and are summed, the layer's input comes in
  for the weights' gradient, and the input's gradient goes out;
- nothing overlaps: a worker copies, computes, copies. Entries travel with each sum: a released memory manager keeps
  what fits, which would be nothing of a graph of Reddit's size beside the activations. Chosen by the fit of Table 6;
- rows of boundary nodes that another server owns come over the network;
- its release is compiled code, so `implementation: released` has no calls of a Python framework.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gcnsim.core.ids import Bytes, Layer, Rank
from gcnsim.cost import (
    Memory,
    issued,
    layer_cost,
    loss_seconds,
    row_bytes,
    spmm_seconds,
    step_seconds,
    swapped_host_bytes,
    swapped_memory,
)
from gcnsim.cost.device import INDEX, VALUE
from gcnsim.methods.method import Facts, Method
from gcnsim.schedule import Builder, Dependency, Schedule
from gcnsim.timeline import Direction, OpKind
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import LayerShape

FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


@dataclass(frozen=True, slots=True, kw_only=True)
class Roc(Method):
    """Every edge, synchronous, swapped."""

    name: ClassVar[str] = "roc"
    about: ClassVar[str] = "graph and rows in host memory, swapped to the GPU layer by layer"
    uses: ClassVar[frozenset[str]] = frozenset({"implementation"})
    random_partition: ClassVar[bool] = True
    trained: ClassVar[bool] = False

    def schedule(self, facts: Facts) -> Schedule:
        """Copy in, compute, copy out."""
        return SwapWriter(self.name, facts).write()

    def memory(
        self, counts: AccessCounts, shapes: tuple[LayerShape, ...], *, norm: bool, payload: str
    ) -> tuple[Memory, ...] | None:
        """The memory of each worker: the largest step of a layer; None with attention."""
        if any(shape.heads for shape in shapes):
            return None
        inner, rows, entries = _part(counts)
        return tuple(swapped_memory(shapes, *one) for one in zip(inner, rows, entries, strict=True))

    def host_bytes(self, counts: AccessCounts, shapes: tuple[LayerShape, ...], per_server: int) -> Bytes:
        """Bytes of swapped data in the fullest server's memory."""
        inner, _, entries = _part(counts)
        parts = [swapped_host_bytes(shapes, *one) for one in zip(inner, entries, strict=True)]
        return max(sum(parts[first : first + per_server]) for first in range(0, len(parts), per_server))


def _part(counts: AccessCounts) -> tuple[list[int], list[int], list[int]]:
    """Per worker: inner nodes, boundary rows that its sums read, stored entries of its rows with self-loops."""
    rows = counts.rows.mean(axis=0).sum(axis=1).round().astype(int)
    return counts.inner_nodes.tolist(), rows.tolist(), (counts.entries + counts.inner_nodes).tolist()


class SwapWriter:
    """Builds the schedule."""

    def __init__(self, name: str, facts: Facts) -> None:
        self.facts = facts
        self.workers = range(facts.cluster.gpus)
        self.builder = Builder(name, facts.cluster, 1)
        counts = facts.counts
        self.inner = counts.inner_nodes
        self.rows = counts.rows.mean(axis=0)
        """rows[n, m]: rows that n needs of m's."""
        self.entries = (counts.inner_edges + counts.boundary_edges).mean(axis=0) + counts.inner_nodes
        self.costs = [
            [
                layer_cost(
                    facts.device_of(rank),
                    shape,
                    first=layer == 0,
                    inner=int(self.inner[rank]),
                    entries=self.entries[rank : rank + 1].astype(np.int64),
                    boundary_rows=self.rows[rank].sum(keepdims=True).astype(np.int64),
                    norm=facts.norm,
                    last=layer + 1 == len(facts.shapes),
                    dropout=facts.dropout,
                )
                for layer, shape in enumerate(facts.shapes)
            ]
            for rank in self.workers
        ]

    def write(self) -> Schedule:
        """Build the schedule."""
        facts = self.facts
        for layer, shape in enumerate(facts.shapes):
            gone: list[Dependency] = []
            for rank in self.workers:
                self._bring(rank, self._own(rank, shape.d_in), [], layer, FORWARD)
                seconds = issued(OpKind.UPDATE, self.costs[rank][layer].update, facts.call_s)
                self.builder.compute(OpKind.UPDATE, rank, seconds, layer=layer, direction=FORWARD)
                gone.append(self._put(rank, self._own(rank, shape.d_out), layer, FORWARD))
            if shape.gathers:
                for rank in self.workers:
                    self._sum(rank, gone, layer, FORWARD)
                    self._put(rank, self._own(rank, shape.d_out), layer, FORWARD)
        made: list[Dependency] = []
        for rank in self.workers:
            seconds = loss_seconds(facts.device_of(rank), int(self.inner[rank]), facts.shapes[-1].d_out)
            self.builder.compute(OpKind.LOSS, rank, issued(OpKind.LOSS, seconds, facts.call_s))
            made.append(self._put(rank, self._own(rank, facts.shapes[-1].d_out), len(facts.shapes) - 1, BACKWARD))
        for layer in reversed(range(len(facts.shapes))):
            made = self._backward(layer, made)
        steps = []
        for rank in self.workers:
            seconds = issued(OpKind.STEP, step_seconds(facts.device_of(rank), facts.shapes), facts.call_s)
            steps.append(self.builder.compute(OpKind.STEP, rank, seconds))
        return self.builder.close(steps)

    def _backward(self, layer: Layer, made: list[Dependency]) -> list[Dependency]:
        """One layer's backward pass. made: per worker, the op that stored its output's gradient. Returns the same for
        its input.
        """
        shape = self.facts.shapes[layer]
        gone: list[Dependency] = []
        for rank in self.workers:
            if shape.gathers:
                self._sum(rank, made, layer, BACKWARD)
            else:
                self._bring(rank, self._own(rank, shape.d_out), [], layer, BACKWARD)
            self._bring(rank, self._own(rank, shape.d_in), [], layer, BACKWARD)
            seconds = issued(OpKind.UPDATE, self.costs[rank][layer].update_backward, self.facts.call_s)
            self.builder.compute(OpKind.UPDATE, rank, seconds, layer=layer, direction=BACKWARD)
            if layer:
                gone.append(self._put(rank, self._own(rank, shape.d_in), layer, BACKWARD))
        return gone

    def _sum(self, rank: Rank, ready: list[Dependency], layer: Layer, direction: Direction) -> None:
        """Load the data of a worker's sum and compute it, at the layer's output width. ready: the ops that stored its
        rows.
        """
        width, inner = self.facts.shapes[layer].d_out, int(self.inner[rank])
        self._bring_piece(rank, width, ready, layer, direction)
        every = inner + float(self.rows[rank].sum())
        seconds = spmm_seconds(self.facts.device_of(rank), float(self.entries[rank]), inner, width, every)
        seconds = issued(OpKind.AGGREGATE, seconds, self.facts.call_s)
        self.builder.compute(OpKind.AGGREGATE, rank, seconds, layer=layer, direction=direction)

    def _own(self, rank: Rank, width: int) -> Bytes:
        """Bytes of a worker's inner rows."""
        return float(row_bytes(self.inner[rank], width))

    def _bring_piece(self, rank: Rank, width: int, ready: list[Dependency], layer: Layer, direction: Direction) -> None:
        """Load all rows that a worker's sum reads, and the entries of its rows. ready: the ops that computed them."""
        server = np.array(self.facts.cluster.server_of)
        here = server == server[rank]
        near = float(row_bytes(self.rows[rank, here].sum(), width))
        graph = float(self.entries[rank]) * (INDEX + VALUE)
        far: list[Dependency] = [
            self.builder.flow(
                OpKind.WIRE,
                peer,
                row_bytes(self.rows[rank, peer], width),
                self.facts.cluster.between(peer, rank),
                stream=f"far.tx{rank}",
                after=[*ready, *self._begun(rank)],
                layer=layer,
                direction=direction,
                peer=rank,
            )
            for peer in np.flatnonzero(~here).tolist()
        ]
        across = float(row_bytes(self.rows[rank, ~here].sum(), width))
        self._bring(rank, self._own(rank, width) + near + graph + across, [*ready, *far], layer, direction)

    def _begun(self, rank: Rank) -> list[Dependency]:
        """The op that a worker's next copy waits for: all its computation so far."""
        return [self.builder.compute(OpKind.SCATTER, rank, 0.0)]

    def _bring(self, rank: Rank, nbytes: Bytes, ready: list[Dependency], layer: Layer, direction: Direction) -> None:
        """Copy to the GPU once `ready` have ended and the worker has finished its earlier computation; the worker
        waits.
        """
        route, after = self.facts.cluster.to_device(rank), [*ready, *self._begun(rank)]
        copied = self.builder.flow(
            OpKind.H2D, rank, nbytes, route, stream="swap", after=after, layer=layer, direction=direction
        )
        self.builder.compute(OpKind.SCATTER, rank, 0.0, after=[copied], layer=layer, direction=direction)

    def _put(self, rank: Rank, nbytes: Bytes, layer: Layer, direction: Direction) -> int:
        """Copy back to host memory; the worker and all readers wait for it."""
        route = self.facts.cluster.to_host(rank)
        copied = self.builder.flow(
            OpKind.D2H, rank, nbytes, route, stream="swap", after=self._begun(rank), layer=layer, direction=direction
        )
        return self.builder.compute(OpKind.SCATTER, rank, 0.0, after=[copied], layer=layer, direction=direction)
