"""Datasets known from publications: what was printed about them, with a citation per fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.spellings import known_name
from gcnsim.core.yaml_files import read_yaml

OTHER_DATASET: Final = "any other graph is a file or a folder (OGB's too): --graph FILE; or sizes: --nodes N --edges M"
"""What to do about an unknown dataset."""

_FILE: Final = Path(__file__).resolve().parent.parent / "data" / "datasets.yaml"


@dataclass(frozen=True, slots=True)
class BoundaryRow:
    """Mean inner and boundary nodes per partition at one number of METIS partitions. source: publication and place."""

    partitions: int
    inner: float
    boundary: float
    source: str = ""


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """One dataset and the model published for it.

    nodes: nodes. entries: stored adjacency entries (both directions of every edge). features, classes: widths of the
    input and the output. model, layers, hidden: the published model. boundary: boundary nodes by number of partitions,
    ascending, all of one source; empty if unpublished. elsewhere: counts of other sources at further numbers, for the
    tables of their own papers alone. citations: by field name, publication and place in it. train: share of training
    nodes; train_source: publication and place. degree_spread: standard deviation of the log of degrees, None if
    unpublished; degree_source: publication and place. kind: `web` or any other. directed: entries of the distributed
    graph in one direction, along which mini-batches sample; 0 if it has no direction.
    """

    name: str
    nodes: int
    entries: int
    features: int
    classes: int
    model: str
    layers: int
    hidden: int
    boundary: tuple[BoundaryRow, ...]
    citations: tuple[tuple[str, str], ...]
    train: float = 1.0
    train_source: str = ""
    degree_spread: float | None = None
    degree_source: str = ""
    kind: str = ""
    directed: int = 0
    elsewhere: tuple[BoundaryRow, ...] = ()


def datasets() -> tuple[str, ...]:
    """Names of the datasets known from publications, sorted."""
    return tuple(sorted(_raw()["datasets"]))


@cache
def dataset(name: str) -> DatasetFacts:
    """The dataset `name`. Raises ScenarioError with the closest name for any other."""
    known = _raw()["datasets"]
    found = known_name(name, known)
    if found is None:
        raise ScenarioError(f"unknown dataset {name!r}; {nearest(name, known)}; {OTHER_DATASET}")
    name = found
    raw, papers = known[name], _raw()["papers"]
    facts = {field: raw[field] for field in ("nodes", "entries", "features", "classes", "model", "layers", "hidden")}
    citations = {field: _cited(fact["cite"], papers) for field, fact in facts.items()}
    printed, spread = raw.get("boundary", ()), raw.get("degree_spread")
    if printed:
        citations["boundary"] = _cited(printed[0]["cite"], papers)
    rows = [
        tuple(
            BoundaryRow(count, float(inner), float(outer), _cited(entry["cite"], papers))
            for count, inner, outer in sorted(entry["rows"])
        )
        for entry in printed
    ]
    return DatasetFacts(
        name=name,
        boundary=rows[0] if rows else (),
        elsewhere=tuple(row for others in rows[1:] for row in others),
        citations=tuple(citations.items()),
        train=raw["train"]["value"],
        train_source=_cited(raw["train"]["cite"], papers),
        degree_spread=None if spread is None else spread["value"],
        degree_source="" if spread is None else _cited(spread["cite"], papers),
        kind=raw.get("kind", ""),
        directed=raw["directed"]["value"] if "directed" in raw else 0,
        **{field: fact["value"] for field, fact in facts.items()},
    )


def _cited(cite: Mapping[str, str], papers: Mapping[str, str]) -> str:
    return f"{papers[cite['paper']]}, {cite['place']}"


@cache
def _raw() -> Mapping[str, Any]:
    raw: dict[str, Any] = read_yaml(_FILE)
    return raw
