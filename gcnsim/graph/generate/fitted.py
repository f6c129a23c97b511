"""Surrogates: drawn graphs that stand in for published datasets, fitted to what was printed about them.

data/surrogates.yaml holds each one's model, seed and fit (docs/surrogates.md); `python -m benchmarks.fit_surrogates`
makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from gcnsim.documents import read_yaml
from gcnsim.errors import GraphError, nearest
from gcnsim.graph.csr import Graph
from gcnsim.graph.generate.communities import BlockModel, block_model
from gcnsim.graph.generate.distinct import Say, silent

FILE: Final = Path(__file__).resolve().parents[2] / "data" / "surrogates.yaml"
"""How each surrogate is drawn, and its fit."""


@dataclass(frozen=True, slots=True)
class FitRow:
    """Mean boundary nodes per part: published, of the surrogate, and of a fit that did not see this row.

    inner: published mean inner nodes. cross_fraction: share of the surrogate's entries that cross. left_out: None where
    no such fit was made. scale: share of the nodes that the partitioned graph had, 1 for all; counts are scaled back.
    """

    parts: int
    inner: float
    published: float
    surrogate: float
    cross_fraction: float
    left_out: float | None
    scale: float

    @property
    def residual(self) -> float:
        """Surrogate over published, minus 1."""
        return self.surrogate / self.published - 1.0


@dataclass(frozen=True, slots=True)
class Surrogate:
    """One surrogate: how it is drawn, and how well it keeps what was published.

    cite: where the published figures come from, by field. partition: how the parts of `rows` were made. assumed: what
    nothing published says, one sentence.
    """

    name: str
    model: BlockModel
    seed: int
    features: int
    classes: int
    partition: str
    rows: tuple[FitRow, ...]
    cite: tuple[tuple[str, str], ...]
    assumed: str


def surrogates() -> tuple[str, ...]:
    """Names of the datasets that have a surrogate, sorted."""
    return tuple(sorted(_raw()["surrogates"]))


@cache
def surrogate_facts(name: str) -> Surrogate:
    """How the surrogate of `name` is drawn. Raises GraphError with the nearest name for a dataset that has none."""
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

    Raises GraphError for a dataset that has none, and when drawing would take more than `max_memory` bytes.
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
