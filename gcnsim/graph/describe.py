"""What a graph looks like: how its degrees are spread, how many pieces it has, whether alike nodes are joined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gcnsim.graph.csr import Graph
from gcnsim.ids import AnyArray, Int32Array, IntArray

_CHUNK = 2**23
_PERCENTILES = (10, 25, 50, 75, 90, 99)


@dataclass(frozen=True, slots=True)
class DegreeBin:
    """Nodes whose degree is `least` to `most`, and the stored entries of their rows."""

    least: int
    most: int
    nodes: int
    entries: int


@dataclass(frozen=True, slots=True)
class Components:
    """Connected components, isolated nodes counted as one each. largest: nodes of the largest."""

    count: int
    largest: int


@dataclass(frozen=True, slots=True)
class Homophily:
    """How far the two ends of an edge are of one class.

    edge: share of the edges between nodes of known class whose ends are of the same (Zhu et al., "Beyond Homophily in
    Graph Neural Networks", 2020). adjusted: (edge - s) / (1 - s), s the sum over classes of (degrees of the class / all
    degrees)^2, so that 0 is what chance gives whatever the classes' sizes (Platonov et al., "Characterizing Graph
    Datasets for Node Classification", 2023); None where all degrees are of one class. edges: how many were counted.
    """

    edge: float
    adjusted: float | None
    edges: int


def degree_bins(graph: Graph) -> tuple[DegreeBin, ...]:
    """The degrees by powers of two: 0, 1, 2-3, 4-7, ..., up to the largest."""
    degrees = graph.degrees
    place = np.zeros(degrees.size, dtype=np.int64)
    place[degrees > 0] = np.frexp(degrees[degrees > 0])[1]
    nodes = np.bincount(place)
    entries = np.bincount(place, weights=degrees).astype(np.int64)
    return tuple(
        DegreeBin(2 ** (k - 1) if k else 0, 2**k - 1, int(nodes[k]), int(entries[k])) for k in range(nodes.size)
    )


def degree_percentiles(graph: Graph) -> dict[str, float]:
    """Degrees that 10, 25, 50, 75, 90 and 99 % of the nodes do not exceed, by `p10`, ..., linearly interpolated."""
    values = np.percentile(graph.degrees, _PERCENTILES)
    return {f"p{share}": float(value) for share, value in zip(_PERCENTILES, values, strict=True)}


def components(graph: Graph) -> Components:
    """The connected components. Takes about 20 bytes per stored entry."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    values = np.ones(graph.entries, dtype=np.float64)  # the kind that scipy would convert to anyway
    matrix = csr_array((values, graph.indices, graph.indptr), shape=(graph.nodes, graph.nodes))
    count, member = connected_components(matrix, directed=False)
    return Components(int(count), int(np.bincount(member).max()))


def homophily(graph: Graph, labels: AnyArray) -> Homophily | None:
    """The homophily under one class a node, labels int64[N], negative: unknown; None where no edge can be judged."""
    degrees = np.zeros(int(labels.max(initial=-1)) + 1, dtype=np.int64)
    same = 0
    for rows, columns in _entries(graph):
        first, second = labels[rows], labels[columns]
        known = (first >= 0) & (second >= 0)
        same += int(np.count_nonzero(known & (first == second)))
        degrees += np.bincount(first[known], minlength=degrees.size)
    total = int(degrees.sum())
    if not total:
        return None
    chance = float(np.square(degrees / total).sum())
    share = same / total
    adjusted = (share - chance) / (1 - chance) if np.count_nonzero(degrees) > 1 else None
    return Homophily(share, adjusted, total // 2)


def _entries(graph: Graph) -> Iterator[tuple[IntArray, Int32Array]]:
    """Rows and columns of the stored entries, by chunks of whole rows."""
    begin = 0
    while begin < graph.nodes:
        start = graph.indptr[begin]
        end = max(begin + 1, int(np.searchsorted(graph.indptr, start + _CHUNK, side="right")) - 1)
        rows = np.repeat(np.arange(begin, end), np.diff(graph.indptr[begin : end + 1]))
        yield rows, graph.indices[start : graph.indptr[end]]
        begin = end
