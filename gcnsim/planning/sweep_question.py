"""The question of a sweep: a scenario, the varied fields, the conditions on points, and the detail of each answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import GcnsimError, ScenarioError, nearest
from gcnsim.core.fields import denied, shown, unknown_schema
from gcnsim.core.yaml_files import read_yaml
from gcnsim.hardware import PRICINGS, Price, PriceBook
from gcnsim.methods import DEFAULT, all_knobs, method_type
from gcnsim.planning.sweep_axes import FITS, Axis, Condition, read_axis, read_condition
from gcnsim.scenario import SCHEMA as SCENARIO_SCHEMA
from gcnsim.scenario import from_mapping, put_over

SCHEMA: Final = "gcnsim.sweep/1"
KEYS: Final = ("schema", "name", "base", "axes", "where", "constraints", "sample", "interval", "prices")
FULL: Final = "full"
NONE: Final = "none"
INTERVALS: Final = (FULL, NONE)
"""Whether rows have what-if's interval or none."""

SAMPLES: Final = ("random", "lhs", "sobol")
SAMPLE_KEYS: Final = ("kind", "points", "seed")
MOST_POINTS: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of the combinations: the number of points, the sampling method and its seed."""

    kind: str
    points: int
    seed: int


@dataclass(frozen=True, slots=True)
class Question:
    """The question of a sweep.

    base: a scenario as plain data; points replace its fields. sample: None if every combination is a point. where:
    conditions that every point satisfies. constraints: conditions on wanted answers. fits: simulate only settings that
    fit in GPU memory. interval: `full` as in what-if, or `none`. prices: for costs.
    """

    name: str
    base: Mapping[str, Any]
    axes: tuple[Axis, ...]
    where: tuple[Condition, ...]
    constraints: tuple[Condition, ...]
    fits: bool
    sample: Sample | None
    interval: str
    prices: PriceBook = field(default_factory=PriceBook)

    @property
    def combinations(self) -> int:
        """The number of combinations, before conditions and before duplicates are removed."""
        return prod(len(axis.values) for axis in self.axes) if self.sample is None else self.sample.points

    def payload(self) -> dict[str, Any]:
        """The question as plain data with ranges expanded; `read_question` restores it."""
        payload: dict[str, Any] = {"schema": SCHEMA, "name": self.name, "base": dict(self.base)}
        payload["axes"] = {axis.path: _axis_text(axis) for axis in self.axes}
        payload["where"] = [condition.text for condition in self.where]
        payload["constraints"] = [*([FITS] if self.fits else []), *(constraint.text for constraint in self.constraints)]
        if self.sample is not None:
            payload["sample"] = {"kind": self.sample.kind, "points": self.sample.points, "seed": self.sample.seed}
        prices = payload_of(self.prices)
        return payload | {"interval": self.interval} | ({"prices": prices} if prices else {})

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the question without its name."""
        question = {key: value for key, value in self.payload().items() if key != "name"}
        # The order of the axes is the order of the points.
        question["order"] = [axis.path for axis in self.axes]
        return hashlib.sha256(json.dumps(question, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _axis_text(axis: Axis) -> Any:
    between = axis.between
    if between is None:
        return list(axis.values)
    return f"{between.kind}({between.at(0.0)}, {between.at(1.0)})"


def load_question(path: str | Path) -> dict[str, Any]:
    """Load the question in the file at `path` as plain data. Raises FileError or ScenarioError."""
    document = read_yaml(path)
    if not isinstance(document, dict):
        raise ScenarioError(f"{path}: {denied(document)} the question of a sweep; it starts with schema: {SCHEMA}")
    if document.get("schema") != SCHEMA:
        raise ScenarioError(f"{path}: {unknown_schema(document)}; write schema: {SCHEMA}")
    return document


def read_question(
    mapping: Mapping[str, Any], overrides: Sequence[str] = (), axis: Mapping[str, object] | None = None
) -> Question:
    """Parse the question in `mapping`. `overrides` (`PATH=VALUE`) replace values of its base, `axis` replaces axes.

    Raises ScenarioError, UnitError or FileError with path, value and allowed values.
    """
    for key in mapping:
        if key not in KEYS:
            raise ScenarioError(f"{key}: unknown key; {nearest(str(key), KEYS)}")
    name, interval = mapping.get("name", "sweep"), mapping.get("interval", FULL)
    if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name) <= 200:
        raise ScenarioError(f"name: {denied(name)} a name (one line of text)")
    if interval not in INTERVALS:
        raise ScenarioError(f"interval: {shown(interval)} is not allowed; one of {', '.join(INTERVALS)}")
    given = _section(mapping, "axes")
    axes = {path: read_axis(path, written, "axes.") for path, written in given.items()}
    axes |= {path: read_axis(path, written, "--axis ") for path, written in (axis or {}).items()}
    if not axes:
        raise ScenarioError("axes: none is given; write axes: or --axis, e.g. cluster.bandwidth=5Gbps,10Gbps")
    _refuse_set(axes, overrides)
    sample = _sample(mapping.get("sample"))
    _refuse_continuous(axes, sample)
    constraints = _lines(mapping, "constraints")
    question = Question(
        name=name,
        base=_base(_section(mapping, "base"), overrides, axes),
        axes=tuple(axes.values()),
        where=tuple(read_condition(text, place) for place, text in _lines(mapping, "where")),
        constraints=tuple(read_condition(text, place) for place, text in constraints if text != FITS),
        fits=any(text == FITS for _, text in constraints),
        sample=sample,
        interval=interval,
        prices=read_prices(mapping.get("prices")),
    )
    if question.combinations > MOST_POINTS:
        raise ScenarioError(f"axes: {question.combinations:,} combinations; allowed: at most {MOST_POINTS:,}")
    return question


def _refuse_set(axes: Mapping[str, Axis], overrides: Sequence[str]) -> None:
    """Raise ScenarioError for an override that the points would replace."""
    for text in overrides:
        path = str(text).partition("=")[0].strip()
        if path in axes:
            raise ScenarioError(f"--set {path}: it varies, so points have values of their own; allowed: --axis {text}")


def _section(mapping: Mapping[str, Any], key: str) -> dict[str, Any]:
    section = mapping.get(key, {})
    if not isinstance(section, dict):
        raise ScenarioError(f"{key}: {denied(section)} a section")
    return section


def _lines(mapping: Mapping[str, Any], key: str) -> list[tuple[str, object]]:
    lines = mapping.get(key, [])
    if not isinstance(lines, list):
        raise ScenarioError(f"{key}: {denied(lines)} a list")
    return [(f"{key}[{index}]", one) for index, one in enumerate(lines)]


def _refuse_continuous(axes: Mapping[str, Axis], sample: Sample | None) -> None:
    """Raise ScenarioError for a range without a count if every combination is a point."""
    for path, axis in axes.items():
        if axis.between is not None and sample is None:
            raise ScenarioError(
                f"axes.{path}: {_axis_text(axis)} has no count, so only a sample draws from it; "
                f"allowed: a third number, or sample"
            )


def _sample(given: object) -> Sample | None:
    if given is None:
        return None
    if not isinstance(given, dict):
        raise ScenarioError(f"sample: {denied(given)} a section; keys: {', '.join(SAMPLE_KEYS)}")
    for key in given:
        if key not in SAMPLE_KEYS:
            raise ScenarioError(f"sample.{key}: unknown key; {nearest(str(key), SAMPLE_KEYS)}")
    kind, points, seed = given.get("kind"), given.get("points"), given.get("seed", 0)
    if kind not in SAMPLES:
        raise ScenarioError(f"sample.kind: {shown(kind)} is not allowed; one of {', '.join(SAMPLES)}")
    for name, value, least in (("points", points, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**31:
            raise ScenarioError(f"sample.{name}: {denied(value)} a whole number of at least {least}")
    assert isinstance(points, int)
    return Sample(str(kind), points, seed)


def _base(given: Mapping[str, Any], overrides: Sequence[str], axes: Mapping[str, Axis]) -> dict[str, Any]:
    """The base as plain data with the overrides; it is parsed first so that its errors are reported first."""
    raw = {"schema": SCENARIO_SCHEMA, "name": "sweep", **deepcopy(dict(given))}
    for override in overrides:
        put_over(raw, override)
    axis = axes.get("method.name")
    method = raw.get("method", {})
    names = [str(value) for value in axis.values] if axis is not None else []
    own = dict(raw)
    if isinstance(method, dict) and names:
        kind = method_type(method.get("name", DEFAULT), "base.method.name")
        some = [method_type(name, "axes.method.name") for name in names]
        # Knobs of the methods on the axis are removed from the base.
        own["method"] = {
            key: value
            for key, value in method.items()
            if key not in all_knobs() or kind.has(key) or not any(one.has(key) for one in some)
        }
    try:
        from_mapping(own, "base")
    except ScenarioError:
        # Fields of a machine depend on each other, and varied fields do not keep the base's values.
        from_mapping(_at_first(own, axes), "base")
    return raw


def _at_first(base: Mapping[str, Any], axes: Mapping[str, Axis]) -> dict[str, Any]:
    """The base with the first value of every varied machine field."""
    own = deepcopy(dict(base))
    for path, axis in axes.items():
        section, _, key = path.partition(".")
        if section == "cluster" and axis.values and "." not in key and isinstance(own.get(section, {}), dict):
            own.setdefault(section, {})[key] = axis.values[0]
    return own


CHOSEN: Final = ("price", "file", "pricing")
"""The keys that correspond to options of what-if."""

WRITTEN: Final = ("pricing", "given")
"""The keys of prices that are stored in full."""


def payload_of(book: PriceBook) -> dict[str, Any]:
    """The prices as plain data for `read_prices`; empty for the default prices."""
    if replace(book, asked=False) == PriceBook():
        return {}
    return {"pricing": book.pricing, "given": [asdict(price) for price in book.given]}


def read_prices(given: object) -> PriceBook:
    """Parse the prices that a question chooses or stores in full; None gives the default.

    Raises ScenarioError or FileError with path, value and allowed values.
    """
    if given is None:
        return PriceBook()
    if not isinstance(given, Mapping):
        raise ScenarioError(f"prices: {denied(given)} a section; keys: {', '.join(CHOSEN)}")
    if "given" in given:
        return _written_prices(given)
    for key in given:
        if key not in CHOSEN:
            raise ScenarioError(f"prices.{key}: unknown key; {nearest(str(key), CHOSEN)}")
    price = given.get("price", [])
    texts = [price] if isinstance(price, str) else price
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ScenarioError(f"prices.price: {denied(price)} a list of NAME=PRICE, e.g. [t4=0.35USD/h]")
    for key in ("file", "pricing"):
        if given.get(key) is not None and not isinstance(given[key], str):
            raise ScenarioError(f"prices.{key}: {shown(given[key])} is not text")
    try:
        return PriceBook.of(texts, given.get("file"), given.get("pricing"))
    except ScenarioError as error:
        raise _of_section(error) from None


def _of_section(error: GcnsimError) -> GcnsimError:
    """Convert an error about an option of what-if to one about the key of the same name."""
    text = str(error)
    return ScenarioError(f"prices.{text[2:]}") if text.startswith("--") else error


def _written_prices(given: Mapping[str, Any]) -> PriceBook:
    """Parse the prices that `payload_of` stored. Raises ScenarioError for anything else."""
    damaged = ScenarioError(f"prices: is not what a sweep writes; allowed: {', '.join(CHOSEN)}")
    try:
        rows = tuple(Price(**row) for row in given["given"])
        right = all(row.usd_per_gpu_hour >= 0 and row.gpus >= 1 for row in rows)
    except (KeyError, TypeError, ValueError):
        raise damaged from None
    if not right or set(given) != set(WRITTEN) or given["pricing"] not in PRICINGS:
        raise damaged
    return PriceBook(rows, given["pricing"], asked=True)
