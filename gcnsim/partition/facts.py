"""A partition in a few numbers: how even the parts are, what crosses between them, where training nodes lie.

Some partitions make an answer that rests on them worthless; `partition_warnings` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gcnsim.ids import BoolArray
from gcnsim.partition.parts import Part, Partitioning


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, least and most over the parts."""

    mean: float
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The summary of a split graph."""

    parts: int
    nodes: int
    inner: Spread
    boundary: Spread
    balance: float
    """Inner nodes of the largest part over the mean: 1 when all are equal."""
    entry_balance: float
    """The same of the stored entries of the parts' rows, which a worker's aggregation goes by."""
    boundary_per_inner: float
    """Sum of |B_n| over sum of |I_n|."""
    replication: float
    """Copies held per node, the owner's included: (sum of |I_n| + |B_n|) / N."""
    cut_entries: int
    """Stored entries whose ends have different owners: twice the edges cut."""
    communication_volume: int
    """Sum of |B_n|: rows that all workers receive for one layer (BNS-GCN, Eq. 3)."""


def partition_facts(parts: Sequence[Part]) -> PartitionFacts:
    """The summary of all workers' parts, as `split` returns them."""
    inner = [part.inner_nodes for part in parts]
    boundary = [part.boundary_nodes for part in parts]
    entries = [part.entries for part in parts]
    nodes, volume = sum(inner), sum(boundary)
    return PartitionFacts(
        parts=len(parts),
        nodes=nodes,
        inner=spread_of(inner),
        boundary=spread_of(boundary),
        balance=max(inner) * len(parts) / nodes,
        entry_balance=max(entries) * len(parts) / max(sum(entries), 1),
        boundary_per_inner=volume / nodes,
        replication=(nodes + volume) / nodes,
        cut_entries=sum(int(np.count_nonzero(part.columns >= part.inner_nodes)) for part in parts),
        communication_volume=volume,
    )


def spread_of(counts: Sequence[int]) -> Spread:
    """Mean, least and most of one count a part."""
    return Spread(sum(counts) / len(counts), min(counts), max(counts))


ROLES: Final = ("training", "validation", "test")


def role_spreads(masks: Sequence[BoolArray] | None, owners: Partitioning) -> Mapping[str, Spread]:
    """Nodes of each role over the parts, by name: of `masks`, bool[N] in the order of `ROLES`.

    A role that no node has is left out; None: nobody says.
    """
    return {
        role: spread_of(np.bincount(owners.owner[mask], minlength=owners.parts).tolist())
        for role, mask in zip(ROLES, masks or (), strict=False)
        if mask.any()
    }


def partition_warnings(parts: Sequence[Part]) -> tuple[str, ...]:
    """A line where `parts` are degenerate: some without edges, or most edges in one.

    Most: more than halfway from an even share to all of them.
    """
    count = len(parts)
    if count < 2:
        return ()
    said = []
    idle = sum(not part.entries for part in parts)
    if idle:
        said.append(f"{idle} of {count} parts {'has' if idle == 1 else 'have'} nodes but no edges")
    share = max(part.entries for part in parts) / max(sum(part.entries for part in parts), 1)
    if share > (1 + 1 / count) / 2:
        said.append(f"one of {count} parts has {100 * share:.0f} % of the edges")
    return (f"degenerate partition: {', '.join(said)}",) if said else ()
