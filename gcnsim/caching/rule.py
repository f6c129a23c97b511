"""The rule of a field that is a cache size."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from gcnsim.caching.size import CacheSize
from gcnsim.errors import ScenarioError, UnitError
from gcnsim.fields import shown
from gcnsim.units import FRACTION, NBYTES, share_readings

_NUMBER: Final = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")
_PERCENT: Final = re.compile(r"(?:%|percent|pct)\Z", re.IGNORECASE)

CACHE_SIZES: Final = "0% to 100% of the boundary nodes, or bytes with a unit (2GiB)"
STATIC_CACHE_SIZES: Final = "auto, 0% to 100% of the rows of its part, or bytes with a unit (2GiB)"


@dataclass(frozen=True, slots=True)
class Cache:
    """A cache size: `30%` of the boundary nodes, or bytes (`2GiB`); with `auto` also what the GPU's memory leaves."""

    auto: bool = False
    unit: str = "%"

    @property
    def allowed(self) -> str:
        return STATIC_CACHE_SIZES if self.auto else CACHE_SIZES

    def read(self, raw: object, path: str) -> CacheSize:
        value = parse_cache(raw, path, self.allowed)
        self.check(value, path)
        return value

    def check(self, value: Any, path: str) -> None:
        if not isinstance(value, CacheSize):
            raise ScenarioError(f"{path}: {shown(value)} is not a cache size; {self.allowed}")
        if value.auto and not self.auto:
            raise ScenarioError(f"{path}: auto is not allowed; {self.allowed}")

    def write(self, value: Any) -> object:
        return value.describe()


def parse_cache(raw: object, path: str = "cache", allowed: str = CACHE_SIZES) -> CacheSize:
    """The cache size written as `30%`, `0.3`, `2GiB` or `auto`; 0 of either is no cache. allowed: the values, in words.

    Raises UnitError or ScenarioError, starting with `path`.
    """
    text = raw.strip() if isinstance(raw, str) else ""
    if text == "auto":
        return CacheSize(auto=True)
    number = not isinstance(raw, str) or _NUMBER.fullmatch(text) is not None
    quantity = FRACTION if number or _PERCENT.search(text) else NBYTES
    try:
        value = quantity.parse(raw)
    except UnitError as error:
        if not number and text[:1].isdigit():
            raise UnitError(f"{path}: {error}") from None
        allowed = " or ".join(share_readings(raw)) or "e.g. 30% (of the boundary) or 2GiB"
        raise UnitError(f"{path}: {shown(raw)}: a cache size needs its unit; write {allowed}") from None
    if value == 0:
        return CacheSize.none()
    if quantity is NBYTES:
        return CacheSize(nbytes=value)
    if value > 1:
        raise ScenarioError(f"{path}: {shown(raw)} is not allowed; {allowed}")
    return CacheSize(fraction=value)
