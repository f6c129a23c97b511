"""Threads that take turns on the cores of a machine.

As a fair scheduler does it (Linux: earliest eligible virtual deadline first, of the threads with equal weights): a
thread that wakes gets an idle core at once; else, where it has had less than a running one, it takes that one's core
once that has kept it for a short while. Otherwise threads wait until a running one has had its time slice, and then the
thread that has had least goes first. So short work among long work hardly waits and hardly delays it, and long work
shares the cores equally. Of what a waiting thread has had more than others a slice counts at most (Linux clamps a
thread's lag): one that ran while others slept does not wait until they have caught up with all of it. A thread does its
tasks in the order in which they became ready, and keeps its core from one task to the next. When all cores are busy
each of them is slower than one alone (shared memory, shared execution units): `capacity` core-seconds a second in all.
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
    """One thread: its tasks, [core-picoseconds left, token] each, and how much core time it has had."""

    __slots__ = ("had", "since", "tasks", "turn", "woken")

    def __init__(self) -> None:
        self.tasks: deque[list[Token]] = deque()
        self.had = 0.0
        self.since = 0
        self.turn = 0
        self.woken = False


class Cores:
    """The cores of one machine and the threads that run on them.

    cores: how many. capacity: core-seconds per second that all of them do together. slice_ps: how long a thread keeps a
    core that another waits for; wake_ps: and one that a thread waits for which has just been given work, at most
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
        """Core time that the thread which has had least, of those that ran last, has had: a waking one starts there."""
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
        """Who runs from this instant on, and until when nothing changes by itself."""
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
        """The thread whose turn it is; it has a core from now on."""
        thread = heappop(self._ready)[2]
        thread.since = now
        thread.woken = False
        return thread

    def _preempt(self, running: list[_Thread], now: int) -> None:
        """Give woken threads the cores of running ones that have had more and have kept them for a while."""
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
        # What ends may give its thread more to do at this very instant: who runs is decided when all is told.
        self._decide_later()
        for token in done:
            self._arrived(token)
