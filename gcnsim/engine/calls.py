"""A call in SimPy's calendar: an event that is already decided, as SimPy's own Timeout is, with one thing to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from simpy.core import Environment
from simpy.events import Event


class Call(Event):
    """`function` is called with this event `delay` picoseconds from now; the event carries `value`."""

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
