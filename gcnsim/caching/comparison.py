"""Cache rules to compare by: rankings filled once, one that is filled anew, and those that change with every request.

A name says what kind a rule is. `static`: the best rows of a ranking, fetched before the first graph and kept.
`refreshed`: the same, ranked anew every so many graphs. `demand`: empty at first; every row that was missed enters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final

import numpy as np

from gcnsim.caching.policies import AtRandom, ByDegree, ByInclusion, CachePolicy
from gcnsim.errors import ScenarioError, nearest
from gcnsim.ids import AnyArray, IntArray

_CERTAIN: Final = 1.0 - 2.0**-24
"""The largest float32 below 1: what a stored chance of 1 may have been."""


class ByDegreeRatio:
    """The largest ratio of in- to out-degree first (AliGraph), as a trace tells it; ties by degree, then by index.

    Graphs here are undirected, where the ratio over the whole graph is 1 for every node. So the in-degree is the
    worker's own: j's cross edges m_j, the rows that read j. A trace holds the chance 1 - (1 - epsilon)^m_j, so the
    ratio is ln(1 - chance) / (ln(1 - epsilon) d_j): exact at the uniform rate, an estimate where rates differ by edge.
    """

    name: ClassVar[str] = "degree-ratio"

    def ranking(self, inclusion: AnyArray, degree: AnyArray, generator: np.random.Generator) -> IntArray:
        """Descending ln(1 - chance) / degree in magnitude (epsilon scales all alike), then descending degree."""
        reads = -np.log1p(-np.minimum(inclusion.astype(np.float64), _CERTAIN))
        return np.lexsort((-degree.astype(np.int64), -reads / np.maximum(degree, 1)))


RANKINGS: Final[Mapping[str, CachePolicy]] = {
    rule.name: rule for rule in (AtRandom(), ByDegree(), ByDegreeRatio(), ByInclusion())
}
REFRESHED: Final = "inclusion-refresh"
DEMAND: Final = ("fifo", "lru", "lfu", "s3-fifo", "sieve", "arc", "belady")

KINDS: Final[Mapping[str, str]] = (
    dict.fromkeys(RANKINGS, "static") | {REFRESHED: "refreshed"} | dict.fromkeys(DEMAND, "demand")
)
"""Every rule that can be compared, in the order of tables -> its kind."""

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "all": tuple(KINDS),
    "static": (*RANKINGS, REFRESHED),
    "demand": DEMAND,
}
"""Names for several rules. `static` has all that need no package beyond the core ones."""


def expanded(asked: Iterable[str]) -> tuple[str, ...]:
    """The rules that names of rules and groups stand for, each once, in the order of KINDS.

    Raises ScenarioError for an unknown name.
    """
    found: set[str] = set()
    for name in asked:
        if name not in GROUPS and name not in KINDS:
            raise ScenarioError(f"cache policy: unknown {name!r}; {nearest(name, (*GROUPS, *KINDS))}")
        found.update(GROUPS.get(name, (name,)))
    return tuple(name for name in KINDS if name in found)
