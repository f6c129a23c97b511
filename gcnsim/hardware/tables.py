"""Figures, how profiles declare them, and their parser.

A figure is a number with its source: every prediction is only as good as the worst figure it uses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, TypeAlias

import numpy as np

from gcnsim.core import units
from gcnsim.core.errors import FileError, GcnsimError, nearest
from gcnsim.core.fields import Number, QuantityRange, shown
from gcnsim.core.ids import FloatArray

SOURCES: Final = ("assumed", "datasheet", "given", "fitted", "measured")
"""Kinds of source, the weakest first; only `assumed` figures have a range. `given`: by the question."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number in SI units with its source.

    value: seconds, bytes, bytes/s, flop/s, edges/s or a share of one. source: one of `SOURCES`. reference: the
    document, or the way it was measured. date: of the reference (ISO, or the year). low, high: the range if assumed.
    """

    value: float
    source: str
    reference: str
    date: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A true or false fact with its source; source, reference and date as in a `Figure`."""

    value: bool
    source: str
    reference: str
    date: str


def figures_of(profile: Any) -> dict[str, Figure]:
    """The figures of `profile` by field name, in the order of its fields."""
    pairs = ((field.name, getattr(profile, field.name)) for field in fields(profile))
    return {name: value for name, value in pairs if isinstance(value, Figure)}


def origins(profile: Any) -> tuple[str, ...]:
    """The kinds of source among the figures of `profile`, the weakest first."""
    kinds = {figure.source for figure in figures_of(profile).values()}
    return tuple(source for source in SOURCES if source in kinds)


@dataclass(frozen=True, slots=True)
class Curve:
    """A figure that depends on a size: `values[i]` at `sizes[i]` (ascending), straight in log(size), flat beyond."""

    sizes: tuple[float, ...]
    values: tuple[float, ...]
    source: str
    reference: str
    date: str

    def at(self, size: FloatArray) -> FloatArray:
        """The value at each size, float64 of the same shape."""
        interpolated: FloatArray = np.interp(np.log(np.maximum(size, 1.0)), np.log(self.sizes), self.values)
        return interpolated


Table: TypeAlias = Mapping[str, units.Quantity | None]
"""Figures by name, with the quantity of each (None: a plain number)."""

ZERO: Final = "zero"
"""The mark of a figure that may be zero; a rate or a share of one may not."""

OF_CALIBRATIONS: Final = "calibrations"
"""The mark of a figure that only calibrations contain."""


def declared(profile: type, mark: str = "") -> dict[str, units.Quantity | None]:
    """The figures of a profile in the order of its fields, or those with a mark.

    A field declares a figure by its annotation, `Annotated[Figure, quantity, *marks]`.
    """
    hints = ((item.name, getattr(item.type, "__metadata__", ())) for item in fields(profile))
    return {name: how[0] for name, how in hints if how and (not mark or mark in how)}


def split_declared(profile: type) -> tuple[Table, Table]:
    """The figures that every profile of a kind has, and those that it may have in a file."""
    every, calibrated = declared(profile), declared(profile, OF_CALIBRATIONS)
    always = {item.name for item in fields(profile) if item.default is MISSING}
    return (
        {name: quantity for name, quantity in every.items() if name in always},
        {name: quantity for name, quantity in every.items() if name not in always and name not in calibrated},
    )


def read_figure(raw: object, quantity: units.Quantity | None, path: str) -> Figure:
    """Parse a figure `{value, source, reference, date, low, high}`. Raises FileError that starts with `path`."""
    if not isinstance(raw, dict) or not {"value", "source", "reference", "date"} <= set(raw):
        raise FileError(f"{path}: a figure is {{value, source, reference, date}} and, if assumed, low and high")
    unknown = sorted(set(raw) - {"value", "source", "reference", "date", "low", "high"})
    if unknown:
        raise FileError(f"{path}: unknown key {shown(unknown[0])}; {nearest(unknown[0], Figure.__slots__)}")
    source = str(raw["source"])
    if source not in SOURCES:
        raise FileError(f"{path}: unknown source {shown(raw['source'])}; {nearest(source, SOURCES)}")
    low, value, high = (_number(raw[key], quantity, path) if key in raw else None for key in ("low", "value", "high"))
    assert value is not None
    if source == "assumed" and (low is None or high is None or not low <= value <= high):
        raise FileError(f"{path}: an assumed figure needs low and high around its value")
    return Figure(value, source, str(raw["reference"]), str(raw["date"]), low, high)


def read_fact(raw: object, path: str) -> Fact:
    """Parse a fact `{value, source, reference, date}`, value true or false.

    Raises FileError that starts with `path`.
    """
    if not isinstance(raw, dict) or set(raw) != {"value", "source", "reference", "date"}:
        raise FileError(f"{path}: is not {{value: true or false, source, reference, date}}")
    if not isinstance(raw["value"], bool):
        raise FileError(f"{path}: {shown(raw['value'])} is not true or false")
    if raw["source"] not in SOURCES:
        raise FileError(f"{path}: unknown source {shown(raw['source'])}; {nearest(str(raw['source']), SOURCES)}")
    return Fact(raw["value"], raw["source"], str(raw["reference"]), str(raw["date"]))


def _number(raw: object, quantity: units.Quantity | None, path: str) -> float:
    try:
        return (
            Number(False, 0).read(raw, path)
            if quantity is None
            else QuantityRange(quantity, 0, math.inf).read(raw, path)
        )
    except GcnsimError as error:
        raise FileError(str(error)) from None
