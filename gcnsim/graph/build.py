"""Building a `Graph`: from entries or from compressed rows to the invariant of `csr`, counting what changes.

A graph that is clean already is verified (one comparison per entry and one transposition), not sorted again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gcnsim.errors import GraphError
from gcnsim.graph.csr import Cleaning, Graph
from gcnsim.ids import AnyArray, BoolArray, Int32Array, frozen

if TYPE_CHECKING:
    from scipy.sparse import csr_array

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
    # A clean graph passes through uncopied, which a caller who may still write to `cols` must not notice.
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
    """The entries as sorted rows without duplicates; as they are when they come in that order.

    The values are booleans: sums of duplicates stay True, so that no entry can cancel out or overflow to zero.
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
    """`given` with the missing directions added: itself when its transpose has the same entries."""
    from scipy.sparse import csr_array

    columns = given.tocsc()
    if np.array_equal(columns.indptr, given.indptr) and np.array_equal(columns.indices, given.indices):
        return given
    full: csr_array[Any] = given + csr_array((columns.data, columns.indices, columns.indptr), shape=given.shape)
    return full
