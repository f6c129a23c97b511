"""Flows in flight on links that share routes: fluid, max-min fair, exact to the picosecond.

Links that no flow connects never influence each other, so each connected group of links is an object of its own. Within a
group, flows of equal route and cap form a bundle with one *service* counter: the units each of its flows has received
since the bundle was last empty. A flow that joins at service s with u units is done when the counter reaches s + u, so a
rate change costs one addition per bundle, not per flow. Rates depend only on how many flows each bundle has, and the same
counts recur every iteration, so they are remembered.

Order of simultaneous events: all ends and starts of one instant first, then one new sharing of the links for them all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Any

from simpy.core import Environment
from simpy.events import Event

from gcnsim.engine.fairness import max_min_rates
from gcnsim.timeline import PS_PER_S

AFTER_ALL_OTHERS = 9
"""SimPy priority of re-sharing: later than every start and end of the same instant (URGENT is 0, NORMAL 1)."""


class FluidGroup:
    """A connected group of links and the bundles that cross it."""

    __slots__ = (
        "_caps",
        "_capacity",
        "_dirty",
        "_env",
        "_known",
        "_last",
        "_rates",
        "_routes",
        "_serial",
        "_service",
        "_timer",
        "_waiting",
        "counts",
    )

    def __init__(
        self,
        env: Environment,
        capacity: Sequence[float],
        routes: Sequence[tuple[int, ...]],
        caps: Sequence[float | None],
    ) -> None:
        self._env = env
        self._capacity = [value / PS_PER_S for value in capacity]
        self._routes = list(routes)
        self._caps = [None if cap is None else cap / PS_PER_S for cap in caps]
        self.counts = [0] * len(routes)
        self._service = [0.0] * len(routes)
        self._rates: Sequence[float] = [0.0] * len(routes)
        self._waiting: list[list[tuple[float, int, Event]]] = [[] for _ in routes]
        self._known: dict[tuple[int, ...], list[float]] = {}
        self._last = 0
        self._serial = 0
        self._dirty = False
        self._timer: Event | None = None

    def join(self, bundle: int, units: float) -> Event:
        """Start a flow of `units` > 0 on `bundle`; the returned event fires when its last unit has arrived."""
        self._advance()
        done = Event(self._env)
        self._serial += 1
        heappush(self._waiting[bundle], (self._service[bundle] + units, self._serial, done))
        self.counts[bundle] += 1
        self._share_later()
        return done

    def _advance(self) -> None:
        now = self._env.now
        elapsed = now - self._last
        if elapsed:
            self._last = now
            service, rates = self._service, self._rates
            for bundle, count in enumerate(self.counts):
                if count:
                    service[bundle] += rates[bundle] * elapsed

    def _share_later(self) -> None:
        if not self._dirty:
            self._dirty = True
            self._call(self._share, 0, AFTER_ALL_OTHERS)

    def _share(self, _: Event) -> None:
        self._dirty = False
        key = tuple(self.counts)
        rates = self._known.get(key)
        if rates is None:
            rates = self._known[key] = max_min_rates(self._capacity, self._routes, key, self._caps)
        self._rates = rates
        wait = -1
        for bundle, count in enumerate(key):
            if count:
                # Rounded up to a whole picosecond: a flow is never done before its last unit.
                due = -int((self._service[bundle] - self._waiting[bundle][0][0]) / rates[bundle] // 1)
                if wait < 0 or due < wait:
                    wait = due
        self._timer = self._call(self._finish, max(wait, 0), 1) if wait >= 0 else None

    def _finish(self, timer: Event) -> None:
        if timer is not self._timer:
            return
        self._advance()
        for bundle, queue in enumerate(self._waiting):
            # One picosecond of service covers the rounding above and the last bits of the additions.
            reached = self._service[bundle] + self._rates[bundle]
            while queue and queue[0][0] <= reached:
                heappop(queue)[2].succeed()
                self.counts[bundle] -= 1
            if not queue:
                self._service[bundle] = 0.0
        self._share_later()

    def _call(self, function: Callable[[Event], None], delay: int, priority: int) -> Event:
        event = Event(self._env)
        event._ok = True
        event._value = None
        callbacks: list[Any] = event.callbacks
        callbacks.append(function)
        self._env.schedule(event, priority, delay)  # type: ignore[arg-type]  # SimPy's type has only its own two
        return event


class Fluid:
    """All groups of one schedule: which group and bundle each route belongs to."""

    def __init__(
        self, env: Environment, capacity: Sequence[float], flows: Sequence[tuple[tuple[int, ...], float | None]]
    ) -> None:
        group_of = _connected(len(capacity), [route for route, _ in flows])
        self.place: dict[tuple[tuple[int, ...], float | None], tuple[FluidGroup, int]] = {}
        for group in sorted({group_of[route[0]] for route, _ in flows}):
            links = [link for link, owner in enumerate(group_of) if owner == group]
            local = {link: position for position, link in enumerate(links)}
            members = sorted({flow for flow in flows if group_of[flow[0][0]] == group}, key=_flow_key)
            routes = [tuple(local[link] for link in route) for route, _ in members]
            fluid = FluidGroup(env, [capacity[link] for link in links], routes, [cap for _, cap in members])
            for bundle, flow in enumerate(members):
                self.place[flow] = (fluid, bundle)


def _flow_key(flow: tuple[tuple[int, ...], float | None]) -> tuple[tuple[int, ...], float]:
    route, cap = flow
    return route, float("inf") if cap is None else cap


def _connected(links: int, routes: Sequence[tuple[int, ...]]) -> list[int]:
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
