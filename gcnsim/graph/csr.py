"""The graph: an undirected, unweighted adjacency in compressed sparse rows.

Invariant: symmetric, sorted within a row, no self-loops, no duplicates. Loaders establish it and report what they
changed; self-loops of the GCN's A + I are added by the weights (`gcn_weights`), never stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np

from gcnsim.errors import plural
from gcnsim.ids import BoolArray, Int32Array, IntArray, frozen


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What a loader changed to reach the invariant; all zero when the file was clean."""

    self_loops_dropped: int = 0
    duplicates_dropped: int = 0
    reverse_entries_added: int = 0
    ignored: tuple[str, ...] = ()
    """Names of data in the source that the graph does not keep; `weights` for unnamed values."""
    second_kind_from: int = 0
    """The first node of the second kind if the source numbers two kinds separately; 0: one kind."""

    def __str__(self) -> str:
        """One line for people, e.g. `dropped 3 self-loops, ignored: weights`; `already clean` if nothing."""
        said = [
            f"dropped {plural(self.self_loops_dropped, 'self-loop')}" if self.self_loops_dropped else "",
            f"dropped {plural(self.duplicates_dropped, 'duplicate')}" if self.duplicates_dropped else "",
            f"added {plural(self.reverse_entries_added, 'reverse entry', 'reverse entries')}"
            if self.reverse_entries_added
            else "",
            f"ignored: {', '.join(self.ignored)}" if self.ignored else "",
        ]
        kinds = f"the second column's ids are nodes of another kind, from {self.second_kind_from:,} on"
        changes = [", ".join(part for part in said if part), kinds if self.second_kind_from else ""]
        return "; ".join(part for part in changes if part) or "already clean"


@dataclass(frozen=True, slots=True)
class Graph:
    """An undirected graph in compressed sparse rows: nodes 0..N-1 and both directions of every edge.

    indptr: int64[N + 1], read-only. indices: int32[nnz], read-only; the neighbours of node v are
    indices[indptr[v]:indptr[v + 1]], ascending. features, classes: widths that the source declares (None: unknown).
    """

    indptr: IntArray
    indices: Int32Array
    name: str
    features: int | None = None
    classes: int | None = None
    cleaning: Cleaning = field(default_factory=Cleaning)
    unused_ids: int = 0
    """In an edge list read by number: ids below the largest that appear on no line; each is an isolated node."""
    original_ids: Sequence[str] | IntArray | None = None
    """The id of node k in the file, if nodes were renumbered: texts, or integers[N] ascending."""

    @property
    def nodes(self) -> int:
        """Number of nodes N."""
        return int(self.indptr.size - 1)

    @property
    def entries(self) -> int:
        """Number of stored entries: both directions of every edge."""
        return int(self.indices.size)

    @property
    def degrees(self) -> IntArray:
        """Neighbours per node without the self-loop, int64[N]."""
        return np.diff(self.indptr)

    def content_hash(self) -> str:
        """SHA-256 of the structure only (indptr, indices), so a renamed file is the same graph."""
        digest = hashlib.sha256()
        for array in (self.indptr, self.indices):
            digest.update(np.ascontiguousarray(array).data.cast("B"))
        return digest.hexdigest()


def induced(graph: Graph, kept: BoolArray, name: str) -> Graph:
    """The sub-graph called `name` of the nodes with kept[v], bool[N], numbered in their order.

    >>> path = Graph(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32), "path")
    >>> induced(path, np.array([True, True, False]), "edge").indices.tolist()
    [1, 0]
    """
    inside = np.repeat(kept, graph.degrees) & kept[graph.indices]
    before = np.concatenate([[0], np.cumsum(inside)])[graph.indptr]
    place = np.cumsum(kept, dtype=np.int64) - 1
    indptr = np.concatenate([[0], np.cumsum(np.diff(before)[kept])]).astype(np.int64)
    indices = place[graph.indices[inside]].astype(np.int32)
    return replace(
        graph,
        indptr=frozen(indptr),
        indices=frozen(indices),
        name=name,
        cleaning=replace(graph.cleaning, second_kind_from=0),
        unused_ids=0,
        original_ids=_kept(graph.original_ids, kept),
    )


def _kept(ids: Sequence[str] | IntArray | None, kept: BoolArray) -> Sequence[str] | IntArray | None:
    if isinstance(ids, np.ndarray):
        return frozen(ids[kept])
    return ids and tuple(compress(ids, kept))
