"""One iteration's graph on one worker: its matrices, the rows it needs of others, and the rows others need of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from gcnsim.ids import BoolArray, IntArray
from runtime.aggregate import Matrix, Rows


@dataclass(frozen=True)
class CachedRows:
    """A feature cache as a graph sees it: an unchanging snapshot.

    slot: int32[B], the row of `rows` that holds a boundary index, -1 where none does. rows: [C, d_0].
    """

    slot: IntArray
    rows: Tensor


@dataclass(frozen=True)
class Requests:
    """What the other workers need of this one, per peer one after the other.

    index: int64[R] local ids. ptr: P + 1 places. misses: per peer, how many of its rows, the first, its cache lacks.
    """

    index: Tensor
    ptr: tuple[int, ...]
    misses: tuple[int, ...]

    @property
    def rows(self) -> int:
        """R, rows sent per layer."""
        return self.ptr[-1]


@dataclass(frozen=True)
class SampledGraph:
    """The graph that iteration `graph` trains.

    inner: [I, I] and boundary: [I, U] (None when U = 0) hold the weights of kept entries. needed: boundary indices in
    the order of the boundary matrix's columns, grouped by owner; within an owner those that the cache lacks come first.
    ptr: P + 1 places in `needed`. misses: per owner, rows that the cache lacks. edges: inner and boundary entries kept,
    self-loops not counted. joined: `pattern` where it was made with the graph; `inner` and `boundary` then have no
    transposes.
    """

    graph: int
    inner: Matrix
    boundary: Matrix | None
    needed: IntArray
    ptr: tuple[int, ...]
    misses: tuple[int, ...]
    edges: tuple[int, int]
    requests: Requests | None = None
    held: CachedRows | None = None
    joined: Matrix | None = None

    @property
    def rows(self) -> int:
        """U, boundary rows needed per layer."""
        return self.ptr[-1]

    @property
    def hits(self) -> int:
        """Rows of layer 0 that the cache holds."""
        return self.rows - sum(self.misses)

    @cached_property
    def pattern(self) -> Matrix:
        """Kept entries of inner and boundary columns side by side, [I, I + U]."""
        if self.joined is not None:
            return self.joined
        if self.boundary is None:
            return self.inner
        rows = side_by_side(self.inner.rows, self.boundary.rows)
        return type(self.inner)(rows, self.inner.dtype, self.inner.device)

    def asked(self) -> Requests:
        """What the others need; the ids must have been exchanged."""
        assert self.requests is not None, "the requests of this graph were never exchanged"
        return self.requests

    def with_requests(self, requests: Requests) -> SampledGraph:
        """This graph with the requests of the other workers."""
        return replace(self, requests=requests)


def side_by_side(left: Rows, right: Rows) -> Rows:
    """The entries of both, columns of `right` after those of `left`; within a row those of `left` first."""
    count = left.indptr.size - 1
    row = np.concatenate([np.repeat(np.arange(count), np.diff(side.indptr)) for side in (left, right)])
    order = np.argsort(row, kind="stable")
    columns = np.concatenate([left.columns, right.columns + np.int32(left.width)])[order]
    values = np.concatenate([left.values, right.values])[order]
    return Rows(left.indptr + right.indptr, columns, values, left.width + right.width)


def order_of(
    needed: BoolArray, owner_ptr: IntArray, held: CachedRows | None
) -> tuple[IntArray, tuple[int, ...], tuple[int, ...]]:
    """The order in which boundary rows are asked for: by owner, misses before hits, ascending; ptr; misses per owner.

    needed: bool[B]; owner_ptr: int64[P + 1], the boundary indices of each owner.
    """
    index = np.flatnonzero(needed)
    ptr = np.searchsorted(index, owner_ptr)
    counts = np.diff(ptr)
    if held is None:
        return index, tuple(ptr.tolist()), tuple(counts.tolist())
    owner = np.repeat(np.arange(counts.size), counts)
    hit = held.slot[index] >= 0
    order = np.lexsort((index, hit, owner))
    misses = np.bincount(owner[~hit], minlength=counts.size)
    return index[order], tuple(ptr.tolist()), tuple(misses.tolist())


def static_requests(send_sets: tuple[IntArray, ...], device: torch.device) -> Requests:
    """The requests when every boundary row is needed: the send sets."""
    sizes = [int(ids.size) for ids in send_sets]
    index = torch.from_numpy(np.concatenate(send_sets).astype(np.int64)).to(device)
    return Requests(index, tuple(np.r_[0, np.cumsum(sizes)].tolist()), tuple(sizes))
