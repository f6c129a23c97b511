"""What one worker holds of a partitioned graph, and the sets that cross partitions.

Law: S(n, m) == B(m) ∩ I(n): what n sends to m is exactly what m borders on and n owns. Boundary rows of a worker are
grouped by owner and, within an owner, sorted by the owner's local id, so that the k-th row received is the k-th row
sent and static sets need no ids on the wire.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from gcnsim.ids import Int32Array, IntArray, Rank

FROM_FILE: Final = "file"
"""The method of a partition that somebody else made."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Who owns each node. owner: int32[N] with values 0..parts-1, every part non-empty."""

    owner: Int32Array
    parts: int
    method: str
    """`metis-vol`, `metis-cut`, with what METIS was told besides (`metis-cut-recursive`, `metis-vol-10%-by-edges`),
    `random` or `block`; `file` when somebody else assigned the nodes."""
    seed: int
    graph_name: str
    graph_hash: str
    note: str = ""
    """What was assumed when it was read; empty where nothing was."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.owner.size)

    @property
    def owner_hash(self) -> str:
        """SHA-256 of the owners: the identity of a partition, as run folders have it."""
        return hashlib.sha256(self.owner.astype("<i4").tobytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class Part:
    """Worker `rank`'s share: its inner nodes, its boundary nodes, and its rows of the adjacency.

    inner: int64[I] global ids, ascending; the local id of inner[i] is i.
    boundary: int64[B] global ids, grouped by owner (ascending rank), ascending within an owner; the local id of
    boundary[k] is I + k, and k is its *boundary index*, the one id space of traces and caches.
    boundary_ptr: int64[parts + 1]; owner m's rows are boundary[boundary_ptr[m]:boundary_ptr[m + 1]] (empty for
    m == rank).
    indptr: int64[I + 1], columns: int32[nnz]: the rows of the adjacency of the inner nodes, columns as local ids.
    inner_degree, boundary_degree: int64[I], int64[B]: degrees in the whole graph, without self-loop.
    """

    rank: Rank
    parts: int
    inner: IntArray
    boundary: IntArray
    boundary_ptr: IntArray
    indptr: IntArray
    columns: Int32Array
    inner_degree: IntArray
    boundary_degree: IntArray

    @property
    def inner_nodes(self) -> int:
        """I, the number of inner nodes."""
        return int(self.inner.size)

    @property
    def boundary_nodes(self) -> int:
        """B, the number of boundary nodes."""
        return int(self.boundary.size)

    @property
    def entries(self) -> int:
        """Stored entries of this part's rows: inner and cross ones."""
        return int(self.columns.size)
