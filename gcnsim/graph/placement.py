"""Placement of parts on servers: which parts share a network card.

Rank r runs part order[r], and servers have `per_server` consecutive ranks. The rows that cross servers pass each
server's card, which sends and receives at the same time, so its load is the larger of both. METIS numbers related parts
next to each other, which says nothing of the busiest card.

`balanced_order` makes the busiest card carry least: exactly up to `EXACT` parts, beyond by exchanging two parts at a
time until no exchange helps, from a few starts. SciPy's search for a quadratic assignment minimises the total instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, frozen
from gcnsim.core.streams import stream
from gcnsim.graph.parts import Part, Partitioning

EXACT: Final = 7
"""Up to this many parts, all orders are tried."""

STARTS: Final = 4
"""Orders from which exchanges start: as numbered, and random ones."""

SHARPNESS: Final = 16
"""The power whose sum over the cards is minimised: the busiest decides nearly alone, the others break ties."""


def rows_between(parts: Sequence[Part]) -> IntArray:
    """Rows that part n needs of part m, int64[P, P]."""
    return np.stack([np.diff(part.boundary_ptr) for part in parts])


def renumbered(owners: Partitioning, order: IntArray) -> Partitioning:
    """The partition with part order[r] as part r, so that ranks in order have them."""
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return replace(owners, owner=frozen(rank[owners.owner].astype(np.int32)))


def card_loads(rows: IntArray, orders: IntArray, per_server: int) -> FloatArray:
    """Rows that each server's card carries in its busier direction, float64[K, S].

    rows: int64[P, P], needed by n of m. orders: int64[K, P], the part of each rank.
    """
    first = np.arange(0, rows.shape[0], per_server)
    loads = []
    for order in orders:
        by_server = np.add.reduceat(np.add.reduceat(rows[np.ix_(order, order)], first, axis=0), first, axis=1)
        inside = by_server.diagonal()
        loads.append(np.maximum(by_server.sum(axis=1) - inside, by_server.sum(axis=0) - inside))
    return np.asarray(loads, np.float64)


def balanced_order(rows: IntArray, per_server: int, kinds: IntArray | None = None) -> IntArray:
    """The part of each rank, int64[P], such that the busiest card carries least.

    kinds: int64[P]; ranks of different kinds exchange no parts. The first order is as numbered. None: all are alike.
    """
    parts = rows.shape[0]
    numbered = np.arange(parts)
    if per_server >= parts or per_server == 1:
        return numbered
    kinds = np.zeros(parts, np.int64) if kinds is None else kinds
    if parts <= EXACT:
        every = np.array(list(permutations(range(parts))))
        every = every[(kinds[every] == kinds).all(axis=1)]
        return np.asarray(every[np.lexsort(np.sort(card_loads(rows, every, per_server)).T)[0]])
    generator = stream(0, "placement", parts, per_server)
    starts = [numbered, *(_mixed(kinds, generator) for _ in range(STARTS - 1))]
    found = np.stack([_exchanged(rows, start, per_server, kinds) for start in starts])
    return np.asarray(found[np.lexsort(np.sort(card_loads(rows, found, per_server)).T)[0]])


def _mixed(kinds: IntArray, generator: np.random.Generator) -> IntArray:
    """A random order in which parts stay on ranks of their kind."""
    order = np.empty(kinds.size, np.int64)
    for kind in np.unique(kinds):
        own = np.flatnonzero(kinds == kind)
        order[own] = generator.permutation(own)
    return order


def _exchanged(rows: IntArray, start: IntArray, per_server: int, kinds: IntArray) -> IntArray:
    """The order after exchanges of two ranks' parts, each the best one, until none helps."""
    order = start.copy()
    server = np.arange(order.size) // per_server
    member = (server[:, None] == np.arange(server[-1] + 1)).astype(np.float64)
    whole = float(rows.sum())
    allowed = (kinds[:, None] == kinds[None, :]) & (server[:, None] < server[None, :])
    while True:
        placed = rows[np.ix_(order, order)] / whole
        both = placed + placed.T
        # Rows between each rank and each server, and within each server.
        near = both @ member
        own = near[np.arange(order.size), server]
        received, sent = placed.sum(axis=1), placed.sum(axis=0)
        inside = member.T @ own / 2.0
        loads = [member.T @ amounts - inside for amounts in (received, sent)]
        # The rows within the server of a rank if another rank's part comes there.
        gained = near[:, server].T - own[:, None] - both
        change = np.zeros_like(both)
        for load, amounts in zip(loads, (received, sent), strict=True):
            moved = amounts[None, :] - amounts[:, None] - gained
            now = load[server]
            change += (now[:, None] + moved) ** SHARPNESS - now[:, None] ** SHARPNESS
        change = np.where(allowed, change + change.T, np.inf)
        best = int(change.argmin())
        one, other = divmod(best, order.size)
        if not change[one, other] < -1e-9 * sum(float((load**SHARPNESS).sum()) for load in loads):
            return order
        order[[one, other]] = order[[other, one]]
