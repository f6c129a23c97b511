"""The size of a layer-0 feature cache: a share of the boundary nodes, or bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gcnsim.errors import ScenarioError
from gcnsim.units import FRACTION, NBYTES

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
