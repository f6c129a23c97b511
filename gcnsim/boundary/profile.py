"""The boundary profile: how many cross edges boundary nodes have, enough to draw access counts without the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gcnsim.ids import FloatArray, IntArray, Rank, frozen
from gcnsim.partition import Part


@dataclass(frozen=True, slots=True)
class BoundaryProfile:
    """Boundary nodes of worker n owned by m, counted by their number of cross edges (neighbours among n's inner nodes).

    cross_edges: int64[K], ascending, >= 1: the classes. of_worker: the boundary nodes of one worker by owner and class,
    int64[P, K] (0 for the worker itself); made when it is asked for, since those of 1,024 workers are half a gigabyte.
    pairs: int64[P, P]: the same without classes. inner_nodes, inner_entries, boundary_entries: int64[P]: nodes of n,
    and stored entries of its rows that end inside and outside; boundary_entries[n] is the sum over m and k of
    of_worker(n)[m, k] cross_edges[k].
    """

    cross_edges: IntArray
    of_worker: Callable[[Rank], IntArray]
    pairs: IntArray
    inner_nodes: IntArray
    inner_entries: IntArray
    boundary_entries: IntArray

    @property
    def parts(self) -> int:
        """P, the number of workers."""
        return int(self.inner_nodes.size)

    @property
    def nodes(self) -> IntArray:
        """Boundary nodes of worker n owned by m, by class, int64[P, P, K]: of few workers only."""
        return np.stack([self.of_worker(rank) for rank in range(self.parts)])

    @property
    def boundary_nodes(self) -> IntArray:
        """B of every worker, int64[P]."""
        total: IntArray = self.pairs.sum(axis=1)
        return total

    @property
    def entries(self) -> IntArray:
        """Stored entries of every worker's rows, int64[P]."""
        return self.inner_entries + self.boundary_entries

    @property
    def cross_fraction(self) -> float:
        """Share of all stored entries that end in another partition; 0 without entries."""
        total = int(self.entries.sum())
        return int(self.boundary_entries.sum()) / total if total else 0.0


def profile_of(parts: Sequence[Part]) -> BoundaryProfile:
    """The exact profile of real parts, one class per number of cross edges that occurs."""
    multiplicity = [cross_edges(part) for part in parts]
    classes = np.unique(np.concatenate([np.empty(0, np.int64), *multiplicity]))
    nodes = np.zeros((len(parts), len(parts), classes.size), np.int64)
    for part, cross in zip(parts, multiplicity, strict=True):
        for owner in range(part.parts):
            owned = cross[part.boundary_ptr[owner] : part.boundary_ptr[owner + 1]]
            nodes[part.rank, owner] = np.bincount(np.searchsorted(classes, owned), minlength=classes.size)
    boundary = np.array([cross.sum() for cross in multiplicity], np.int64)
    entries = np.array([part.entries for part in parts], np.int64)
    return BoundaryProfile(
        cross_edges=frozen(classes),
        of_worker=frozen(nodes).__getitem__,
        pairs=frozen(nodes.sum(axis=2)),
        inner_nodes=frozen(np.array([part.inner_nodes for part in parts], np.int64)),
        inner_entries=frozen(entries - boundary),
        boundary_entries=frozen(boundary),
    )


def class_inclusion(profile: BoundaryProfile, epsilon: float) -> FloatArray:
    """The chance that a node of each class is needed when every edge is kept at rate `epsilon`: 1 - (1 - epsilon)^m."""
    with np.errstate(divide="ignore"):
        chance: FloatArray = -np.expm1(profile.cross_edges * np.log1p(-np.float64(epsilon)))
    return chance


def expected_rows(profile: BoundaryProfile, epsilon: float) -> FloatArray:
    """Boundary rows of n owned by m that a graph drawn at the uniform rate needs in expectation, float64[P, P]."""
    chance = class_inclusion(profile, epsilon)
    return np.stack([profile.of_worker(rank) @ chance for rank in range(profile.parts)])


def cross_edges(part: Part) -> IntArray:
    """Cross edges of every boundary node, int64[B]."""
    index = part.columns[part.columns >= part.inner_nodes] - part.inner_nodes
    return np.bincount(index, minlength=part.boundary_nodes)
