"""A connected group of links that very many bundles cross: `FluidGroup` with its arithmetic compiled."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from math import ceil, inf

from simpy.core import Environment
from simpy.events import Event

from gcnsim.engine.calls import Call
from gcnsim.engine.filling import Filling
from gcnsim.engine.fluid import Arrived, FluidGroup, Token


class CompiledGroup(FluidGroup):
    """The same events in the same order, to the same picosecond; only who does the sums differs."""

    __slots__ = ("_filling",)

    def __init__(
        self,
        env: Environment,
        capacity: Sequence[float],
        routes: Sequence[tuple[int, ...]],
        caps: Sequence[float | None],
        arrived: Arrived,
    ) -> None:
        super().__init__(env, capacity, routes, caps, arrived)
        filling = self._filling = Filling(*self._per_ps)
        self.counts, self._service, self._rates = filling.counts, filling.service, filling.rates

    def join(self, bundle: int, units: float, token: Token) -> None:
        self._advance()
        self._serial += 1
        queue, filling = self._waiting[bundle], self._filling
        heappush(queue, (float(filling.service[bundle]) + units, self._serial, token))
        filling.heads[bundle] = queue[0][0]
        filling.counts[bundle] += 1
        self._share_later()

    def _advance(self) -> None:
        now = int(self._env.now)
        elapsed = now - self._last
        if elapsed:
            self._last = now
            self._before = self._serial
            self._filling.advance(elapsed)

    def _share(self, _: Event | None) -> None:
        self._dirty = False
        due = self._filling.share()
        self._timer = Call(self._env, self._finish, max(0, ceil(due))) if due < inf else None

    def _done(self) -> list[Token]:
        filling, done = self._filling, []
        for bundle in filling.reached():
            queue = self._waiting[bundle]
            level = filling.service[bundle] + filling.rates[bundle]
            while queue and queue[0][0] <= level:
                done.append(heappop(queue)[2])
                filling.counts[bundle] -= 1
            if queue:
                filling.heads[bundle] = queue[0][0]
            else:
                filling.heads[bundle] = inf
                filling.service[bundle] = 0.0
        return done
