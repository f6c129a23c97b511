"""The links of a schedule in groups that no flow connects, and the bundles of equal flows that cross each group.

What `gcnsim.engine.fluid.Fluid` makes, in numbers. Links and bundles are numbered group by group, each group padded to
whole rows; where a group is shared as a matrix (`sharing.fill_dense`), its links are its senders, then its receivers,
its bundles all pairs of them, each row padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from math import inf
from typing import Final

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray
from gcnsim.engine.fairness import connected
from gcnsim.engine.kernel.memory import PACKED, Links
from gcnsim.engine.kernel.simd_loops import pitch
from gcnsim.schedule.columns import Columns
from gcnsim.timeline import PS_PER_S

FULL: Final = 0.5
"""The least share of sender-receiver pairs with flows for which a group is shared as a matrix."""

WIDE: Final = 6
"""The fewest senders and receivers of a group that is shared as a matrix."""

ROOM: Final = 65_536
"""Words for the sharings of a group that are remembered: half a MB."""

MOST_KEPT: Final = 1024
"""And most of them."""

Kind = tuple[tuple[int, ...], float]
"""Route and cap of a bundle; an infinite cap means none."""


def grouped(capacity: Sequence[float], columns: Columns, flows: BoolArray) -> tuple[Links, IntArray]:
    """The groups that the `flows` of the ops cross, and the bundle of each op, int64[n], -1 for others.

    capacity: units per second of each link. flows: those without a thread. All results except capacities are computed
    once per structure.
    """
    links, bundle, _ = _structure(len(capacity), columns, flows)
    offered = capacities(capacity, columns, flows)
    return links._replace(capacity=offered, supply=offered, last=np.zeros_like(links.last)), bundle


def capacities(capacity: Sequence[float], columns: Columns, flows: BoolArray) -> FloatArray:
    """`Links.capacity` of `grouped`."""
    links, _, owners = _structure(len(capacity), columns, flows)
    return np.where(owners < 0, links.capacity, np.array((*capacity, 0.0), np.float64)[owners] / PS_PER_S)


def _structure(count: int, columns: Columns, flows: BoolArray) -> tuple[Links, IntArray, IntArray]:
    return columns.derived(f"groups of {count} links", lambda: _groups(count, columns, flows))


def _groups(count: int, columns: Columns, flows: BoolArray) -> tuple[Links, IntArray, IntArray]:
    """The same as `grouped` for `count` links, with capacities left at 0.

    Also the id of each link, int64[L]; -1 for links whose capacity is known here: caps of bundles, and padding.
    """
    chosen = np.flatnonzero(flows)
    caps, cap = np.unique(columns.cap[chosen], return_inverse=True)
    keys, key = np.unique(columns.way[chosen].astype(np.int64) * (caps.size + 1) + cap, return_inverse=True)
    ways = zip(*(array.tolist() for array in np.divmod(keys, caps.size + 1)), strict=True)
    named: list[Kind] = [(columns.routes[way], float(caps[index])) for way, index in ways]
    distinct = sorted(named)
    owner = connected(count, [way for way, _ in distinct])
    links: dict[int, list[int]] = {}
    for link, group in enumerate(owner):
        links.setdefault(group, []).append(link)
    members: dict[int, list[Kind]] = {}
    for kind in distinct:
        members.setdefault(owner[kind[0][0]], []).append(kind)
    numbers = _Numbers()
    for group in sorted(members):
        numbers.add(links[group], members[group])
    bundle = np.full(columns.size, -1, np.int64)
    bundle[chosen] = np.array([numbers.of[kind] for kind in named], np.int64)[key]
    return numbers.links(), bundle, np.array(numbers.owners, np.int64)


@dataclass
class _Numbers:
    """Collects groups as rows of `Links`, in lists."""

    of: dict[Kind, int] = field(default_factory=dict)
    first_bundle: list[int] = field(default_factory=lambda: [0])
    first_link: list[int] = field(default_factory=lambda: [0])
    shared: list[int] = field(default_factory=list)
    routes: list[tuple[int, ...]] = field(default_factory=list)
    crossing: list[list[int]] = field(default_factory=list)
    senders: list[int] = field(default_factory=list)
    receivers: list[int] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    turned: list[int] = field(default_factory=lambda: [0])
    alone: list[int] = field(default_factory=list)
    capacity: list[float] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)

    def add(self, links: Sequence[int], kinds: Sequence[Kind]) -> None:
        """Add a group of links (ascending ids), crossed by `kinds` (ascending)."""
        senders, receivers = _sides(kinds)
        if senders:
            self._add_matrix(links, senders, receivers, kinds)
        else:
            self._add_list(links, kinds)
        self.alone.append(int(len(kinds) == 1))
        self.senders.append(len(senders))
        self.receivers.append(len(receivers))
        self.turned.append(self.turned[-1] + len(receivers) * pitch(len(senders)))
        self.first_bundle.append(len(self.routes))
        self.first_link.append(len(self.capacity))

    def _add_links(self, links: Sequence[int], spare: int = 0) -> None:
        """Add the links, and padding."""
        self.capacity += [0.0] * (len(links) + spare)
        self.owners += [*links, *[-1] * spare]

    def _add_list(self, links: Sequence[int], kinds: Sequence[Kind]) -> None:
        base = len(self.capacity)
        local = {link: base + index for index, link in enumerate(links)}
        self._add_links(links)
        self.shared.append(len(self.capacity))
        self.crossing += [[] for _ in links]
        for kind in kinds:
            route, cap = kind
            mine = [local[link] for link in route]
            if cap < inf:
                # A cap is a private link of the bundle.
                mine.append(len(self.capacity))
                self.capacity.append(cap / PS_PER_S)
                self.owners.append(-1)
                self.crossing.append([])
            self.of[kind] = len(self.routes)
            for link in mine:
                self.crossing[link].append(len(self.routes))
            self.routes.append(tuple(mine))
        self.routes += [()] * (pitch(len(kinds)) - len(kinds))
        spare = pitch(len(self.capacity) - base) - (len(self.capacity) - base)
        self._add_links((), spare)
        self.crossing += [[] for _ in range(spare)]
        self.rank += range(len(self.capacity) - base)

    def _add_matrix(
        self, links: Sequence[int], senders: list[int], receivers: list[int], kinds: Sequence[Kind]
    ) -> None:
        base, begin = len(self.capacity), len(self.routes)
        rows, columns = pitch(len(senders)), pitch(len(receivers))
        order = {link: index for index, link in enumerate(sorted(links))}
        for side, width in ((senders, rows), (receivers, columns)):
            spare = width - len(side)
            self._add_links(side, spare)
            self.rank += [order[link] for link in side] + [len(order)] * spare
        self.shared.append(len(self.capacity))
        self.crossing += [[] for _ in range(rows + columns)]
        self.routes += [()] * (len(senders) * columns)
        for kind in kinds:
            (source, target), _ = kind
            sender, receiver = senders.index(source), receivers.index(target)
            index = begin + sender * columns + receiver
            self.of[kind] = index
            self.routes[index] = (base + sender, base + rows + receiver)

    def links(self) -> Links:
        """The groups without active flows."""
        route_at, route = _flat(self.routes)
        crossing_at, crossing = _flat(self.crossing)
        group = np.repeat(np.arange(len(self.shared), dtype=np.int64), np.diff(self.first_bundle))
        size, bundles, groups = len(self.capacity), len(self.routes), len(self.shared)
        sizes, alone = np.diff(self.first_bundle), np.array(self.alone, np.int64)
        slots, key_at, rate_at = remembered(sizes, alone)
        return Links(
            first_bundle=np.array(self.first_bundle, np.int64),
            first_link=np.array(self.first_link, np.int64),
            shared=np.array(self.shared, np.int64),
            group=group,
            route_at=route_at,
            route=route,
            crossing_at=crossing_at,
            crossing=crossing,
            senders=np.array(self.senders, np.int64),
            receivers=np.array(self.receivers, np.int64),
            rank=np.array(self.rank, np.int64),
            turned=bundles + np.array(self.turned, np.int64),
            last=np.zeros(groups, np.int64),
            alone=alone,
            slots=slots,
            word_at=np.cumsum(np.append(0, _words(sizes))),
            key_at=key_at,
            rate_at=rate_at,
            token=_tokens(sizes),
            rising=np.zeros(bundles, np.int64),
            capacity=np.array(self.capacity, np.float64),
            left=np.zeros(size),
            weight=np.zeros(size),
            share=np.zeros(size),
            level=np.zeros(size),
            step=np.zeros(size),
            waiting=np.zeros(size),
            supply=np.array(self.capacity, np.float64),
        )


def remembered(sizes: IntArray, never: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Of groups of so many bundles, int64[G], how many sharings are remembered, and where: slots, key_at and rate_at of
    `Links`; never: 1 of a group that remembers none."""
    words = _words(sizes)
    most = np.minimum(ROOM // (words + sizes), MOST_KEPT) * (1 - never)
    slots = np.array([1 << int(item).bit_length() - 1 if item else 0 for item in most.tolist()], np.int64)
    key_at, rate_at = (np.cumsum(np.append(0, slots * amounts)) for amounts in (words, sizes))
    return slots, key_at, rate_at


def _words(sizes: IntArray) -> IntArray:
    """Words of the counts of groups of so many bundles."""
    return -(-sizes // PACKED)


def _tokens(sizes: IntArray) -> IntArray:
    """By bundle, a power of a primitive root: sums of few of them are seldom the same."""
    powers = list(accumulate(repeat(48_271, int(sizes.max(initial=1))), lambda one, base: one * base % (2**31 - 1)))
    return np.array([token for size in sizes.tolist() for token in powers[:size]], np.int64)


def _sides(kinds: Sequence[Kind]) -> tuple[list[int], list[int]]:
    """Senders and receivers of a group that can be shared as a matrix with few gaps; empty for other groups."""
    if not all(len(route) == 2 and cap == inf for route, cap in kinds):
        return [], []
    senders, receivers = ({route[end] for route, _ in kinds} for end in (0, 1))
    pairs = len(senders) * len(receivers)
    if senders & receivers or min(len(senders), len(receivers)) < WIDE or len(kinds) < FULL * pairs:
        return [], []
    return sorted(senders), sorted(receivers)


def _flat(rows: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """Rows of ids as (offsets, ids)."""
    at = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.array([len(row) for row in rows], np.int64), out=at[1:])
    return at, np.array([number for row in rows for number in row], np.int64)
