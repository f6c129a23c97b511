"""Describe a graph: the distribution of degrees, the connected components, and the homophily.

Some properties may make an answer misleading: `graph_notes` and `graph_warnings` report them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gcnsim.core.errors import plural
from gcnsim.core.ids import AnyArray, Int32Array, IntArray
from gcnsim.graph.csr import Cleaning, Graph

_CHUNK = 2**23
_PERCENTILES = (10, 25, 50, 75, 90, 99)


@dataclass(frozen=True, slots=True)
class DegreeBin:
    """Nodes with a degree from `least` to `most`, and the stored entries of their rows."""

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
    """How often the two ends of an edge have the same class.

    edge: share of the edges between nodes of known class whose ends have the same class (Zhu et al., "Beyond Homophily
    in Graph Neural Networks", 2020). adjusted: (edge - s) / (1 - s), with s the sum over classes of (degrees of the
    class / all degrees)^2, so that 0 corresponds to chance for any class sizes (Platonov et al., "Characterizing Graph
    Datasets for Node Classification", 2023); None if all degrees belong to one class. edges: the number of counted
    edges.
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
    """The 10, 25, 50, 75, 90 and 99 % quantiles of the degrees, by `p10`, ..., linearly interpolated."""
    values = np.percentile(graph.degrees, _PERCENTILES)
    return {f"p{share}": float(value) for share, value in zip(_PERCENTILES, values, strict=True)}


def components(graph: Graph) -> Components:
    """The connected components. Takes about 20 bytes per stored entry."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    values = np.ones(graph.entries, dtype=np.float64)  # the type that scipy would convert to anyway
    matrix = csr_array((values, graph.indices, graph.indptr), shape=(graph.nodes, graph.nodes))
    count, member = connected_components(matrix, directed=False)
    return Components(int(count), int(np.bincount(member).max()))


def homophily(graph: Graph, labels: AnyArray) -> Homophily | None:
    """The homophily for one class per node, labels int64[N], negative: unknown.

    None if no edge has two known classes.
    """
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
    """Rows and columns of the stored entries, in chunks of whole rows."""
    begin = 0
    while begin < graph.nodes:
        start = graph.indptr[begin]
        end = max(begin + 1, int(np.searchsorted(graph.indptr, start + _CHUNK, side="right")) - 1)
        rows = np.repeat(np.arange(begin, end), np.diff(graph.indptr[begin : end + 1]))
        yield rows, graph.indices[start : graph.indptr[end]]
        begin = end


MANY_ISOLATED = 0.05
"""The share of isolated nodes above which the file is probably wrong."""

_WORD = re.compile(r"[^\W\d]+")


def graph_warnings(graph: Graph) -> tuple[str, ...]:
    """One line for each property that the graph's owner probably did not intend.

    Many isolated nodes usually come from ids with gaps, because every number below the largest id is a node. A first
    line of names that appear on no other line may be a header.
    """
    return tuple(line for line in (_isolated(graph), _first_line(graph)) if line)


def graph_notes(graph: Graph) -> tuple[str, ...]:
    """The warnings, preceded by a line on what loading dropped: loops, duplicates, columns and arrays."""
    left_out = replace(graph.cleaning, reverse_entries_added=0, second_kind_from=0)
    kinds = replace(Cleaning(), second_kind_from=graph.cleaning.second_kind_from)
    notes = [f"{graph.name}: {cleaning}" for cleaning in (left_out, kinds) if cleaning != Cleaning()]
    return (*notes, *graph_warnings(graph))


def _isolated(graph: Graph) -> str | None:
    isolated = int(np.count_nonzero(graph.degrees == 0))
    if isolated <= MANY_ISOLATED * graph.nodes:
        return None
    note = f"{graph.name}: {isolated:,} of {graph.nodes:,} nodes are isolated (no edges)"
    if not graph.unused_ids:
        return note
    do = "does" if graph.unused_ids == 1 else "do"
    return (
        f"{note}: the ids have gaps, {plural(graph.unused_ids, 'number')} {do} not occur; --ids compact leaves them out"
    )


def _first_line(graph: Graph) -> str | None:
    names, other = graph.original_ids, graph.cleaning.second_kind_from or 1
    if not isinstance(names, tuple) or graph.nodes < 4 or list(graph.indices[: graph.indptr[1]]) != [other]:
        return None
    first, second = names[0], names[other]
    if graph.degrees[other] != 1 or not all(_WORD.fullmatch(name) for name in (first, second)):
        return None
    return (
        f"{graph.name}: the first line ({first}, {second}) may be a header, because its names occur on no other line; "
        f"--ends {first},{second} (workload.ends) treats it as one"
    )
