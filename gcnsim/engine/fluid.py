"""Flows on links with shared routes: fluid, max-min fair, exact to the picosecond.

Links that no flow connects never influence each other, so each connected group of links is a separate object. Within a
group, flows of equal route and cap form a bundle with one *service* counter: the units each of its flows has received
since the bundle was last empty. A flow that joins at service s with u units is done when the counter reaches s + u. So
a rate change costs one addition per bundle, not one per flow. Rates depend only on the number of flows per bundle; the
same counts recur every iteration, so rates are cached.

Simultaneous events: all ends and starts of one instant come first, then one new sharing of the links for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from math import ceil
from typing import Any

from simpy.core import Environment
from simpy.events import Event

from gcnsim.engine.fairness import Sharing, connected
from gcnsim.timeline import PS_PER_S


class Call(Event):
    """Calls `function` with this event `delay` picoseconds from now; the event carries `value`."""

    def __init__(
        self,
        env: Environment,
        function: Callable[[Event], None],
        delay: int,
        value: Any = None,
        priority: int = 1,
    ) -> None:
        self.env = env
        self.callbacks = [function]
        self._value = value
        self._ok = True
        env.schedule(self, priority, delay)  # type: ignore[arg-type]  # SimPy types only its own two priorities


AFTER_ALL_OTHERS = 9
"""SimPy priority of re-sharing: later than every start and end of the same instant (URGENT is 0, NORMAL 1)."""


Token = Any
"""The token that identifies a flow to the code that started it."""

Arrived = Callable[[Token], None]


class FluidGroup:
    """A connected group of links and the bundles that cross it."""

    __slots__ = (
        "_arrived",
        "_before",
        "_capacity",
        "_dirty",
        "_env",
        "_last",
        "_only_one",
        "_per_ps",
        "_rates",
        "_routes",
        "_serial",
        "_service",
        "_sharing",
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
        arrived: Arrived,
    ) -> None:
        self._env = env
        self._arrived = arrived
        self.counts = [0] * len(routes)
        self._service = [0.0] * len(routes)
        self._rates = [0.0] * len(routes)
        self._waiting: list[list[tuple[float, int, Token]]] = [[] for _ in routes]
        per_ps = tuple(value / PS_PER_S for value in capacity)
        caps_per_ps = tuple(None if cap is None else cap / PS_PER_S for cap in caps)
        self._per_ps = per_ps, tuple(routes), caps_per_ps
        self._sharing: Sharing | None = None
        self._capacity, self._routes = per_ps, tuple(routes)
        self._before = 0
        """Serial of the last flow that started before this instant."""
        self._last = 0
        self._serial = 0
        self._dirty = False
        self._timer: Event | None = None
        # Simultaneous changes are rare if one kind of flow has a link to itself: no separate event is needed.
        self._only_one = len(routes) == 1

    def join(self, bundle: int, units: float, token: Token) -> None:
        """Start a flow of `units` > 0 on `bundle`; `arrived` is called with `token` when its last unit has arrived."""
        self._advance()
        self._serial += 1
        heappush(self._waiting[bundle], (self._service[bundle] + units, self._serial, token))
        self.counts[bundle] += 1
        if self._only_one and not self._dirty:
            self._share(None)
        else:
            self._share_later()

    def backlog(self, bundle: int, queue: float, behind: Callable[[Token], float]) -> int:
        """Picoseconds to drain the data of current flows in the queues of the bundle's links, at most `queue` units
        each.

        behind: units that follow a flow on its connection. Flows that started at this instant have nothing in the
        queues yet.
        """
        self._advance()
        waiting = [0.0] * len(self._capacity)
        for other, flows in enumerate(self._waiting):
            service = self._service[other]
            ahead = 0.0
            for target, serial, token in flows:
                # Add one by one: `sum` of later Python versions rounds differently, and compiled code adds like this.
                if serial <= self._before:
                    ahead += min(target - service + behind(token), queue)
            for link in self._routes[other]:
                waiting[link] += ahead
        return ceil(max(waiting[link] / self._capacity[link] for link in self._routes[bundle]))

    def _advance(self) -> None:
        now = int(self._env.now)
        elapsed = now - self._last
        if elapsed:
            self._last = now
            self._before = self._serial
            service, rates = self._service, self._rates
            for bundle, count in enumerate(self.counts):
                if count:
                    service[bundle] += rates[bundle] * elapsed

    def _share_later(self) -> None:
        if not self._dirty:
            self._dirty = True
            Call(self._env, self._share, 0, None, AFTER_ALL_OTHERS)

    def _share(self, _: Event | None) -> None:
        self._dirty = False
        sharing = self._sharing
        if sharing is None:
            sharing = self._sharing = _sharing(*self._per_ps)
        self._rates = rates = sharing.rates(tuple(self.counts))
        service = self._service
        # Rounded up to a whole picosecond: a flow is never done before its last unit.
        due = [(queue[0][0] - service[bundle]) / rates[bundle] for bundle, queue in enumerate(self._waiting) if queue]
        self._timer = Call(self._env, self._finish, max(0, ceil(min(due)))) if due else None

    def _finish(self, timer: Event) -> None:
        if timer is not self._timer:
            return
        self._advance()
        done = self._done()
        # An arrival may start flows at this instant: they join the sharing once all arrivals are processed.
        later, self._dirty = self._dirty, True
        for token in done:
            self._arrived(token)
        self._share(None)
        self._dirty = later

    def _done(self) -> list[Token]:
        """Remove the flows whose last unit has arrived, in the order of bundles, then of ends."""
        done: list[Token] = []
        for bundle, queue in enumerate(self._waiting):
            if not queue:
                continue
            # One picosecond of service covers the rounding of `_share` and the last bits of the additions.
            reached = self._service[bundle] + self._rates[bundle]
            while queue and queue[0][0] <= reached:
                done.append(heappop(queue)[2])
                self.counts[bundle] -= 1
            if not queue:
                self._service[bundle] = 0.0
        return done


@lru_cache(maxsize=64)
def _sharing(
    capacity: tuple[float, ...], routes: tuple[tuple[int, ...], ...], caps: tuple[float | None, ...]
) -> Sharing:
    """The cached sharing of these links; runs on equal machines reuse it."""
    return Sharing(capacity, routes, caps)


class Fluid:
    """All groups of one schedule: the group and bundle of each route."""

    def __init__(
        self,
        env: Environment,
        capacity: Sequence[float],
        flows: Sequence[tuple[tuple[int, ...], float | None]],
        arrived: Arrived,
    ) -> None:
        distinct = sorted(dict.fromkeys(flows), key=_flow_key)
        group_of = connected(len(capacity), [route for route, _ in distinct])
        links: dict[int, list[int]] = {}
        for link, owner in enumerate(group_of):
            links.setdefault(owner, []).append(link)
        members: dict[int, list[tuple[tuple[int, ...], float | None]]] = {}
        for flow in distinct:
            members.setdefault(group_of[flow[0][0]], []).append(flow)
        self.place: dict[tuple[tuple[int, ...], float | None], tuple[FluidGroup, int]] = {}
        for group in sorted(members):
            local = {link: position for position, link in enumerate(links[group])}
            routes = [tuple(local[link] for link in route) for route, _ in members[group]]
            caps = [cap for _, cap in members[group]]
            fluid = FluidGroup(env, [capacity[link] for link in links[group]], routes, caps, arrived)
            for bundle, flow in enumerate(members[group]):
                self.place[flow] = (fluid, bundle)


def _flow_key(flow: tuple[tuple[int, ...], float | None]) -> tuple[tuple[int, ...], float]:
    route, cap = flow
    return route, float("inf") if cap is None else cap
