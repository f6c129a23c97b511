"""One iteration's graph on one worker: its matrices, the rows it needs, and the rows that others need from it.

Requests to owners for rows, norms and features use one message per peer and kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import BoolArray, Float32Array, IntArray
from runtime.aggregate import Matrix, Rows, kept_for_compute
from runtime.data import Share
from runtime.exchange.channels import Channel, Message


@dataclass(frozen=True)
class CachedRows:
    """A feature cache as a graph uses it: an immutable snapshot.

    slot: int32[B], the index in `rows` of each boundary index, -1 if it is not cached. rows: [C, d_0].
    """

    slot: IntArray
    rows: Tensor


@dataclass(frozen=True)
class Requests:
    """The rows that other workers need from this one, peer by peer.

    index: int64[R] local ids. ptr: P + 1 offsets. misses: per peer, how many of its rows (the first ones) are not in
    its cache.
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

    inner: [I, I] and boundary: [I, U] (None if U = 0) contain the weights of kept entries. needed: boundary indices in
    the order of the boundary matrix's columns, grouped by owner; within an owner, uncached ones come first. ptr: P + 1
    offsets in `needed`. misses: per owner, uncached rows. edges: inner and boundary entries kept, without self-loops.
    joined: `pattern` if it was built with the graph; `inner` and `boundary` then have no transposes.
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
        """Rows of layer 0 that are in the cache."""
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

    def incoming_requests(self) -> Requests:
        """The requests of others; the ids must have been exchanged."""
        assert self.requests is not None, "the requests of this graph were never exchanged"
        return self.requests

    def with_requests(self, requests: Requests) -> SampledGraph:
        """This graph with the requests of the other workers."""
        return replace(self, requests=requests)


def side_by_side(left: Rows, right: Rows) -> Rows:
    """The entries of both, with the columns of `right` after those of `left`; within a row, `left` comes first."""
    count = left.indptr.size - 1
    row = np.concatenate([np.repeat(np.arange(count), np.diff(side.indptr)) for side in (left, right)])
    order = np.argsort(row, kind="stable")
    columns = np.concatenate([left.columns, right.columns + np.int32(left.width)])[order]
    values = np.concatenate([left.values, right.values])[order]
    return Rows(left.indptr + right.indptr, columns, values, left.width + right.width)


def order_of(
    needed: BoolArray, owner_ptr: IntArray, held: CachedRows | None
) -> tuple[IntArray, tuple[int, ...], tuple[int, ...]]:
    """The request order of boundary rows: by owner, misses before hits, ascending; ptr; misses per owner.

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
    """The requests if every boundary row is needed: the send sets."""
    sizes = [int(ids.size) for ids in send_sets]
    index = torch.from_numpy(np.concatenate(send_sets).astype(np.int64)).to(device)
    return Requests(index, tuple(np.r_[0, np.cumsum(sizes)].tolist()), tuple(sizes))


Done = Callable[[Message], None]


def request_rows(
    channel: Channel,
    share: Share,
    needed: IntArray,
    ptr: Sequence[int],
    misses: Sequence[int],
    device: torch.device,
    done: Done = lambda _: None,
) -> Requests:
    """Send every owner the ids of the wanted rows, and receive the requests of others.

    needed: boundary indices grouped by owner at `ptr`, of which the first `misses` per owner are not cached. An id in a
    message is a position in the owner's send set, int32. Every rank must call it at the same time.
    """
    peers = range(len(ptr) - 1)
    sizes = torch.tensor([[ptr[m + 1] - ptr[m], misses[m]] for m in peers], dtype=torch.int32)
    heard = torch.zeros_like(sizes)
    others = [m for m in peers if m != channel.rank]
    heads = [Message(m, heard[m], False) for m in others] + [Message(m, sizes[m], True) for m in others]
    channel.exchange(heads, done)
    start = np.asarray(share.part.boundary_ptr)
    wanted = [torch.from_numpy((needed[ptr[m] : ptr[m + 1]] - start[m]).astype(np.int32)) for m in peers]
    requested = [torch.empty(int(heard[m, 0]), dtype=torch.int32) for m in peers]
    ids = [Message(m, requested[m], False) for m in others] + [Message(m, wanted[m], True) for m in others]
    channel.exchange(ids, done)
    index = [share.send_sets[m][requested[m].numpy()] for m in peers]
    counts = [array.size for array in index]
    rows = torch.from_numpy(np.concatenate(index).astype(np.int64)).to(device)
    kept_for_compute(rows)
    return Requests(rows, tuple(np.r_[0, np.cumsum(counts)].tolist()), tuple(heard[:, 1].tolist()))


def fetch_rows(channel: Channel, share: Share, rows: Tensor, wanted: IntArray, done: Done = lambda _: None) -> Tensor:
    """Fetch the rows of the boundary nodes `wanted` (boundary indices, ascending) from their owners' `rows`, [k, d]."""
    owner_ptr = np.searchsorted(wanted, share.part.boundary_ptr)
    counts = np.diff(owner_ptr)
    requests = request_rows(channel, share, wanted, owner_ptr.tolist(), counts.tolist(), rows.device, done)
    outgoing = rows.detach()[requests.index].cpu()
    incoming = torch.empty(wanted.size, rows.shape[1], dtype=rows.dtype)
    messages = []
    for m in range(counts.size):
        messages.append(Message(m, incoming[owner_ptr[m] : owner_ptr[m + 1]], False))
        messages.append(Message(m, outgoing[requests.ptr[m] : requests.ptr[m + 1]], True))
    channel.exchange(messages, done)
    return incoming.to(rows.device)


def exchange_norms(channel: Channel, share: Share, inner: Tensor, done: Done = lambda _: None) -> Float32Array:
    """The norms of all local ids, float32[I + B], from all workers' norms of inner nodes, float32[I]."""
    own: Any = inner.detach().cpu().float()
    ptr = share.part.boundary_ptr
    incoming = torch.empty(share.part.boundary_nodes, dtype=torch.float32)
    messages = []
    for m, ids in enumerate(share.send_sets):
        messages.append(Message(m, incoming[int(ptr[m]) : int(ptr[m + 1])], False))
        messages.append(Message(m, own[torch.from_numpy(ids.copy())], True))
    channel.exchange(messages, done)
    return np.concatenate([own.numpy(), incoming.numpy()])
