"""Readers of fields that are none of a scenario. Messages start with the path that they are given."""

from __future__ import annotations

from gcnsim.errors import ScenarioError, UnitError
from gcnsim.units import fraction, seconds


def read_chance(raw: object, path: str) -> float:
    """A share of one above 0, of a number or of text with its unit. Raises ScenarioError or UnitError."""
    try:
        found = fraction(raw) if isinstance(raw, str) else raw
    except UnitError as error:
        raise UnitError(f"{path}: {error}") from None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= 1:
        raise ScenarioError(f"{path}: {raw!r} is not allowed; a share above 0% and at most 100%")
    return float(found)


def read_time(raw: object, path: str) -> float:
    """Seconds above 0, of text with its unit. Raises ScenarioError or UnitError."""
    try:
        found = seconds(raw)
    except UnitError as error:
        raise UnitError(f"{path}: {error}") from None
    if found == 0:
        raise ScenarioError(f"{path}: {raw!r} is not allowed; a time above 0")
    return found
