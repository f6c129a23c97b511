"""The points of a sweep: combinations or samples of its axes' values, each one canonical scenario."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from math import ceil, log2
from typing import Any, Final, TypeAlias

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.core.streams import stream
from gcnsim.methods import DEFAULT, NO_OVERLAP, OVERLAP, method_type
from gcnsim.planning.sweep_axes import Axis, values_of
from gcnsim.planning.sweep_question import Question, Sample
from gcnsim.scenario import (
    DEFAULT_DATASET,
    SCHEMA,
    SOURCES,
    Scenario,
    fill_measured,
    from_mapping,
    rule_at,
    section_text,
)

Values: TypeAlias = Mapping[str, Any]
"""By path, the values with which a point replaces its base's fields, in scenario notation."""

SECTIONS: Final = ("cluster", "workload", "partition", "run")
"""The sections except the method."""


@dataclass(frozen=True, slots=True)
class Point:
    """One setting. index: its position in the sweep. values: the values of each axis that affects it.

    scenario: None if its values contradict each other; refused: the contradiction.
    """

    index: int
    values: Values
    scenario: Scenario | None
    refused: str | None = None

    @property
    def id(self) -> str:
        """SHA-256 (hex) of its scenario, as in `gcnsim.scenario.scenario_hash`, else of its values."""
        if self.scenario is None:
            return hashlib.sha256(json.dumps(dict(self.values), sort_keys=True).encode()).hexdigest()
        return hash_of(self.scenario)


def hash_of(scenario: Scenario) -> str:
    """The same hash as `scenario_hash`, with the text of each section cached."""
    parts = [(name, section_text(scenario, name)) for name in ("cluster", "faults", "method", *SECTIONS[1:])]
    parts.append(("schema", json.dumps(SCHEMA)))
    text = ", ".join(f'"{name}": {text}' for name, text in sorted(parts) if text)
    return hashlib.sha256(f"{{{text}}}".encode()).hexdigest()


@dataclass(slots=True)
class Settings:
    """Builds scenarios from a base and replacement values; each section is parsed once for each of its values."""

    base: Mapping[str, Any]
    _sections: dict[tuple[str, str], Any] = field(default_factory=dict)

    def effective(self, values: Values) -> dict[str, Any]:
        """The values without knobs that the point's method lacks, and without an overlap if nothing waits for a
        transfer.
        """
        knobs = [path for path in values if path.startswith("method.")]
        if not knobs:
            return dict(values)
        kind = method_type(self._named(values))
        lacks = {path for path in knobs if path != "method.name" and not _has(kind, path.removeprefix("method."))}
        kept = {path: value for path, value in values.items() if path not in lacks}
        if kept.get(f"method.{OVERLAP}", NO_OVERLAP) != NO_OVERLAP:
            del kept[f"method.{OVERLAP}"]
            if self._method(kept).waits:
                return {path: value for path, value in values.items() if path not in lacks}
        return kept

    def scenario(self, values: Values) -> Scenario:
        """The base scenario with `values` replaced. Raises ScenarioError or UnitError."""
        brought = self._brought(values)
        given = {name: self._kept(name, brought.get(name) or self._over_base(name, values)) for name in SECTIONS}
        # Faults name workers and links of the base, so they are read with each machine.
        faults = self._kept("faults", self.base.get("faults", []))
        return Scenario(name="sweep", **given, method=self._method(values, brought), faults=faults)

    def _brought(self, values: Values) -> Mapping[str, Any]:
        """The values that a file of measured compute times supplies to sections that leave them open."""
        path = values.get("cluster.measured_compute", _mapping(self.base, "cluster").get("measured_compute"))
        if path is None:
            return {}
        names = (*SECTIONS, "method")
        raw: dict[str, Any] = {name: self._over_base(name, values) for name in names}
        fill_measured(raw)
        return raw

    def _over_base(self, name: str, values: Values) -> dict[str, Any]:
        """A section of the base with the values that are its fields."""
        own = {path.partition(".")[2]: value for path, value in values.items() if path.startswith(f"{name}.")}
        return {**_mapping(self.base, name), **own}

    def _named(self, values: Values) -> str:
        return str(values.get("method.name", _mapping(self.base, "method").get("name", DEFAULT)))

    def _method(self, values: Values, brought: Mapping[str, Any] | None = None) -> Any:
        raw = dict((brought or {}).get("method") or _mapping(self.base, "method"))
        kind = method_type(self._named(values))
        raw = {key: value for key, value in raw.items() if _has(kind, key) or key in ("name", OVERLAP)}
        raw |= {path.removeprefix("method."): value for path, value in values.items() if path.startswith("method.")}
        overlap = raw.pop(OVERLAP, NO_OVERLAP)
        method = self._kept("method", raw)
        return method if overlap == NO_OVERLAP or not method.waits else self._kept("method", raw | {OVERLAP: overlap})

    def _kept(self, name: str, raw: Any) -> Any:
        """A parsed section, cached; sections do not refer to each other's fields."""
        key = (name, json.dumps(raw, sort_keys=True))
        if key not in self._sections:
            alone: dict[str, Any] = {"schema": SCHEMA, name: raw}
            if name == "faults" and raw:
                alone |= {one: dict(_mapping(self.base, one)) for one in ("cluster", "run")}
            if name == "cluster" and raw.get("measured_compute") is not None:
                alone["workload"] = {SOURCES[0]: DEFAULT_DATASET}
            self._sections[key] = getattr(from_mapping(alone, "base"), name)
        return self._sections[key]


