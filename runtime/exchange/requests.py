"""Asking owners: which of their rows are wanted, for which norms, for which features. One message per peer and kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcnsim.ids import Float32Array, IntArray
from runtime.data import Share
from runtime.exchange.channels import Channel, Message
from runtime.exchange.sampled_graph import Requests

Done = Callable[[Message], None]


def ask(
    channel: Channel,
    share: Share,
    needed: IntArray,
    ptr: Sequence[int],
    misses: Sequence[int],
    device: torch.device,
    done: Done = lambda _: None,
) -> Requests:
    """Tell every owner which rows are wanted of it, and learn what the others want.

    needed: boundary indices grouped by owner at `ptr`, of which the first `misses` per owner are not cached. An id on
    the wire is a position in the owner's send set, int32. Every rank must ask at the same time.
    """
    peers = range(len(ptr) - 1)
    sizes = torch.tensor([[ptr[m + 1] - ptr[m], misses[m]] for m in peers], dtype=torch.int32)
    heard = torch.zeros_like(sizes)
    others = [m for m in peers if m != channel.rank]
    heads = [Message(m, heard[m], False) for m in others] + [Message(m, sizes[m], True) for m in others]
    channel.exchange(heads, done)
    start = np.asarray(share.part.boundary_ptr)
    wanted = [torch.from_numpy((needed[ptr[m] : ptr[m + 1]] - start[m]).astype(np.int32)) for m in peers]
    asked = [torch.empty(int(heard[m, 0]), dtype=torch.int32) for m in peers]
    ids = [Message(m, asked[m], False) for m in others] + [Message(m, wanted[m], True) for m in others]
    channel.exchange(ids, done)
    index = [share.send_sets[m][asked[m].numpy()] for m in peers]
    counts = [array.size for array in index]
    rows = torch.from_numpy(np.concatenate(index).astype(np.int64)).to(device)
    return Requests(rows, tuple(np.r_[0, np.cumsum(counts)].tolist()), tuple(heard[:, 1].tolist()))


def fetch_rows(channel: Channel, share: Share, rows: Tensor, wanted: IntArray, done: Done = lambda _: None) -> Tensor:
    """The rows of the boundary nodes `wanted` (boundary indices, ascending) out of their owners' `rows`, [k, d]."""
    owner_ptr = np.searchsorted(wanted, share.part.boundary_ptr)
    counts = np.diff(owner_ptr)
    asked = ask(channel, share, wanted, owner_ptr.tolist(), counts.tolist(), torch.device("cpu"), done)
    own = rows.detach().cpu()
    outgoing = own[asked.index]
    incoming = torch.empty(wanted.size, rows.shape[1], dtype=rows.dtype)
    messages = []
    for m in range(counts.size):
        messages.append(Message(m, incoming[owner_ptr[m] : owner_ptr[m + 1]], False))
        messages.append(Message(m, outgoing[asked.ptr[m] : asked.ptr[m + 1]], True))
    channel.exchange(messages, done)
    return incoming.to(rows.device)


def swap_norms(channel: Channel, share: Share, inner: Tensor, done: Done = lambda _: None) -> Float32Array:
    """The norms of all local ids, float32[I + B], from everyone's norms of inner nodes, float32[I]."""
    own: Any = inner.detach().cpu().float()
    ptr = share.part.boundary_ptr
    incoming = torch.empty(share.part.boundary_nodes, dtype=torch.float32)
    messages = []
    for m, ids in enumerate(share.send_sets):
        messages.append(Message(m, incoming[int(ptr[m]) : int(ptr[m + 1])], False))
        messages.append(Message(m, own[torch.from_numpy(ids.copy())], True))
    channel.exchange(messages, done)
    return np.concatenate([own.numpy(), incoming.numpy()])
