"""A number with its origin: every prediction is as good as the worst figure it rests on."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from gcnsim.ids import FloatArray

SOURCES: Final = ("assumed", "datasheet", "given", "fitted", "measured")
"""Kinds of origin, the weakest first; only `assumed` figures carry a range. `given`: by the question itself."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One number in SI units and where it comes from.

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
    """Whether something holds, and where that comes from; source, reference and date as of a `Figure`."""

    value: bool
    source: str
    reference: str
    date: str


def figures_of(profile: Any) -> dict[str, Figure]:
    """The figures of `profile` by field name, in the order of its fields."""
    pairs = ((field.name, getattr(profile, field.name)) for field in fields(profile))
    return {name: value for name, value in pairs if isinstance(value, Figure)}


def origins(profile: Any) -> tuple[str, ...]:
    """The kinds of origin among the figures of `profile`, the weakest first."""
    found = {figure.source for figure in figures_of(profile).values()}
    return tuple(source for source in SOURCES if source in found)


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
        found: FloatArray = np.interp(np.log(np.maximum(size, 1.0)), np.log(self.sizes), self.values)
        return found