def _mapping(base: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section: Mapping[str, Any] = base.get(name, {})
    return section


def _has(kind: Any, key: str) -> bool:
    return key == OVERLAP or kind.has(key)


def points_of(question: Question) -> list[Point]:
    """Every distinct point, in the order of the axes (the last varies fastest) or of the samples.

    Contradictory points state the contradiction. Raises ScenarioError if no point is left, and for an axis that no
    point has.
    """
    settings = Settings(question.base)
    points: list[Point] = []
    known: set[Any] = set()
    paths: set[str] = set()
    for values in _combinations(question):
        own = settings.effective(values)
        text = json.dumps(own, sort_keys=True)
        if text in known:
            continue
        known.add(text)
        try:
            scenario, refused = settings.scenario(own), None
        except GcnsimError as error:
            scenario, refused = None, str(error)
        value_of = partial(_written, own) if scenario is None else values_of(scenario)
        if scenario in known or not all(
            condition.keeps(value_of) for condition in (*question.where, *question.constraints)
        ):
            continue
        if scenario is not None:
            known.add(scenario)
        paths |= own.keys()
        points.append(Point(len(points), own, scenario, refused))
    if not points:
        raise ScenarioError("where: no point is left; allowed: conditions that some combination of the axes meets")
    if all(point.scenario is None for point in points):
        raise ScenarioError(f"{points[0].refused} (so for every point)")
    for axis in question.axes:
        if axis.path not in paths:
            raise ScenarioError(f"axes.{axis.path}: no method of this sweep has it, so it would change nothing")
    return points


def _written(values: Values, path: str) -> Any:
    """The value of a field in a contradictory point, as its axes state it."""
    value = values.get(path)
    try:
        return None if value is None else rule_at(path)[0].read(value, path)
    except GcnsimError:
        return None


def _combinations(question: Question) -> Iterator[dict[str, Any]]:
    paths = [axis.path for axis in question.axes]
    if question.sample is None:
        for values in product(*(axis.values for axis in question.axes)):
            yield dict(zip(paths, values, strict=True))
        return
    for shares in _shares(question.axes, question.sample):
        yield {axis.path: axis.at(share) for axis, share in zip(question.axes, shares, strict=True)}


def _shares(axes: Sequence[Axis], sample: Sample) -> list[list[float]]:
    """The position of each point along each axis, in [0, 1).

    Latin hypercube: McKay, Beckman and Conover (1979). Sobol: scrambled (Owen, 1998), the first points of a power of
    two.
    """
    generator = stream(sample.seed, "sweep", sample.kind)
    if sample.kind == "random":
        positions = generator.random((sample.points, len(axes)))
    else:
        from scipy.stats import qmc

        kind: Any = qmc.LatinHypercube if sample.kind == "lhs" else qmc.Sobol
        named = "rng" if "rng" in inspect.signature(kind).parameters else "seed"
        engine = kind(d=len(axes), **{named: generator})
        positions = (
            engine.random(sample.points)
            if sample.kind == "lhs"
            else engine.random_base2(ceil(log2(sample.points)))[: sample.points]
        )
    return [list(map(float, shares)) for shares in positions]
