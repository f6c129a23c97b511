"""The graph: an undirected, unweighted adjacency in compressed sparse rows, and how it is built.

Invariant: symmetric, sorted within a row, no self-loops, no duplicates. Self-loops of the GCN's A + I are added by the
weights (`gcn_weights`), never stored.

`build_csr` starts from entries and `from_csr` from compressed rows. Both establish the invariant and count what they
change, which loaders report. A graph that is already clean is verified (one comparison per entry and one
transposition), not sorted again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np

from gcnsim.core.errors import GraphError, plural
from gcnsim.core.ids import AnyArray, BoolArray, Int32Array, IntArray, frozen

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True)
class Cleaning:
    """The changes a loader made to reach the invariant; all zero if the file was clean."""

    self_loops_dropped: int = 0
    duplicates_dropped: int = 0
    reverse_entries_added: int = 0
    ignored: tuple[str, ...] = ()
    """Names of data in the source that the graph does not keep; `weights` for unnamed values."""
    second_kind_from: int = 0
    """The first node of the second kind if the source numbers two kinds separately; 0: one kind."""

    def __str__(self) -> str:
        """One line of text, e.g. `dropped 3 self-loops, ignored: weights`; `already clean` without changes."""
        clauses = [
            f"dropped {plural(self.self_loops_dropped, 'self-loop')}" if self.self_loops_dropped else "",
            f"dropped {plural(self.duplicates_dropped, 'duplicate')}" if self.duplicates_dropped else "",
            f"added {plural(self.reverse_entries_added, 'reverse entry', 'reverse entries')}"
            if self.reverse_entries_added
            else "",
            f"ignored: {', '.join(self.ignored)}" if self.ignored else "",
        ]
        kinds = f"nodes of the second column are another kind, numbered from {self.second_kind_from:,}"
        changes = [", ".join(part for part in clauses if part), kinds if self.second_kind_from else ""]
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


def induced(graph: Graph, mask: BoolArray, name: str) -> Graph:
    """The subgraph called `name` of the nodes with kept[v], bool[N], in their order.

    >>> path = Graph(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1], np.int32), "path")
    >>> induced(path, np.array([True, True, False]), "edge").indices.tolist()
    [1, 0]
    """
    inside = np.repeat(mask, graph.degrees) & mask[graph.indices]
    before = np.concatenate([[0], np.cumsum(inside)])[graph.indptr]
    place = np.cumsum(mask, dtype=np.int64) - 1
    indptr = np.concatenate([[0], np.cumsum(np.diff(before)[mask])]).astype(np.int64)
    indices = place[graph.indices[inside]].astype(np.int32)
    return replace(
        graph,
        indptr=frozen(indptr),
        indices=frozen(indices),
        name=name,
        cleaning=replace(graph.cleaning, second_kind_from=0),
        unused_ids=0,
        original_ids=_kept(graph.original_ids, mask),
    )


def _kept(ids: Sequence[str] | IntArray | None, mask: BoolArray) -> Sequence[str] | IntArray | None:
    if isinstance(ids, np.ndarray):
        return frozen(ids[mask])
    return ids and tuple(compress(ids, mask))


MOST_NODES = 2**31 - 1
"""Node ids are int32."""

_SPARSE_FROM, _SPARSE_RATIO = 1_000_000, 10

_PIECE = 1 << 16
"""Entries compared at a time: they stay in the cache."""


def build_csr(
    rows: AnyArray,
    cols: AnyArray,
    nodes: int,
    name: str,
    *,
    features: int | None = None,
    classes: int | None = None,
    ignored: tuple[str, ...] = (),
    where: str | None = None,
) -> Graph:
    """Build an undirected graph with an edge between rows[k] and cols[k] for every k.

    Missing directions are added; self-loops and duplicates are dropped. rows, cols: integers[E] in 0..nodes-1.
    features, classes: widths, if known. ignored: names of data in the source that the graph does not keep. where: the
    start of every message (default: `name`). Raises GraphError for ids out of range, other dtypes or lengths, no nodes,
    no edge between two different nodes, and over a million nodes of which nine in ten cannot have an edge.

    >>> path = build_csr(np.array([0, 1]), np.array([1, 2]), 3, "path")
    >>> path.indptr.tolist(), path.indices.tolist()
    ([0, 1, 3, 4], [1, 0, 2, 1])
    """
    at = where or name
    if not 0 < nodes <= MOST_NODES:
        raise GraphError(f"{at}: {'empty graph: ' if not nodes else ''}{nodes} nodes; 1 to {MOST_NODES} are allowed")
    if nodes > _SPARSE_FROM and nodes > _SPARSE_RATIO * 2 * rows.size:
        raise GraphError(f"{at}: {nodes:,} nodes for {rows.size:,} entries: nearly all would be isolated")
    sources, targets = _ids(rows, nodes, at), _ids(cols, nodes, at)
    if sources.size != targets.size:
        raise GraphError(f"{at}: {sources.size} row ids and {targets.size} column ids; the lengths must be equal")
    keep: BoolArray = sources != targets
    loops = sources.size - int(np.count_nonzero(keep))
    if loops == sources.size:
        raise GraphError(f"{at}: empty graph: no edge between two different nodes ({nodes} nodes, {loops} self-loops)")
    if loops:
        sources, targets = sources[keep], targets[keep]
    given = _canonical(sources, targets, nodes)
    full = _symmetric(given)
    cleaning = Cleaning(loops, sources.size - int(given.nnz), int(full.nnz - given.nnz), ignored)
    # A clean graph is not copied, unless the caller may still write to `cols`.
    shared = cols.flags.writeable and np.may_share_memory(full.indices, cols)
    indices = full.indices.astype(np.int32, copy=shared)
    return Graph(frozen(full.indptr.astype(np.int64)), frozen(indices), name, features, classes, cleaning)


def from_csr(
    indptr: AnyArray,
    indices: AnyArray,
    name: str,
    *,
    features: int | None = None,
    classes: int | None = None,
    ignored: tuple[str, ...] = (),
    where: str | None = None,
) -> Graph:
    """The graph of compressed rows: indptr integers[N + 1], indices integers[nnz]; cleaned like `build_csr`.

    Raises GraphError when indptr does not start at 0, decreases or does not end at nnz, and as `build_csr` does.
    """
    at = where or name
    if indptr.ndim != 1 or indptr.dtype.kind not in "iu" or not indptr.size:
        raise GraphError(f"{at}: indptr is {indptr.dtype}{list(indptr.shape)}; integers[N + 1] are needed")
    if indptr[0] != 0 or indptr[-1] != indices.size:
        raise GraphError(f"{at}: indptr runs from {indptr[0]} to {indptr[-1]}; it must run from 0 to {indices.size}")
    falls = np.flatnonzero(indptr[1:] < indptr[:-1])
    if falls.size:
        raise GraphError(f"{at}: indptr decreases after row {falls[0]}")
    nodes = indptr.size - 1
    rows = np.repeat(np.arange(nodes, dtype=np.int32), (indptr[1:] - indptr[:-1]).astype(np.int64, copy=False))
    return build_csr(rows, indices, nodes, name, features=features, classes=classes, ignored=ignored, where=where)


def _ids(array: AnyArray, nodes: int, at: str) -> Int32Array:
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise GraphError(f"{at}: node ids are {array.dtype}{list(array.shape)}; a 1-D array of integers is needed")
    if array.size and (array.min() < 0 or array.max() >= nodes):
        found = array.min() if array.min() < 0 else array.max()
        raise GraphError(f"{at}: node id {found} is out of range; 0 to {nodes - 1} are allowed")
    return np.ascontiguousarray(array, dtype=np.int32)


def _canonical(rows: Int32Array, cols: Int32Array, nodes: int) -> csr_array[Any]:
    """The entries as sorted rows without duplicates; unchanged if they arrive in that order.

    The values are booleans: sums of duplicates stay True, so no entry can cancel out or overflow to zero.
    """
    from scipy.sparse import coo_array, csr_array

    values = np.ones(rows.size, dtype=np.bool_)
    if all(
        _ascending(rows[first : first + _PIECE + 1], cols[first : first + _PIECE + 1])
        for first in range(0, rows.size, _PIECE)
    ):
        indptr = np.searchsorted(rows, np.arange(nodes + 1, dtype=rows.dtype)).astype(np.int64, copy=False)
        return csr_array((values, cols, indptr), shape=(nodes, nodes))
    return coo_array((values, (rows, cols)), shape=(nodes, nodes)).tocsr()


def _ascending(rows: Int32Array, cols: Int32Array) -> bool:
    """Whether every entry comes after the one before it, by row and then by column."""
    here, there = rows[:-1], rows[1:]
    return bool(np.all((there > here) | ((there == here) & (cols[1:] > cols[:-1]))))


def _symmetric(given: csr_array[Any]) -> csr_array[Any]:
    """`given` with the missing directions added; `given` itself if its transpose has the same entries."""
    from scipy.sparse import csr_array

    columns = given.tocsc()
    if np.array_equal(columns.indptr, given.indptr) and np.array_equal(columns.indices, given.indices):
        return given
    full: csr_array[Any] = given + csr_array((columns.data, columns.indices, columns.indptr), shape=given.shape)
    return full
