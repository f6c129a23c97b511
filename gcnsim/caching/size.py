"""The size of a layer-0 feature cache, a share of the boundary nodes or bytes, and the rule of a field that is one."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Final

from gcnsim.errors import ScenarioError, UnitError
from gcnsim.fields import shown
from gcnsim.units import FRACTION, NBYTES, share_readings

BYTES_PER_VALUE = 4
"""Features are float32."""

_ROUNDING = 1e-9
"""0.29 * 100 is 28.999...: a share that means a whole number of rows gets that number."""


@dataclass(frozen=True, slots=True)
class CacheSize:
    """At most one of `fraction` (of a worker's boundary nodes, 0..1) and `nbytes` (per worker); neither: no cache.

    auto: as much as the GPU's memory leaves.

    Raises ScenarioError when two are set, one is negative or not finite, or the fraction is above 100 %.
    """

    fraction: float | None = None
    nbytes: float | None = None
    auto: bool = False

    def __post_init__(self) -> None:
        """Refuse sizes that mean nothing."""
        if self.fraction is not None and self.nbytes is not None:
            raise ScenarioError(f"cache: both {self.fraction:.4g} of the boundary and {self.nbytes:.4g} B; give one")
        if self.auto and (self.fraction is not None or self.nbytes is not None):
            raise ScenarioError("cache: both auto and a size; give one")
        if self.fraction is not None and not 0.0 <= self.fraction <= 1.0:
            raise ScenarioError(f"cache: {100 * self.fraction:g}% is outside 0%..100%")
        if self.nbytes is not None and not 0.0 <= self.nbytes < math.inf:
            raise ScenarioError(f"cache: {self.nbytes:g} B; allowed: 0 B or more")

    @classmethod
    def none(cls) -> CacheSize:
        """No cache at all."""
        return cls()

    @property
    def empty(self) -> bool:
        """Whether it can hold no row."""
        return not self.auto and not self.fraction and not self.nbytes

    def describe(self) -> str:
        """The size as it is written in a scenario: `30%`, `2GiB`, `auto`; `0%` for no cache."""
        if self.auto:
            return "auto"
        return FRACTION.exact(self.fraction or 0.0) if self.nbytes is None else NBYTES.exact(self.nbytes)


def capacity(cache: CacheSize, boundary_nodes: int, feature_width: int) -> int:
    """Rows of `feature_width` float32 values the cache of one worker holds, rounded down, at most `boundary_nodes`.

    Raises ScenarioError for `auto`, whose bytes the method must find first.
    """
    if cache.auto:
        raise ScenarioError("cache: auto is not allowed; a share (30%) or bytes (2GiB) are")
    if cache.fraction is not None:
        return min(boundary_nodes, math.floor(cache.fraction * boundary_nodes + _ROUNDING))
    if cache.nbytes is not None:
        return min(boundary_nodes, math.floor(cache.nbytes / (BYTES_PER_VALUE * feature_width) + _ROUNDING))
    return 0


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
