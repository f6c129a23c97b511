"""Max-min fair rates by progressive filling.

The rates of all flows rise together until a link is full. The flows that cross it are fixed, and the others continue to
rise. In the result, no flow can gain without taking from a flow that has no more (Bertsekas and Gallager, Data
Networks, section 6.5). Flows of equal route and cap always have equal rates, so they form one bundle with a count. A
cap acts as a private link of each flow.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

REMEMBERED = 20_000
"""The most cached sharings; beyond that number the counts vary too much to recur."""


class Sharing:
    """The links and bundles of a connected group, with cached rates for any number of flows per bundle.

    capacity: per link. routes: per bundle, the links it crosses, each once. caps: per bundle, the most that one of its
    flows can use, None for no limit.
    """

    def __init__(
        self, capacity: Sequence[float], routes: Sequence[tuple[int, ...]], caps: Sequence[float | None]
    ) -> None:
        self._capacity = list(capacity)
        self._routes = list(routes)
        self._shared = len(self._capacity)
        """Links from this index on are private links of bundles: their share is the cap, independent of the number of
        flows.
        """
        for bundle, cap in enumerate(caps):
            if cap is not None:
                self._routes[bundle] = (*self._routes[bundle], len(self._capacity))
                self._capacity.append(cap)
        self._crossing: list[list[int]] = [[] for _ in self._capacity]
        for bundle, route in enumerate(self._routes):
            for link in route:
                self._crossing[link].append(bundle)
        self._known: dict[tuple[int, ...], list[float]] = {}

    def rates(self, counts: tuple[int, ...]) -> list[float]:
        """The rate of one flow of each bundle, in units per second; 0 for a bundle without flows."""
        rates = self._known.get(counts)
        if rates is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            rates = self._known[counts] = self._fill(counts)
        return rates

    def _fill(self, counts: tuple[int, ...]) -> list[float]:
        left, routes, shared = list(self._capacity), self._routes, self._shared
        load = [0] * len(left)
        for bundle, count in enumerate(counts):
            if count:
                for link in routes[bundle]:
                    load[link] += count if link < shared else 1
        rates = [0.0] * len(counts)
        rising = list(counts)
        busy = [link for link, flows in enumerate(load) if flows]
        while busy:
            level, tightest = inf, -1
            for link in busy:
                share = left[link] / load[link]
                if share < level:
                    level, tightest = share, link
            for bundle in self._crossing[tightest]:
                count = rising[bundle]
                if count:
                    rising[bundle] = 0
                    rates[bundle] = level
                    taken = level * count
                    for link in routes[bundle]:
                        if link >= shared:
                            load[link] = 0
                            continue
                        load[link] -= count
                        # Rounding must not leave a negative rest.
                        left[link] = left[link] - taken if left[link] > taken else 0.0
            busy = [link for link in busy if load[link]]
        return rates


def connected(links: int, routes: Sequence[tuple[int, ...]]) -> list[int]:
    """Per link, the smallest link id it is connected with through any route."""
    owner = list(range(links))

    def root(link: int) -> int:
        while owner[link] != link:
            owner[link] = owner[owner[link]]
            link = owner[link]
        return link

    for route in routes:
        for link in route[1:]:
            a, b = root(route[0]), root(link)
            owner[max(a, b)] = min(a, b)
    return [root(link) for link in range(links)]
