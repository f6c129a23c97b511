"""The links of a schedule in groups that no flow connects, and the bundles of equal flows that cross each group.

What `gcnsim.engine.fluid.Fluid` makes, in numbers. Links and bundles are numbered group by group, each group padded to
whole rows; where a group is shared as a matrix (`matrix.fill_dense`), its links are its senders, then its receivers,
then those that are never full; its bundles all pairs of senders and receivers, each row padded, as often as a pair has
bundles, and then those beside the matrix.

A link is never full (`never_full`) if it can carry what other links of all its flows can carry in total: what is left
of it per flow is then more than what is left per flow of one of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from math import inf
from typing import Final, NamedTuple

import numpy as np

from gcnsim.core.ids import BoolArray, FloatArray, IntArray
from gcnsim.engine.fairness import connected
from gcnsim.engine.kernel.memory import BITS, PACKED, Links
from gcnsim.engine.kernel.simd_loops import LANES, pitch
from gcnsim.schedule.columns import Columns, Route
from gcnsim.timeline import PS_PER_S

FULL: Final = 0.5
"""The least share of a matrix that bundles fill, padding included, for which a group is shared as one."""

WIDE: Final = 6
"""The fewest senders and receivers of a group that is shared as a matrix."""

SPARE: Final = 1.0 + 1e-6
"""The factor by which a link must exceed others in order not to be full before them, whatever is rounded."""

ROOM: Final = 65_536
"""Words for the sharings of a group that are remembered: half a MB."""

MOST_KEPT: Final = 1024
"""And most of them."""

FEW: Final = 64
"""Of fewer routes no link is looked for that is never full: no group of theirs is a matrix."""

NOBODY: Final = 2**31
"""In place of a sender or a receiver, of a bundle with one link that may be full: a link that carries everything."""

Kind = tuple[Route, float]
"""Route and cap of a bundle; an infinite cap means none."""


def grouped(
    capacity: Sequence[float], columns: Columns, flows: BoolArray, spare: tuple[int, ...] = ()
) -> tuple[Links, IntArray]:
    """The groups that the `flows` of the ops cross, and the bundle of each op, int64[n], -1 for others.

    capacity: units per second of each link. flows: those without a thread. spare: of `never_full`. All results except
    capacities are computed once per structure.
    """
    links, bundle, _ = _structure(len(capacity), columns, flows, spare)
    offered = capacities(capacity, columns, flows, spare)
    return links._replace(capacity=offered, supply=offered, last=np.zeros_like(links.last)), bundle


def capacities(
    capacity: Sequence[float], columns: Columns, flows: BoolArray, spare: tuple[int, ...] = ()
) -> FloatArray:
    """`Links.capacity` of `grouped`."""
    links, _, owners = _structure(len(capacity), columns, flows, spare)
    return np.where(owners < 0, links.capacity, np.array((*capacity, 0.0), np.float64)[owners] / PS_PER_S)


def never_full(capacity: Sequence[float], columns: Columns, flows: BoolArray) -> tuple[int, ...]:
    """The links that are never full before another link of their flows, ascending, as long as only flows are under way
    that cross such a link. None where few routes are used.
    """
    at, links, routes = columns.derived("used routes", lambda: _used_routes(columns, flows))
    if at.size < FEW:
        return ()
    offered = np.array(capacity)
    tight = offered[links] <= np.minimum.reduceat(offered[links], at)[routes] * SPARE
    places = np.flatnonzero(tight)
    limit = np.full(offered.size, inf)
    # The first or the last of the tightest links of each route stands for its flows.
    for step in (-1, 1):
        stands = np.empty(at.size, np.int64)
        stands[routes[places[::step]]] = links[places[::step]]
        pairs = np.unique(links[~tight] * offered.size + stands[routes[~tight]])
        others = np.bincount(pairs // offered.size, weights=offered[pairs % offered.size], minlength=offered.size)
        limit = np.minimum(limit, np.where(others > 0.0, others, inf))
    spare = limit * SPARE <= offered
    while (wrong := tight & spare[links] & np.logical_or.reduceat(~spare[links], at)[routes]).any():
        spare[links[wrong]] = False
    return tuple(np.flatnonzero(spare).tolist())


def _used_routes(columns: Columns, flows: BoolArray) -> tuple[IntArray, IntArray, IntArray]:
    """The routes of the flows one after another: where each begins, the links, and the route of each."""
    ways = [columns.routes[way] for way in np.unique(columns.way[flows]).tolist() if columns.routes[way]]
    at, links = _flat(ways)
    return at[:-1], links, np.repeat(np.arange(len(ways)), np.diff(at))


def _structure(
    count: int, columns: Columns, flows: BoolArray, spare: tuple[int, ...]
) -> tuple[Links, IntArray, IntArray]:
    return columns.lately("groups", (count, spare), lambda: _groups(count, columns, flows, spare))


def _groups(count: int, columns: Columns, flows: BoolArray, spare: tuple[int, ...]) -> tuple[Links, IntArray, IntArray]:
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
        numbers.add(links[group], members[group], frozenset(spare))
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
    ordered: list[list[int]] = field(default_factory=list)
    senders: list[int] = field(default_factory=list)
    receivers: list[int] = field(default_factory=list)
    planes: list[int] = field(default_factory=list)
    rank: list[int] = field(default_factory=list)
    turned: list[int] = field(default_factory=lambda: [0])
    alone: list[int] = field(default_factory=list)
    capacity: list[float] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)

    def add(self, links: Sequence[int], kinds: Sequence[Kind], spare: frozenset[int]) -> None:
        """Add a group of links (ascending ids), crossed by `kinds` (ascending); spare: links that are never full."""
        matrix = _matrix(kinds, spare)
        if matrix is None:
            self._add_list(links, kinds)
        else:
            self._add_matrix(links, matrix, kinds)
        senders, receivers, planes = (0, 0, 1) if matrix is None else matrix.shape
        self.alone.append(int(len(kinds) == 1))
        self.senders.append(senders)
        self.receivers.append(receivers)
        self.planes.append(planes)
        self.turned.append(self.turned[-1] + receivers * planes * pitch(senders) + (LANES if senders else 0))
        self.first_bundle.append(len(self.routes))
        self.first_link.append(len(self.capacity))
        self.ordered.append([self.of[kind] for kind in kinds])

    def _add_links(self, links: Sequence[int], spare: int = 0) -> None:
        """Add the links, and padding."""
        self.capacity += [*(inf if link == NOBODY else 0.0 for link in links), *[0.0] * spare]
        self.owners += [*(-1 if link == NOBODY else link for link in links), *[-1] * spare]

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

    def _add_matrix(self, links: Sequence[int], matrix: _Matrix, kinds: Sequence[Kind]) -> None:
        base, begin = len(self.capacity), len(self.routes)
        senders, receivers, planes = matrix.shape
        order = {link: index for index, link in enumerate(sorted(links))}
        sides = matrix.senders, matrix.receivers, [link for link in links if link not in matrix.full]
        places: list[dict[int, int]] = []
        for side in sides:
            places.append({link: len(self.capacity) + index for index, link in enumerate(side)})
            self._add_links(side, pitch(len(side)) - len(side))
            self.rank += [order.get(link, len(order)) for link in side] + [len(order)] * (pitch(len(side)) - len(side))
        self.shared.append(len(self.capacity))
        self.crossing += [[] for _ in range(len(self.capacity) - base)]
        columns, beside = pitch(receivers), len(kinds) - sum(map(len, matrix.pairs.values()))
        end = begin + senders * planes * columns
        self.routes += [()] * (end - begin + -(-beside // columns) * columns)
        pair_of = {kind: (pair, plane) for pair, own in matrix.pairs.items() for plane, kind in enumerate(own)}
        for kind in kinds:
            index, crossed = end, tuple(place[link] for place in places for link in kind[0] if link in place)
            if kind in pair_of:
                (sender, receiver), plane = pair_of[kind]
                one, other = places[0][sender], places[1][receiver]
                index = begin + ((one - base) * planes + plane) * columns + other - base - pitch(senders)
                crossed = one, other, *(places[2][link] for link in kind[0] if link in places[2])
            end += index == end
            self.of[kind], self.routes[index] = index, crossed
            # Only with bundles beside the matrix, a group may be shared link by link.
            for link in crossed if beside else ():
                self.crossing[link].append(index)

    def links(self) -> Links:
        """The groups without active flows."""
        route_at, route = _flat(self.routes)
        live_at, ordered, word, bit = _live(self.ordered, len(self.routes))
        crossing_at, crossing, crossing_bits = _crossing(self.crossing, word, bit)
        group = np.repeat(np.arange(len(self.shared), dtype=np.int64), np.diff(self.first_bundle))
        size, bundles, groups = len(self.capacity), len(self.routes), len(self.shared)
        sizes, alone = np.diff(self.first_bundle), np.array(self.alone, np.int64)
        kept = _kept(sizes, self.senders, self.receivers, self.planes)
        slots, key_at, rate_at = remembered(sizes, kept, alone)
        return Links(
            first_bundle=np.array(self.first_bundle, np.int64),
            first_link=np.array(self.first_link, np.int64),
            shared=np.array(self.shared, np.int64),
            group=group,
            route_at=route_at,
            route=route,
            crossing_at=crossing_at,
            crossing=crossing,
            crossing_bits=crossing_bits,
            word=word,
            bit=bit,
            ordered=ordered,
            live_at=live_at,
            senders=np.array(self.senders, np.int64),
            receivers=np.array(self.receivers, np.int64),
            planes=np.array(self.planes, np.int64),
            rank=np.array(self.rank, np.int64),
            turned=bundles + np.array(self.turned, np.int64),
            last=np.zeros(groups, np.int64),
            alone=alone,
            slots=slots,
            word_at=np.cumsum(np.append(0, _words(sizes))),
            key_at=key_at,
            rate_at=rate_at,
            token=_tokens(sizes),
            rising=np.zeros(int(live_at[-1]), np.int64),
            following=np.zeros(bundles, np.int64),
            ring=np.zeros(size, np.int64),
            kept=kept,
            capacity=np.array(self.capacity, np.float64),
            left=np.zeros(size),
            weight=np.zeros(size),
            share=np.zeros(size),
            level=np.zeros(size),
            step=np.zeros(size),
            waiting=np.zeros(size),
            supply=np.array(self.capacity, np.float64),
        )


def _kept(sizes: IntArray, senders: Sequence[int], receivers: Sequence[int], planes: Sequence[int]) -> IntArray:
    """Words of a sharing of each group: rates of all bundles, or of those beside a matrix, levels and steps of its
    links."""
    rows, columns = (np.array([pitch(side) for side in sides], np.int64) for sides in (senders, receivers))
    beside = sizes - np.array(senders, np.int64) * np.array(planes, np.int64) * columns
    return np.where(rows > 0, 2 * (rows + columns) + beside, sizes)


def remembered(sizes: IntArray, kept: IntArray, never: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Of groups of so many bundles, int64[G], how many sharings of `kept` words are remembered, and where: slots,
    key_at and rate_at of `Links`; never: 1 of a group that remembers none."""
    words = _words(sizes)
    most = np.minimum(ROOM // (words + kept), MOST_KEPT) * (1 - never)
    slots = np.array([1 << int(item).bit_length() - 1 if item else 0 for item in most.tolist()], np.int64)
    key_at, rate_at = (np.cumsum(np.append(0, slots * amounts)) for amounts in (words, kept))
    return slots, key_at, rate_at


def _live(groups: Sequence[Sequence[int]], bundles: int) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Of groups of bundles in order, `Links.live_at`, `ordered`, `word` and `bit`."""
    at = np.cumsum([0, *(-(-len(group) // BITS) for group in groups)], dtype=np.int64)
    ordered = np.zeros(int(at[-1]) * BITS, np.int64)
    word, bit = np.zeros(bundles, np.int64), np.zeros(bundles, np.int64)
    for begin, group in zip(at.tolist(), groups, strict=False):
        places = begin * BITS + np.arange(len(group))
        ordered[places] = group
        word[group], bit[group] = places // BITS, np.int64(1) << places % BITS
    return at, ordered, word, bit


def _crossing(links: Sequence[Sequence[int]], word: IntArray, bit: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Of the bundles that cross each link, in order, `Links.crossing_at`, `crossing` and `crossing_bits`."""
    at, bundles = _flat(links)
    words, link = word[bundles], np.repeat(np.arange(len(links)), np.diff(at))
    first = np.flatnonzero(np.diff(words, prepend=-1) | np.diff(link, prepend=-1))
    bits = np.add.reduceat(bit[bundles], first) if first.size else bit[:0]
    return np.searchsorted(link[first], np.arange(len(links) + 1)), words[first], bits


def _words(sizes: IntArray) -> IntArray:
    """Words of the counts of groups of so many bundles."""
    return -(-sizes // PACKED)


def _tokens(sizes: IntArray) -> IntArray:
    """By bundle, a power of a primitive root: sums of few of them are seldom the same."""
    powers = list(accumulate(repeat(48_271, int(sizes.max(initial=1))), lambda one, base: one * base % (2**31 - 1)))
    return np.array([token for size in sizes.tolist() for token in powers[:size]], np.int64)


class _Matrix(NamedTuple):
    """Senders and receivers of a group, ascending, NOBODY last; the bundles of each pair of them; the links of both."""

    senders: list[int]
    receivers: list[int]
    pairs: dict[Route, list[Kind]]
    full: set[int]

    @property
    def shape(self) -> tuple[int, int, int]:
        """How many senders, receivers, and bundles of a pair at most."""
        return len(self.senders), len(self.receivers), max(map(len, self.pairs.values()))


def _matrix(kinds: Sequence[Kind], spare: frozenset[int]) -> _Matrix | None:
    """A group as a matrix with few gaps, apart from links that are never full; None where it is none."""
    routes = {kind: tuple(link for link in kind[0] if link not in spare) for kind in kinds}
    if any(cap < inf for _, cap in kinds) or (not spare and any(len(route) != 2 for route in routes.values())):
        return None
    senders, receivers = ({route[end] for route in routes.values() if len(route) == 2} for end in (0, 1))
    if senders & receivers or min(len(senders), len(receivers)) < WIDE:
        return None
    pairs: dict[Route, list[Kind]] = {}
    for kind, route in routes.items():
        if len(route) == 1 and route[0] in senders | receivers:
            route = (route[0], NOBODY) if route[0] in senders else (NOBODY, route[0])
        if len(route) == 2:
            pairs.setdefault(route, []).append(kind)
    one, other = (sorted({pair[end] for pair in pairs}) for end in (0, 1))
    found = _Matrix(one, other, pairs, senders | receivers)
    rows = len(found.senders) * found.shape[2]
    return found if sum(map(len, pairs.values())) >= FULL * rows * pitch(len(found.receivers)) else None


def _flat(rows: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """Rows of ids as (offsets, ids)."""
    at = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.array([len(row) for row in rows], np.int64), out=at[1:])
    return at, np.array([number for row in rows for number in row], np.int64)
