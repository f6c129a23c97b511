"""A partition in a few numbers: how even the parts are, and how much crosses between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gcnsim.partition.parts import Part


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
