"""Sharing of links by many bundles, compiled: the arithmetic of `fairness` and `fluid`, operation for operation.

Where hundreds of bundles cross a group of links (all pairs of many servers), a sharing in Python costs more than all
else, and what differs from flow to flow never recurs. Here one takes microseconds. Every sum is taken in the order
that `Sharing` takes it in, so a group gives the same bytes whichever of the two shares it; tests hold them equal.

It stays beside the compiled engine because the reference answers until that is compiled, and would take five to six
times as long without it at 24 GPUs (psc-gcn; figures in benchmarks/README.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from gcnsim.compiling import compiled
from gcnsim.ids import FloatArray, IntArray


@compiled()
def advance(counts: IntArray, rates: FloatArray, service: FloatArray, elapsed: int) -> None:
    """Let `elapsed` picoseconds pass: service[bundle] grows by what each of its flows has received."""
    for bundle in range(counts.size):
        if counts[bundle]:
            service[bundle] += rates[bundle] * elapsed


@compiled()
def reached(heads: FloatArray, rates: FloatArray, service: FloatArray, found: IntArray) -> int:
    """Write the bundles whose first flow is done within a picosecond into `found`, ascending; return how many."""
    size = 0
    for bundle in range(heads.size):
        if heads[bundle] <= service[bundle] + rates[bundle]:
            found[size] = bundle
            size += 1
    return size


@compiled()
def first_due(counts: IntArray, rates: FloatArray, heads: FloatArray, service: FloatArray) -> float:
    """Picoseconds until the first flow is done, infinite when none is under way."""
    due = np.inf
    for bundle in range(counts.size):
        if counts[bundle]:
            due = min(due, (heads[bundle] - service[bundle]) / rates[bundle])
    return due


@compiled()
def share(
    network: tuple[FloatArray, IntArray, IntArray, IntArray, IntArray],
    shared: int,
    counts: IntArray,
    rates: FloatArray,
    heads: FloatArray,
    service: FloatArray,
) -> float:
    """Write the rates of one flow of each bundle, as `Sharing.rates`; return the picoseconds until a flow is done.

    network: capacity per link (those from `shared` on are caps, bundles' own), then the links of each bundle and the
    bundles of each link, both as (offsets, ids). heads: service at which each bundle's first flow is done, infinite
    without flows; infinite is returned when no flow is under way.
    """
    capacity, route_at, route, crossing_at, crossing = network
    left = capacity.copy()
    load = np.zeros(capacity.size, np.int64)
    rising = counts.copy()
    for bundle in range(counts.size):
        rates[bundle] = 0.0
        if counts[bundle]:
            for place in range(route_at[bundle], route_at[bundle + 1]):
                link = route[place]
                load[link] += counts[bundle] if link < shared else 1
    busy = np.empty(capacity.size, np.int64)
    size = 0
    for link in range(capacity.size):
        if load[link]:
            busy[size] = link
            size += 1
    while size:
        level, tightest = np.inf, busy[0]
        for place in range(size):
            each = left[busy[place]] / load[busy[place]]
            if each < level:
                level, tightest = each, busy[place]
        for crossed in range(crossing_at[tightest], crossing_at[tightest + 1]):
            bundle = crossing[crossed]
            count = rising[bundle]
            if count == 0:
                continue
            rising[bundle] = 0
            rates[bundle] = level
            taken = level * count
            for place in range(route_at[bundle], route_at[bundle + 1]):
                link = route[place]
                if link >= shared:
                    load[link] = 0
                    continue
                load[link] -= count
                left[link] = left[link] - taken if left[link] > taken else 0.0
        kept = 0
        for place in range(size):
            if load[busy[place]]:
                busy[kept] = busy[place]
                kept += 1
        size = kept
    return first_due(counts, rates, heads, service)


class Filling:
    """What `share` needs to know of a group: its links, routes and caps, and what each bundle has received so far."""

    __slots__ = ("counts", "found", "heads", "network", "rates", "service", "shared")

    def __init__(
        self, capacity: Sequence[float], routes: Sequence[tuple[int, ...]], caps: Sequence[float | None]
    ) -> None:
        limits, whole = list(capacity), list(routes)
        self.shared = len(limits)
        for bundle, cap in enumerate(caps):
            if cap is not None:
                whole[bundle] = (*whole[bundle], len(limits))
                limits.append(cap)
        crossing: list[list[int]] = [[] for _ in limits]
        for bundle, route in enumerate(whole):
            for link in route:
                crossing[link].append(bundle)
        self.network = (np.array(limits, np.float64), *_flat(whole), *_flat(crossing))
        self.counts = np.zeros(len(whole), np.int64)
        self.rates = np.zeros(len(whole))
        self.service = np.zeros(len(whole))
        self.heads = np.full(len(whole), inf)
        self.found = np.empty(len(whole), np.int64)

    def share(self) -> float:
        """Share the links anew; picoseconds until a flow is done, infinite when none is under way."""
        due: float = share(self.network, self.shared, self.counts, self.rates, self.heads, self.service)
        return due

    def advance(self, elapsed: int) -> None:
        """Let `elapsed` picoseconds pass."""
        advance(self.counts, self.rates, self.service, elapsed)

    def reached(self) -> list[int]:
        """The bundles whose first flow is done within a picosecond, ascending."""
        size = reached(self.heads, self.rates, self.service, self.found)
        bundles: list[int] = self.found[:size].tolist()
        return bundles


def _flat(rows: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """Rows of ids as (offsets, ids)."""
    offsets = np.cumsum([0, *map(len, rows)])
    return offsets.astype(np.int64), np.array([each for row in rows for each in row], np.int64)
