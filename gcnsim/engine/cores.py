"""Threads that share the cores of a machine in turns.

The rules are those of a fair scheduler (Linux: earliest eligible virtual deadline first, threads of equal weight). A
thread that wakes gets an idle core at once. Otherwise, if it has had less core time than a running thread, it takes
that core after a short minimum. All other threads wait until a running thread has used its time slice; the thread with
the least core time runs next. So short work hardly waits and hardly delays long work, and long work shares the cores
equally.

A waiting thread's lead in core time is capped at one slice (Linux clamps a thread's lag): a thread that ran while
others slept does not wait until they have caught up. A thread does its tasks in the order in which they became ready,
and keeps its core between tasks. If all cores are busy, each is slower than a single busy one (shared memory and
execution units): `capacity` core-seconds per second in total.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from math import ceil

from simpy.core import Environment
from simpy.events import Event

from gcnsim.engine.fluid import AFTER_ALL_OTHERS, Arrived, Call, Token

DONE = 1.0
"""Picoseconds of work that rounding may leave."""


class _Thread:
    """One thread: its tasks, [core-picoseconds left, token] each, and its core time so far."""

    __slots__ = ("had", "since", "tasks", "turn", "woken")

    def __init__(self) -> None:
        self.tasks: deque[list[Token]] = deque()
        self.had = 0.0
        self.since = 0
        self.turn = 0
        self.woken = False


class Cores:
    """The cores of one machine and the threads that run on them.

    cores: the number of cores. capacity: core-seconds per second of all cores together. slice_ps: how long a thread
    keeps a core that another thread waits for. wake_ps: the same if the waiting thread has just woken up, at most
    slice_ps.
    """

    __slots__ = (
        "_arrived",
        "_capacity",
        "_cores",
        "_dirty",
        "_env",
        "_last",
        "_least",
        "_ready",
        "_running",
        "_serial",
        "_slice",
        "_threads",
        "_timer",
        "_wake",
    )

    def __init__(
        self, env: Environment, cores: int, capacity: float, slice_ps: int, wake_ps: int, arrived: Arrived
    ) -> None:
        self._env = env
        self._cores, self._capacity, self._slice, self._wake = cores, capacity, slice_ps, wake_ps
        self._arrived = arrived
        self._threads: dict[int, _Thread] = {}
        self._running: list[_Thread] = []
        self._ready: list[tuple[float, int, _Thread]] = []
        self._least = 0.0
        """The least core time among the threads that ran last; a waking thread starts from there."""
        self._last = 0
        self._serial = 0
        self._dirty = False
        self._timer: Event | None = None

    def join(self, thread: int, work_ps: float, token: Token) -> None:
        """Give `thread` a task of `work_ps` > 0; `arrived` is called with `token` when it is done."""
        self._advance()
        one = self._threads.get(thread)
        if one is None:
            one = self._threads[thread] = _Thread()
        one.tasks.append([work_ps, token])
        if len(one.tasks) == 1 and one not in self._running:
            one.had = max(one.had, self._least)
            one.woken = True
            self._wait(one)
        self._decide_later()

    def _wait(self, thread: _Thread) -> None:
        thread.had = min(thread.had, self._least + self._slice)
        self._serial += 1
        heappush(self._ready, (thread.had, self._serial, thread))

    @property
    def _rate(self) -> float:
        return min(1.0, self._capacity / len(self._running))

    def _advance(self) -> None:
        now = int(self._env.now)
        elapsed = now - self._last
        if elapsed:
            self._last = now
            if self._running:
                served = elapsed * self._rate
                for thread in self._running:
                    if thread.tasks:
                        thread.tasks[0][0] -= served
                        thread.had += served

    def _decide_later(self) -> None:
        if not self._dirty:
            self._dirty = True
            Call(self._env, self._decide, 0, None, AFTER_ALL_OTHERS)

    def _decide(self, _: Event | None) -> None:
        """Decide which threads run from this instant on, and set the time of the next change."""
        self._dirty = False
        now = int(self._env.now)
        running = [thread for thread in self._running if thread.tasks]
        if self._ready:
            for thread in [item for item in running if now - item.since >= self._slice]:
                if thread.had >= self._ready[0][0]:
                    running.remove(thread)
                    self._wait(thread)
                else:
                    thread.since = now
        while self._ready and len(running) < self._cores:
            running.append(self._next(now))
        self._preempt(running, now)
        self._running = running
        if not running:
            self._timer = None
            return
        self._least = max(self._least, min(thread.had for thread in running))
        rate = self._rate
        due = min(ceil(thread.tasks[0][0] / rate) for thread in running)
        if self._ready:
            due = min(due, min(thread.since for thread in running) + self._slice - now)
            had, _serial, top = self._ready[0]
            if top.woken:
                taken = (
                    max(machines.since + self._wake - now, ceil((had - machines.had) / rate)) for machines in running
                )
                due = min(due, *taken)
        self._timer = Call(self._env, self._turn, max(0, due))

    def _next(self, now: int) -> _Thread:
        """Move the next waiting thread to a core."""
        thread = heappop(self._ready)[2]
        thread.since = now
        thread.woken = False
        return thread

    def _preempt(self, running: list[_Thread], now: int) -> None:
        """Let woken threads preempt running ones that have had more core time and have used their minimum."""
        while self._ready and self._ready[0][2].woken:
            had = self._ready[0][0]
            able = [thread for thread in running if now - thread.since >= self._wake and thread.had >= had]
            if not able:
                return
            most = max(able, key=lambda thread: thread.had)
            running.remove(most)
            running.append(self._next(now))
            self._wait(most)

    def _turn(self, timer: Event) -> None:
        """A task is done, or a slice is over."""
        if timer is not self._timer:
            return
        self._advance()
        done = []
        for thread in self._running:
            if thread.tasks and thread.tasks[0][0] <= DONE:
                done.append(thread.tasks.popleft()[1])
        # A finished task may add work to its thread at this instant; decide only after all such events.
        self._decide_later()
        for token in done:
            self._arrived(token)
