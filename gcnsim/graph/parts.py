"""One worker's share of a partitioned graph, the sets that cross partitions, and replicated blocks.

`split` derives the inner nodes, boundary nodes, local rows and send sets of every worker from the owners. Law: S(n, m)
== B(m) ∩ I(n): n sends to m exactly the boundary nodes of m that n owns. Boundary rows of a worker are grouped by owner
and, within an owner, sorted by the owner's local id. The k-th row received is thus the k-th row sent, and static sets
need no ids in messages.

`Replicas` says which workers store and multiply which block (CAGNET, 1.5D). Block b consists of the parts of the
workers b c to b c + c - 1, and these c workers store it. Member m of each block's c holders multiplies the m-th share
of the blocks; the last one takes the remainder. The blocks that a member needs come from members m of the other blocks.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from gcnsim.core.errors import GraphError
from gcnsim.core.ids import Int32Array, IntArray, Rank, frozen
from gcnsim.graph.csr import Graph

FROM_FILE: Final = "file"
"""The method of a partition from a file."""


@dataclass(frozen=True, slots=True)
class Partitioning:
    """The owner of each node. owner: int32[N] with values 0..parts-1, every part non-empty."""

    owner: Int32Array
    parts: int
    method: str
    """`metis-vol`, `metis-cut`, with further options of METIS (`metis-cut-recursive`, `metis-vol-10%-by-edges`),
    `random` or `block`; `file` if the nodes were assigned elsewhere."""
    seed: int
    graph_name: str
    graph_hash: str
    note: str = ""
    """The assumption made when it was read; empty without one."""

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


def split(graph: Graph, partitioning: Partitioning) -> tuple[Part, ...]:
    """Every worker's part, by rank.

    A row's columns keep the order of their global ids. Time: one pass over the entries, plus parts * N.
    Raises GraphError when the owners are not this graph's (another node count, a rank out of range).
    """
    _check(graph, partitioning)
    owner, parts = partitioning.owner, partitioning.parts
    by_owner = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=parts))
    degrees = graph.degrees
    local = np.empty(graph.nodes, dtype=np.int32)
    inner = np.split(by_owner, ends[:-1])
    return tuple(_part(graph, owner, parts, rank, inner[rank], degrees, local) for rank in range(parts))


def part_of(graph: Graph, partitioning: Partitioning, rank: Rank) -> Part:
    """Worker `rank`'s part only, equal to `split(graph, partitioning)[rank]`: one pass over the nodes and its rows.

    Raises GraphError as `split` does, and for an unknown rank.
    """
    _check(graph, partitioning)
    if not 0 <= rank < partitioning.parts:
        raise GraphError(f"{graph.name}: part {rank} of {partitioning.parts}; 0 to {partitioning.parts - 1} are there")
    inner = np.flatnonzero(partitioning.owner == rank)
    local = np.empty(graph.nodes, dtype=np.int32)
    return _part(graph, partitioning.owner, partitioning.parts, rank, inner, graph.degrees, local)


def own_send_sets(part: Part) -> tuple[IntArray, ...]:
    """S(n, m) for every m, the local ids of n's inner nodes on the boundary of m, int64, ascending; from n's part
    alone.

    The k-th is the k-th of m's boundary rows of owner n; empty for n == m. The graph is symmetric, so these are exactly
    the inner nodes of n with a neighbour owned by m.
    """
    rows = np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))
    cross = part.columns >= part.inner_nodes
    owners = np.repeat(np.arange(part.parts), np.diff(part.boundary_ptr))
    wanted = owners[part.columns[cross] - part.inner_nodes] * part.inner_nodes + rows[cross]
    pairs = np.unique(wanted)
    starts = np.searchsorted(pairs, np.arange(part.parts + 1) * part.inner_nodes)
    return tuple(frozen(pairs[starts[m] : starts[m + 1]] - m * part.inner_nodes) for m in range(part.parts))


def _check(graph: Graph, partitioning: Partitioning) -> None:
    owner, parts = partitioning.owner, partitioning.parts
    if owner.size != graph.nodes:
        raise GraphError(f"{graph.name}: {graph.nodes} nodes, but the partition has {owner.size}")
    if owner.min() < 0 or owner.max() >= parts:
        raise GraphError(f"{graph.name}: owners run from {owner.min()} to {owner.max()}; 0 to {parts - 1} are allowed")


def _part(
    graph: Graph, owner: Int32Array, parts: int, rank: Rank, inner: IntArray, degrees: IntArray, local: Int32Array
) -> Part:
    """`local` is scratch, int32[N]: only the ids of this part's nodes are written, and only those are read."""
    inner_degree = degrees[inner]
    indptr = np.zeros(inner.size + 1, dtype=np.int64)
    np.cumsum(inner_degree, out=indptr[1:])
    entries = np.repeat(graph.indptr[inner] - indptr[:-1], inner_degree)
    entries += np.arange(entries.size)
    columns = graph.indices[entries]
    seen = np.zeros(graph.nodes, dtype=np.bool_)
    seen[columns] = True
    seen[inner] = False
    outside = np.flatnonzero(seen)
    boundary = outside[np.argsort(owner[outside], kind="stable")]
    boundary_ptr = np.searchsorted(owner[boundary], np.arange(parts + 1)).astype(np.int64, copy=False)
    local[inner] = np.arange(inner.size, dtype=np.int32)
    local[boundary] = np.arange(inner.size, inner.size + boundary.size, dtype=np.int32)
    return Part(
        rank=rank,
        parts=parts,
        inner=frozen(inner),
        boundary=frozen(boundary),
        boundary_ptr=frozen(boundary_ptr),
        indptr=frozen(indptr),
        columns=frozen(local[columns]),
        inner_degree=frozen(inner_degree),
        boundary_degree=frozen(degrees[boundary]),
    )


@dataclass(frozen=True, slots=True)
class Replicas:
    """`workers` workers, `copies` of which hold each block; `copies` divides `workers`.

    >>> [list(Replicas(6, 2).stages(member)) for member in (0, 1)]
    [[0], [1, 2]]
    """

    workers: int
    copies: int

    @property
    def blocks(self) -> int:
        """G, the number of blocks."""
        return self.workers // self.copies

    def block(self, rank: Rank) -> int:
        """The block that a worker stores."""
        return rank // self.copies

    def member(self, rank: Rank) -> int:
        """Its place among the workers that store the block."""
        return rank % self.copies

    def holders(self, block: int) -> list[Rank]:
        """The workers that store `block`, in the order of their places."""
        return [block * self.copies + member for member in range(self.copies)]

    def ring(self, member: int) -> list[Rank]:
        """The workers with place `member` among the holders of each block, in the order of the blocks."""
        return [block * self.copies + member for block in range(self.blocks)]

    def stages(self, member: int) -> range:
        """The blocks that this member of each block's holders multiplies."""
        each = self.blocks // self.copies
        last = member == self.copies - 1
        return range(member * each, self.blocks if last else (member + 1) * each)

    def merged(self, partitioning: Partitioning) -> Partitioning:
        """The blocks as separate parts."""
        owner = partitioning.owner // self.copies
        return replace(partitioning, owner=frozen(owner), parts=self.blocks, method="file")


def allowed_copies(workers: int) -> str:
    """The possible numbers of workers that store the same block, in words."""
    return ", ".join(str(n) for n in range(2, workers + 1) if workers % n == 0) or "none with one worker"
