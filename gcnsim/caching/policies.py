"""Static cache rules: which boundary nodes' feature rows a worker keeps on its GPU.

Only input features (layer 0) can hit: deeper rows change every iteration.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np

from gcnsim.errors import ScenarioError, nearest
from gcnsim.ids import AnyArray, BoolArray, IntArray


class CachePolicy(Protocol):
    """A ranking of boundary nodes, the first to be cached first."""

    name: ClassVar[str]

    def ranking(self, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator) -> IntArray:
        """Boundary indices in order of preference, int64[B]; deterministic for a given generator state."""
        ...


class ByInclusion:
    """The most likely sampled first (PSC-GCN); ties, as all are at epsilon 1, by degree, then by boundary index."""

    name: ClassVar[str] = "inclusion"

    def ranking(self, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator) -> IntArray:
        """Descending inclusion, then descending degree, then ascending index (lexsort is stable)."""
        return np.lexsort((-degree.astype(np.int64), -inclusion))


class ByDegree:
    """The highest degree in the whole graph first; ties by boundary index."""

    name: ClassVar[str] = "degree"

    def ranking(self, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator) -> IntArray:
        """Descending degree, then ascending index."""
        return np.argsort(-degree.astype(np.int64), kind="stable")


class AtRandom:
    """A uniform choice; the baseline."""

    name: ClassVar[str] = "random"

    def ranking(self, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator) -> IntArray:
        """A permutation from `generator`."""
        return generator.permutation(degree.size)


_POLICIES: dict[str, CachePolicy] = {rule.name: rule for rule in (ByInclusion(), ByDegree(), AtRandom())}


def cache_policy(name: str) -> CachePolicy:
    """The rule called `name` (`inclusion`, `degree`, `random`); raises ScenarioError with the nearest known name."""
    if name not in _POLICIES:
        raise ScenarioError(f"cache policy: unknown {name!r}; {nearest(name, _POLICIES)}")
    return _POLICIES[name]


def cached_mask(
    policy: str, capacity_rows: int, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator
) -> BoolArray:
    """The boundary nodes a cache of `capacity_rows` rows holds, bool[B]."""
    mask = np.zeros(degree.size, np.bool_)
    if capacity_rows:
        mask[cache_policy(policy).ranking(inclusion, degree, generator)[:capacity_rows]] = True
    return mask
