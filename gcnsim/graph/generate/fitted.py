"""Surrogates: random graphs that replace published datasets, fitted to printed figures.

data/surrogates.yaml contains each one's model, seed and fit (docs/surrogates.md), written by `python -m
studies.fit_surrogates`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import GraphError, nearest
from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph.csr import Graph
from gcnsim.graph.generate.communities import BlockModel, Say, block_model, silent

FILE: Final = Path(__file__).resolve().parents[2] / "data" / "surrogates.yaml"
"""The file with the model of each surrogate and its fit."""


MOST_CROSSING: Final = 0.95
"""The most entries that cross, as a share."""


@dataclass(frozen=True, slots=True)
class FitRow:
    """Mean boundary nodes per part: published, of the surrogate, and of a fit without this row.

    inner: published mean inner nodes. surrogate, cross_fraction (share of the entries that cross): means over `seeds`
    seeds of the partitioner. spread: standard deviation of `surrogate` over them, as a share of it; None for one seed.
    left_out: None without such a fit. scale: share of the nodes in the partitioned graph, 1 for all; counts are scaled
    back.
    """

    parts: int
    inner: float
    published: float
    surrogate: float
    cross_fraction: float
    left_out: float | None
    scale: float
    seeds: int
    spread: float | None

    @property
    def residual(self) -> float:
        """Surrogate over published, minus 1."""
        return self.surrogate / self.published - 1.0


@dataclass(frozen=True, slots=True)
class Check:
    """A published figure that the fit did not use, with the surrogate's.

    what: the counted quantity. partition: how the `parts` parts were made. cite: the source of `published`.
    """

    what: str
    partition: str
    parts: int
    published: float
    surrogate: float
    scale: float
    cite: str

    @property
    def residual(self) -> float:
        """Surrogate over published, minus 1."""
        return self.surrogate / self.published - 1.0


@dataclass(frozen=True, slots=True)
class CrossEdges:
    """Mean cross edges per boundary node, as a share of the mean degree, if few entries cross.

    low, likely, high: a range and the value to use. source: its basis, one sentence.
    """

    low: float
    likely: float
    high: float
    source: str

    def crossing(self, ratio: float, end: int = 1) -> float:
        """Share of the entries that cross, by boundary over inner nodes, at the low, likely or high end (0, 1, 2)."""
        return min(MOST_CROSSING, -math.expm1(-(self.low, self.likely, self.high)[end] * ratio))


@dataclass(frozen=True, slots=True)
class Surrogate:
    """One surrogate: its model, and how well it reproduces published figures.

    cite: the source of the published figures, by field. partition: how the parts of `rows` were made. checks: figures
    that were not fitted. cross_edges: a range to sweep. assumed: properties without a published source, one sentence.
    """

    name: str
    model: BlockModel
    seed: int
    features: int
    classes: int
    partition: str
    rows: tuple[FitRow, ...]
    checks: tuple[Check, ...]
    cross_edges: CrossEdges
    cite: tuple[tuple[str, str], ...]
    assumed: str


@dataclass(frozen=True, slots=True)
class Bordering:
    """The assumed ratio of boundary to inner nodes of a part.

    low, likely, high: the mean of `parts` parts, by `source`. growth: the power of the number of parts with which it
    grows, by `source` too; None: by the law of `gcnsim.workload.cuts`. unevenness: ratios of another graph's parts,
    whose spread about their mean is assumed here; part k of P takes the one at k modulo their number.
    """

    parts: int
    low: float
    likely: float
    high: float
    unevenness: tuple[float, ...]
    source: str
    growth: float | None = None

    def uneven(self, parts: int) -> tuple[float, ...]:
        """The ratio of each of `parts` parts over their mean, in order."""
        every = [self.unevenness[part % len(self.unevenness)] for part in range(parts)]
        return tuple(one * parts / sum(every) for one in every)


@dataclass(frozen=True, slots=True)
class SizeOnlyDataset:
    """A replacement for a graph too large to generate: sizes, and an assumed ratio of boundary to inner nodes.

    entries: stored entries, both directions of every edge. parts: the least and the most supported parts. cite: the
    source of the sizes, by field; assumed: further assumptions, one sentence.
    """

    name: str
    nodes: int
    entries: int
    features: int
    classes: int
    parts: tuple[int, ...]
    boundary: Bordering
    cite: tuple[tuple[str, str], ...]
    assumed: str


def outlines() -> tuple[str, ...]:
    """Names of the datasets with an outline instead of a surrogate, sorted."""
    return tuple(sorted(_raw()["outlines"]))


@cache
def outline(name: str) -> SizeOnlyDataset:
    """The outline of `name`. Raises GraphError with the closest name for a dataset without one."""
    known = _raw()["outlines"]
    if name not in known:
        raise GraphError(f"no outline of {name!r}; {nearest(name, known)}")
    raw = known[name]
    return SizeOnlyDataset(
        name=name,
        nodes=raw["nodes"],
        entries=raw["entries"],
        features=raw["features"],
        classes=raw["classes"],
        parts=tuple(raw["parts"]),
        boundary=Bordering(**(raw["boundary"] | {"unevenness": tuple(raw["boundary"]["unevenness"])})),
        cite=tuple(raw["cite"].items()),
        assumed=raw["assumed"],
    )


def surrogates() -> tuple[str, ...]:
    """Names of the datasets with a surrogate, sorted."""
    return tuple(sorted(_raw()["surrogates"]))


@cache
def surrogate_facts(name: str) -> Surrogate:
    """The model of the surrogate of `name`. Raises GraphError with the closest name for a dataset without one."""
    known = _raw()["surrogates"]
    if name not in known:
        raise GraphError(f"no surrogate of {name!r}; {nearest(name, known)}")
    raw = known[name]
    return Surrogate(
        name=name,
        model=BlockModel(**raw["model"]),
        seed=raw["seed"],
        features=raw["features"],
        classes=raw["classes"],
        partition=raw["partition"],
        rows=tuple(FitRow(**row) for row in raw["rows"]),
        checks=tuple(Check(**check) for check in raw["checks"]),
        cross_edges=CrossEdges(**raw["cross_edges"]),
        cite=tuple(raw["cite"].items()),
        assumed=raw["assumed"],
    )


def surrogate(
    name: str,
    seed: int | None = None,
    *,
    max_memory: float | None = None,
    processes: int = 1,
    say: Say = silent,
) -> Graph:
    """The surrogate of the dataset `name`, named `NAME-surrogate`; `seed` None: the one it was fitted with.

    Raises GraphError for a dataset without one, and if generating it would take more than `max_memory` bytes.
    """
    facts = surrogate_facts(name)
    return block_model(
        facts.model,
        facts.seed if seed is None else seed,
        f"{name}-surrogate",
        features=facts.features,
        classes=facts.classes,
        max_memory=max_memory,
        processes=processes,
        say=say,
    )


@cache
def _raw() -> Mapping[str, Any]:
    raw: dict[str, Any] = read_yaml(FILE)
    return raw
