"""Expected neighbourhoods of mini-batches, from degrees alone: the expectation of `neighbour_batch` without a graph.

Mean field: an entry that a node follows leads to any node in proportion to its degree, within the group (part) that it
leads to. A node of degree d is missed by M entries into a group of E entries with probability exp(-M d / E). Two
corrections apply. A node that was reached has one entry back to its predecessor, and a node that samples again may
follow the same entry; both lead to nodes already included.

In a directed graph a node samples nodes that point to it. Their number is independent of how often the node is sampled,
and no entry leads back.

Not modelled: that neighbours of a node are neighbours of each other, and that nodes of similar degree are neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray

CLASSES = 64
"""Classes of degrees, of equal width in the normal variable."""

WIDEST = 4.5
"""Normal variables that the classes span, to either side."""


@dataclass(frozen=True, slots=True)
class DegreeLaw:
    """The distribution of degrees over `nodes` nodes. degree, share: float64[K], ascending; the shares add up to 1.

    directed: in-degrees and out-degrees both have this distribution, independently.
    """

    nodes: float
    degree: FloatArray
    share: FloatArray
    directed: bool = False

    @property
    def mean(self) -> float:
        """Mean degree."""
        return float(self.degree @ self.share)

    def drawn(self, amount: int | float) -> tuple[FloatArray, FloatArray]:
        """The neighbours that a node of each class samples, and their share of its neighbours, float64[K] both."""
        took = self.degree * amount if isinstance(amount, float) else np.minimum(self.degree, amount)
        part = took / np.maximum(self.degree, 1e-12)
        if self.directed:
            # For the mean node, and for the mean sampled neighbour: the class determines neither.
            mean = float(self.share @ took)
            return np.full_like(took, mean), np.full_like(took, float(self.share @ (took * part)) / max(mean, 1e-300))
        return took, part


@dataclass(frozen=True, slots=True)
class Expected:
    """An expected mini-batch. chance: per level, float64[G, K]: the probability that it contains a node of a group and
    class. entries: per layer. looked: entries that sampling reads.
    """

    chance: tuple[FloatArray, ...]
    entries: tuple[float, ...]
    looked: float


@dataclass(frozen=True, slots=True)
class Groups:
    """Parts of a graph. size: float64[G], shares of the nodes. leads: float64[G, G], probability that an entry of a
    node of one group leads to another.
    """

    size: FloatArray
    leads: FloatArray

    @classmethod
    def one(cls) -> Groups:
        """A single group."""
        return cls(np.ones(1), np.ones((1, 1)))

    @classmethod
    def own_and_others(cls, parts: int, crossing: float) -> Groups:
        """One of `parts` equal parts and all others; crossing: probability that an entry leaves its part."""
        if parts == 1:
            return cls.one()
        back = crossing / (parts - 1)
        return cls(np.array([1 / parts, 1 - 1 / parts]), np.array([[1 - crossing, crossing], [back, 1 - back]]))


DEGREE_SPREAD: Final = 1.2
"""Standard deviation of the log of degrees for a dataset without a surrogate."""


def lognormal_law(nodes: float, mean: float, spread: float) -> DegreeLaw:
    """Degrees whose logarithm is normal with the standard deviation `spread`, of the given mean."""
    normal = NormalDist()
    cuts = np.linspace(-WIDEST, WIDEST, CLASSES + 1)
    below = np.array([normal.cdf(cut) for cut in cuts])
    weighted = np.array([normal.cdf(cut - spread) for cut in cuts])
    share, weight = np.diff(below), np.diff(weighted)
    share /= share.sum()
    degree = weight / share
    return DegreeLaw(nodes, degree * (mean / float(degree @ share)), share)


def expected_neighbours(
    law: DegreeLaw, targets: FloatArray, fanout: Sequence[int | float], groups: Groups | None = None
) -> Expected:
    """The expectation of `neighbour_batch`. targets: float64[G], probability that a node is in the batch."""
    parts = groups or Groups.one()
    degree = law.degree
    fresh = np.repeat(targets[:, None], degree.size, axis=1)
    cohorts = [(fresh, np.zeros_like(fresh))]
    """Nodes by when they came in: chance, and share of their entries that lead to what is there because of them."""
    chance, looked = [fresh], 0.0
    entries: list[float] = []
    for amount in reversed(fanout):
        took, part = law.drawn(amount)
        own = np.full_like(degree, law.mean) if law.directed else degree
        useful = np.zeros(parts.size.size)
        edges = 0.0
        for there, known in cohorts:
            nodes = law.nodes * parts.size[:, None] * law.share * there
            useful += (nodes * took * (1.0 - known)).sum(axis=1)
            edges += float((nodes * took).sum())
            looked += float((nodes * (own if isinstance(amount, float) else took)).sum())
        into = useful @ parts.leads
        ending = law.nodes * parts.size * law.mean
        missed = np.exp(-np.outer(into / ending, degree))
        reached = (1.0 - chance[0]) * (1.0 - missed)
        back = np.zeros_like(degree) if law.directed else np.minimum(1.0, 1.0 / np.maximum(degree, 1.0))
        cohorts = [(there, 1.0 - (1.0 - known) * (1.0 - part)) for there, known in cohorts]
        cohorts.append((reached, np.broadcast_to(back, reached.shape)))
        chance.insert(0, chance[0] + reached)
        entries.insert(0, edges)
    return Expected(tuple(chance), tuple(entries), looked)


def expected_layers(law: DegreeLaw, targets: float, sizes: Sequence[int]) -> Expected:
    """The expectation of `layer_batch`, for a graph without parts."""
    chance, looked = [np.full((1, law.degree.size), targets)], 0.0
    entries: list[float] = []
    for size in reversed(sizes):
        own = np.full_like(law.degree, law.mean) if law.directed else law.degree
        following = float(law.nodes * (law.share * chance[0] * own).sum())
        leading = law.degree * following / (law.nodes * law.mean)
        near = -np.expm1(-leading)
        weight = np.where(near > 0, leading / np.maximum(near, 1e-300), 1.0)
        chosen = near * _weighted(law.nodes * law.share * near, weight, float(size))
        entries.insert(0, law.nodes * float(law.share @ (weight * chosen)))
        chance.insert(0, 1.0 - (1.0 - chance[0]) * (1.0 - chosen))
        looked += following
    return Expected(tuple(chance), tuple(entries), looked)


def _weighted(nodes: FloatArray, weight: FloatArray, wanted: float) -> FloatArray:
    """The probability of each class if `wanted` of its `nodes` are sampled in proportion to weight, without
    replacement.

    float64[K]. A node of weight w is included with probability 1 - exp(-s w), with s such that the counts agree, found
    by bisection.
    """
    if wanted >= float(nodes.sum()):
        return np.ones_like(nodes)
    low, high = 0.0, 1e9
    for _ in range(100):
        scale = (low * high) ** 0.5 if low else high / 1e3
        enough = float(nodes @ -np.expm1(-scale * weight)) >= wanted
        low, high = (low, scale) if enough else (scale, high)
    return np.asarray(-np.expm1(-high * weight), dtype=np.float64)


def counted(law: DegreeLaw, groups: Groups, chance: FloatArray) -> FloatArray:
    """Expected nodes of each group, float64[G], from their chances, float64[G, K]."""
    return np.asarray(law.nodes * groups.size * (chance @ law.share), dtype=np.float64)
