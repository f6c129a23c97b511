"""Facts of a partition: how even the parts are, what crosses between them, where training nodes lie.

Some partitions make an answer that rests on them worthless; `partition_warnings` says so.

Scatter over METIS' seeds: a shipped profile is of one partition. Whoever partitions the graph anew gets another, as did
the authors of published tables. How much a partition of a dataset depends on the seed was measured on its surrogate
(docs/surrogates.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from gcnsim.core.ids import BoolArray
from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph.parts import Part, Partitioning


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
    """The same for the stored entries of the parts' rows, which determine a worker's aggregation."""
    boundary_per_inner: float
    """Sum of |B_n| over sum of |I_n|."""
    replication: float
    """Copies per node, including the owner's: (sum of |I_n| + |B_n|) / N."""
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
    """Mean, least and most of one count per part."""
    return Spread(sum(counts) / len(counts), min(counts), max(counts))


ROLES: Final = ("training", "validation", "test")


def role_spreads(masks: Sequence[BoolArray] | None, owners: Partitioning) -> Mapping[str, Spread]:
    """Nodes of each role per part, by name: of `masks`, bool[N] in the order of `ROLES`.

    A role without nodes is left out; None: unknown.
    """
    return {
        role: spread_of(np.bincount(owners.owner[mask], minlength=owners.parts).tolist())
        for role, mask in zip(ROLES, masks or (), strict=False)
        if mask.any()
    }


def partition_warnings(parts: Sequence[Part]) -> tuple[str, ...]:
    """A warning if `parts` are degenerate: some without edges, or most edges in one.

    Most: more than halfway from an even share to all of them.
    """
    count = len(parts)
    if count < 2:
        return ()
    warnings = []
    idle = sum(not part.entries for part in parts)
    if idle:
        warnings.append(f"{idle} of {count} parts {'has' if idle == 1 else 'have'} nodes but no edges")
    share = max(part.entries for part in parts) / max(sum(part.entries for part in parts), 1)
    if share > (1 + 1 / count) / 2:
        warnings.append(f"one of {count} parts has {100 * share:.0f} % of the edges")
    return (f"degenerate partition: {', '.join(warnings)}",) if warnings else ()


FILE: Final = Path(__file__).resolve().parent.parent / "data" / "partition_spread.yaml"

FIGURES: Final = ("boundary_mean", "boundary_largest", "cross_entries", "entries_largest")

ALIKE: Final = {"reddit-train": "reddit", "yelp-train": "yelp"}
"""Datasets that are a subset of a measured one."""

TWO_DRAWS: Final = sqrt(2.0)
"""The spread of the ratio of two partitions (the known one and another), relative to the spread of either."""

QUANTILE: Final = NormalDist().inv_cdf(0.95)
"""Standard deviations from the mean to either end of a 90 % interval."""


@dataclass(frozen=True, slots=True)
class SeedVariation:
    """Standard deviations, over the seeds of METIS, of the logarithms of a partition's counts.

    boundary_mean, boundary_largest: boundary nodes of the mean and of the largest worker. cross_entries: crossing
    entries. entries_largest: entries of the largest worker. source: what was measured, in words.
    """

    boundary_mean: float
    boundary_largest: float
    cross_entries: float
    entries_largest: float
    source: str

    def factors(self, figure: str) -> tuple[float, float]:
        """The 90 % interval of another partition's `figure` over this one's: (low, high)."""
        wide = QUANTILE * TWO_DRAWS * float(getattr(self, figure))
        return exp(-wide), exp(wide)


def partition_scatter(dataset: str, parts: int) -> SeedVariation:
    """The variation of partitions of `dataset` into `parts`: for each count, the largest of its measures.

    For an unmeasured dataset, the largest of the measured ones.
    """
    known = _known()
    own = ALIKE.get(dataset, dataset)
    chosen = {own: known[own]} if own in known else known
    each = [_at(entry, parts) for entry in chosen.values()]
    seeds = ", ".join(
        f"{entry['seeds']} seeds at {100 * entry['scale']:g} % of {name}" for name, entry in chosen.items()
    )
    values = dict(zip(FIGURES, map(max, zip(*each, strict=True)), strict=True))
    widest = "" if own in known else "; the widest of them"
    return SeedVariation(**values, source=f"{seeds}, and what neighbouring numbers of parts miss{widest}")


def _at(entry: Mapping[str, Any], parts: int) -> list[float]:
    """The figures at `parts`: between measured numbers of parts straight in their logarithm, constant beyond."""
    places = [log(row["parts"]) for row in entry["rows"]]
    return [
        max(
            float(np.interp(log(parts), places, [row[name] for row in entry["rows"]])),
            entry["neighbours"][name],
            entry.get("counted", {}).get(name, 0.0),
        )
        for name in FIGURES
    ]


@cache
def _known() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = read_yaml(FILE)["datasets"]
    return found
