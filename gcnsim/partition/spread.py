"""How much a partition of a dataset depends on METIS' seed, as measured on its surrogate (docs/surrogates.md).

A shipped profile is of one partition. Whoever cuts the graph anew gets another, and so had whoever published a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import exp, log, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from gcnsim.io.yaml_files import read_yaml

FILE: Final = Path(__file__).resolve().parent.parent / "data" / "partition_spread.yaml"

FIGURES: Final = ("boundary_mean", "boundary_largest", "cross_entries", "entries_largest")

ALIKE: Final = {"reddit-train": "reddit", "yelp-train": "yelp"}
"""Datasets that are a part of a measured one."""

TWO_DRAWS: Final = sqrt(2.0)
"""Of the ratio of two partitions, the one that is known and another, over the spread of either."""

QUANTILE: Final = NormalDist().inv_cdf(0.95)
"""A 90 % interval reaches so many standard deviations to either side."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Standard deviations, over the seeds of METIS, of the logarithm of what a partition has.

    boundary_mean, boundary_largest: boundary nodes of the mean and of the largest worker. cross_entries: entries that
    cross. entries_largest: entries of the largest worker. source: what was measured, in words.
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


def partition_scatter(dataset: str, parts: int) -> Scatter:
    """The scatter of partitions of `dataset` into `parts`: of each figure the largest of its measures.

    Of a dataset that was not measured, the largest of those that were.
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
    return Scatter(**values, source=f"{seeds}, and what neighbouring numbers of parts miss{widest}")


def partition_spread(dataset: str, parts: int) -> tuple[float, float]:
    """The largest worker's boundary nodes in another partition over those in this one: a 90 % interval (low, high)."""
    return partition_scatter(dataset, parts).factors("boundary_largest")


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
