"""The parts of an iteration: their names, and one worker's in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gcnsim.ids import Rank, Seconds

EXPOSED: Final = ("handling", "network", "copies", "reduce", "waiting")
"""Parts that are exposed communication, by name."""

OTHER: Final = ("exposed_sampling", "optimizer", "rest")
"""Parts that are neither computation nor communication, by name."""

HIDDEN: Final = "hidden_comm"
"""Beside the parts, none of them."""


@dataclass(frozen=True, slots=True)
class Parts:
    """A worker's mean iteration. All but hidden_comm_s add up to it; handling_s to waiting_s are exposed
    communication."""

    worker: Rank
    compute_s: Seconds
    """Its kernels."""
    handling_s: Seconds
    """Received rows are taken in."""
    network_s: Seconds
    """A message of rows from or to it is under way."""
    copies_s: Seconds
    """Rows are packed or copied between device and host."""
    reduce_s: Seconds
    """The all-reduce."""
    waiting_s: Seconds
    """None of these: a peer is not as far."""
    exposed_sampling_s: Seconds
    """Sampling that it waits for."""
    optimizer_s: Seconds
    rest_s: Seconds
    hidden_comm_s: Seconds
    """Its transfers beneath other work."""


def exposed_s(parts: Parts) -> Seconds:
    """Exposed communication."""
    return _sum(parts, EXPOSED)


def other_s(parts: Parts) -> Seconds:
    """What is neither computation nor communication."""
    return _sum(parts, OTHER)


def iteration_s(parts: Parts) -> Seconds:
    """The whole iteration."""
    return _sum(parts, ("compute", *EXPOSED, *OTHER))


def _sum(parts: Parts, names: Sequence[str]) -> Seconds:
    seconds: list[Seconds] = [getattr(parts, f"{name}_s") for name in names]
    return sum(seconds)
