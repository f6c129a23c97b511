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
    """One worker's mean iteration, in seconds.

    compute_s: its kernels. Exposed communication: handling_s, received rows are taken in; network_s, a message of rows
    from or to it is under way; copies_s, rows are packed or copied between device and host; reduce_s, the all-reduce;
    waiting_s, none of these: a peer is not as far. The rest: exposed_sampling_s, optimizer_s, rest_s. hidden_comm_s:
    its transfers beneath other work, no part of the iteration.
    """

    worker: Rank
    compute_s: Seconds
    handling_s: Seconds
    network_s: Seconds
    copies_s: Seconds
    reduce_s: Seconds
    waiting_s: Seconds
    exposed_sampling_s: Seconds
    optimizer_s: Seconds
    rest_s: Seconds
    hidden_comm_s: Seconds


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
