"""What a worker's GPU holds: bytes by component, and whether they fit.

The split follows the training runtime, whose tensors these are, and BNS-GCN's Eq. 4, (3 n_in + n_bd) d_l values a
layer: the sum's input (n_in + n_bd), what meets the weights beside it (2 n_in). Here the input's inner rows are the
output of the layer before, so a layer holds n_in d_l for its sum, n_in d_(l+1) for its output, and the boundary's rows
in buffers: one outgoing and one incoming for each direction, layer and slot of the staleness ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from gcnsim.cost.device import INDEX, VALUE
from gcnsim.cost.layers import parameters
from gcnsim.cost.payload import payload_width
from gcnsim.ids import Bytes
from gcnsim.timeline import Direction
from gcnsim.workload import LayerShape

ENTRY: Final = 2 * (INDEX + VALUE) + 8
"""Bytes of a stored entry: column and weight of the matrix and of its transpose, and an 8-byte place between both."""

ID: Final = 8
"""Bytes of a label and of a local id that a row is gathered by."""

SLACK: Final = 1.125
"""A buffer grows to an eighth more than what it must hold, so that the next graph need not grow it again."""

MOMENTS: Final = 2
"""Adam keeps two values for each parameter."""

RESERVED: Final = 1e9
"""Bytes of a GPU that no tensor gets: context, libraries and fragments. Assumed; PaGraph leaves as much free."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that one worker's GPU holds at the peak of an iteration.

    features: input rows and labels. adjacency: matrices with their transposes. activations: what the backward pass
    needs. boundary: rows and gradients of others, on their way and waiting. cache: input rows kept. workspace: of the
    pass that needs most, and logits.
    """

    features: Bytes
    adjacency: Bytes
    activations: Bytes
    boundary: Bytes
    cache: Bytes
    model: Bytes
    gradients: Bytes
    optimizer: Bytes
    workspace: Bytes

    @property
    def total(self) -> Bytes:
        """All of it."""
        return float(sum(getattr(self, field.name) for field in fields(self)))

    @property
    def held(self) -> Bytes:
        """What outlives a pass: all but the workspace."""
        return self.total - self.workspace

    def fits(self, capacity: Bytes) -> bool:
        """Whether a device of `capacity` bytes holds it beside what it reserves."""
        return self.total + RESERVED <= capacity


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """What one worker keeps, as counts.

    inner: its nodes. entries: stored entries of its rows, self-loops included, crossing ones of them. boundary: nodes
    it borders on. rows, asked: boundary rows that a trained graph needs, and that others need of it, at most. kept,
    kept_crossing: entries of a drawn graph, at most. graphs: drawn graphs in use at once. cached: rows. tau: slots.
    """

    inner: int
    entries: int
    crossing: int
    boundary: int
    rows: int
    asked: int
    kept: int = 0
    kept_crossing: int = 0
    graphs: int = 0
    cached: int = 0
    tau: int = 0


def partition_memory(
    shapes: Sequence[LayerShape],
    held: MemoryCounts,
    *,
    norm: bool,
    averages: Sequence[Direction] = (),
    payload: str = "fp32",
) -> Memory:
    """What a worker of a partition-parallel method holds.

    norm: a LayerNorm follows each hidden layer and keeps its input. averages: directions in which what is received
    enters a moving average (PipeGCN's smoothing). payload: how boundary rows travel, and lie in their buffers.
    """
    weights, inner = parameters(tuple(shapes)), held.inner
    sums = sum(shape.d_in for shape in shapes if shape.gathers) + (0 if shapes[0].gathers else shapes[0].d_in)
    hidden = sum(shape.d_out for shape in shapes[:-1]) * (2 if norm else 1)
    widest = max(shape.d_in for shape in shapes[1:] or shapes)
    return Memory(
        features=inner * (VALUE * shapes[0].d_in + ID),
        adjacency=_adjacency(held),
        activations=VALUE * inner * (sums + hidden),
        boundary=_buffers(shapes, held, payload) + _averages(shapes, held, averages),
        cache=VALUE * held.cached * shapes[0].d_in,
        model=VALUE * weights,
        gradients=VALUE * weights,
        optimizer=VALUE * MOMENTS * weights,
        workspace=VALUE * inner * (2 * widest + 3 * shapes[-1].d_out) + _unpacked(shapes, held, payload),
    )


def _adjacency(held: MemoryCounts) -> Bytes:
    """The whole graph's two blocks, and those of each drawn graph in use with the ids that others ask for."""

    def block(entries: int, rows: int, columns: int) -> int:
        return entries * ENTRY + (rows + columns + 2) * INDEX

    inner = block(held.entries - held.crossing, held.inner, held.inner)
    whole = inner + (block(held.crossing, held.inner, held.boundary) if held.boundary else 0)
    drawn = block(held.kept_crossing, held.inner, held.rows) + ID * held.asked
    if held.kept:
        drawn += block(held.kept - held.kept_crossing, held.inner, held.inner)
    return whole + held.graphs * drawn


def _widths(shapes: Sequence[LayerShape]) -> tuple[int, int]:
    """Sums of the widths whose rows travel forward, and backward."""
    return sum(s.d_in for s in shapes if s.gathers), sum(s.d_in for s in shapes[1:] if s.gathers)


def _buffers(shapes: Sequence[LayerShape], held: MemoryCounts, payload: str) -> Bytes:
    """A buffer for what leaves and one for what comes, per direction, layer and slot, of rows as they travel."""
    exchanging = [*(s for s in shapes if s.gathers), *(s for s in shapes[1:] if s.gathers)]
    row = sum(payload_width(shape.d_in, payload) for shape in exchanging)
    return SLACK * max(held.tau, 1) * (held.rows + held.asked) * row


def _unpacked(shapes: Sequence[LayerShape], held: MemoryCounts, payload: str) -> Bytes:
    """One layer's rows or gradients in fp32, after they came or before they leave; none where they travel as such."""
    widest = max((shape.d_in for shape in shapes if shape.gathers), default=0)
    return 0 if payload == "fp32" else VALUE * held.rows * widest


def _averages(shapes: Sequence[LayerShape], held: MemoryCounts, directions: Sequence[Direction]) -> Bytes:
    """One value for each that a worker receives: the rows it needs, the gradients of the rows that it gives."""
    forward, backward = _widths(shapes)
    values = {Direction.FORWARD: held.rows * forward, Direction.BACKWARD: held.asked * backward}
    return VALUE * sum(values[direction] for direction in directions)
