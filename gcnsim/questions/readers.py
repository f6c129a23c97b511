"""Readers of fields that are none of a scenario: chances, and times with their units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from gcnsim.errors import ScenarioError, UnitError
from gcnsim.units import fraction, seconds


@dataclass(frozen=True, slots=True)
class Chance:
    """A share of one above 0, as a number or as text with its unit."""

    def read(self, raw: object, path: str) -> float:
        """The share. Raises ScenarioError or UnitError, starting with `path`."""
        try:
            found = fraction(raw) if isinstance(raw, str) else raw
        except UnitError as error:
            raise UnitError(f"{path}: {error}") from None
        if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= 1:
            raise ScenarioError(f"{path}: {raw!r} is not allowed; a share above 0% and at most 100%")
        return float(found)


@dataclass(frozen=True, slots=True)
class Time:
    """A time above 0, with its unit."""

    def read(self, raw: object, path: str) -> float:
        """Seconds. Raises ScenarioError or UnitError, starting with `path`."""
        try:
            found = seconds(raw)
        except UnitError as error:
            raise UnitError(f"{path}: {error}") from None
        if found == 0:
            raise ScenarioError(f"{path}: {raw!r} is not allowed; a time above 0")
        return found


CHANCE: Final = Chance()
TIME: Final = Time()
