"""Cache rules: which boundary nodes' feature rows a worker keeps on its GPU.

Only input features (layer 0) can hit: deeper rows change every iteration.

A name says what kind a rule is. `static`: the best rows of a ranking, fetched before the first graph and kept.
`refreshed`: the same, ranked anew every so many graphs. `demand`: empty at first; every row that was missed enters.

The static cache of mini-batch loaders holds the rows of highest degree, filled once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Protocol

import numpy as np

from gcnsim.errors import ScenarioError, nearest
from gcnsim.graph import Graph
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


def most_connected(graph: Graph, holds: BoolArray, rows: int) -> BoolArray:
    """The `rows` nodes of highest degree among those that a part holds, ties by id, bool[N] (PaGraph's cache).

    holds: bool[N]. A degree counts neighbours in the part.
    """
    nodes = np.flatnonzero(holds)
    mask = np.zeros(graph.nodes, np.bool_)
    if rows <= 0:
        return mask
    degree = graph.degrees[nodes] if holds.all() else _degrees_within(graph, holds)[nodes]
    mask[nodes[np.argsort(-degree, kind="stable")[:rows]]] = True
    return mask


def _degrees_within(graph: Graph, holds: BoolArray) -> IntArray:
    """Neighbours of every node among those held."""
    inside = np.concatenate([[0], np.cumsum(holds[graph.indices])])
    within: IntArray = inside[graph.indptr[1:]] - inside[graph.indptr[:-1]]
    return within
