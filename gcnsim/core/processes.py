"""Independent work on all cores: the same results in the same order for any number of processes.

Processes are forked, so data read by the parent (a graph, its traces) are shared and never copied through a pipe; only
indices are sent and results returned. If the system cannot fork, or there is one core or one item, it is a plain loop.
"""

from __future__ import annotations

import gc
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gcnsim.core.errors import KilledError
from gcnsim.core.resources import usable_resources
from gcnsim.core.signals import die_with_parent

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

LISTEN_S = 0.2
"""Seconds between two checks of other processes' progress."""

ENDING = (signal.SIGINT, signal.SIGTERM)
"""Signals that ask a process to end."""

_work: tuple[Callable[[Any], Any], Sequence[Any]] | None = None
"""The work of the forked processes: set before the fork, read after it."""


def cores() -> int:
    """The cores this process may use, by its affinity and the quota of its containers."""
    return usable_resources().cores


def parallel_map(function: Callable[[T], R], items: Sequence[T], processes: int) -> list[R]:
    """`function` of every item, in order, in up to `processes` processes; exceptions are raised here."""
    count = min(processes, len(items))
    return [function(item) for item in items] if _alone(count) else _forked(function, items, count, lambda: None)


def parallel_map_counted(
    function: Callable[[T, Callable[[int], object]], R],
    items: Sequence[T],
    processes: int,
    on_count: Callable[[int], object],
    *,
    threads: bool = False,
) -> list[R]:
    """`parallel_map` of a function that also counts: it calls its second argument with what it has just done.

    `on_count` hears of it in this process, whichever process did it: at once in this one, else a few times a second.
    threads: in as many threads of this process, for work that mostly runs without the interpreter's lock.
    """
    count = min(processes, len(items))
    if _alone(count):
        return [function(item, on_count) for item in items]
    done = np.frombuffer(mmap.mmap(-1, 8 * len(items)), np.int64)  # shared by all processes, one slot per item
    heard = 0

    def counted(position: int) -> R:
        def add(more: int) -> None:
            done[position] += more

        return function(items[position], add)

    def hear() -> None:
        nonlocal heard
        heard, before = int(done.sum()), heard
        on_count(heard - before)

    return (_threaded if threads else _forked)(counted, range(len(items)), count, hear)


def parallel_stream(
    function: Callable[[T], R], items: Sequence[T], processes: int, attempts: int
) -> Iterator[tuple[int, R | None]]:
    """Each item's index and `function` of it, as they arrive; None if its processes died `attempts` times or more.

    Exceptions are raised here. If a process dies, the guilty item is unknown: all active items are retried, and from
    the last attempt on each runs in a separate process. An item is given up when two of those died, because earlier
    ones may have died by another's fault.
    """
    tried = [0] * len(items)
    left = list(range(len(items)))
    while left:
        alone = [place for place in left if tried[place] >= attempts - 1]
        done: set[int] = set()
        under_way: set[int] = set()
        for place, found in _streamed(function, items, alone[:1] or left, processes, under_way):
            done.add(place)
            yield place, found
        for place in under_way - done:
            tried[place] += 1
            if tried[place] > attempts:
                done.add(place)
                yield place, None
        left = [place for place in left if place not in done]


def _streamed(
    function: Callable[[T], R], items: Sequence[T], places: Sequence[int], processes: int, under_way: set[int]
) -> Iterator[tuple[int, R]]:
    """The results of the items at `places`; ends early if a process dies. under_way: receives the started places."""
    from concurrent.futures import FIRST_COMPLETED, wait
    from concurrent.futures.process import BrokenProcessPool

    count = min(processes, len(places))
    todo = list(reversed(places))
    running: dict[Any, int] = {}

    def begin() -> None:
        running[made.submit(_one, todo[-1])] = todo[-1]
        under_way.add(todo.pop())

    try:
        with _pool(function, items, count) as (made, unblock):
            try:
                while todo and len(running) < count + 1:
                    begin()
            finally:
                unblock()
            while running:
                found, _ = wait(running, return_when=FIRST_COMPLETED)
                for item in found:
                    place = running.pop(item)
                    result = item.result()
                    if todo:
                        begin()
                    yield place, result
    except BrokenProcessPool:
        return


@contextmanager
def _pool(
    function: Callable[[T], R], items: Sequence[T], count: int
) -> Iterator[tuple[ProcessPoolExecutor, Callable[[], object]]]:
    """`count` new processes for `_one`, which are ended with the block if it fails; and what unblocks the end signals.

    A child that gets one before it has removed the parent's handlers would lose it, and be waited for indefinitely:
    until the first items are submitted these signals are blocked.
    """
    global _work
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    others = set(multiprocessing.active_children())
    _work = function, items
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    made = ProcessPoolExecutor(count, multiprocessing.get_context("fork"), partial(_begin, os.getpid(), usual))
    try:
        yield made, partial(signal.pthread_sigmask, signal.SIG_SETMASK, usual)
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        _work = None
        made.shutdown(cancel_futures=True)


def _alone(count: int) -> bool:
    """Whether `count` processes are just this one: few, no fork, or already a forked one."""
    return count < 2 or not sys.platform.startswith("linux") or _work is not None


def _forked(function: Callable[[T], R], items: Sequence[T], count: int, meanwhile: Callable[[], None]) -> list[R]:
    """`function` of every item in `count` new processes.

    `meanwhile` is called while they work and when they are done.
    """
    from concurrent.futures.process import BrokenProcessPool

    try:
        with _pool(function, items, count) as (made, unblock):
            try:
                found = [made.submit(_one, position) for position in range(len(items))]
            finally:
                unblock()
            return _awaited(found, meanwhile)
    except BrokenProcessPool:
        raise KilledError(
            f"one of {count} processes was killed, probably because memory ran out; --processes 1 needs the least"
        ) from None


def _threaded(function: Callable[[T], R], items: Sequence[T], count: int, meanwhile: Callable[[], None]) -> list[R]:
    """As `_forked`, in `count` threads of this process."""
    from concurrent.futures import ThreadPoolExecutor

    made = ThreadPoolExecutor(count)
    try:
        return _awaited([made.submit(function, item) for item in items], meanwhile)
    finally:
        made.shutdown(cancel_futures=True)


def _awaited(found: Sequence[Future[R]], meanwhile: Callable[[], None]) -> list[R]:
    """What all of `found` give, once they are done; `meanwhile` is called as they work and when they are done."""
    from concurrent.futures import FIRST_EXCEPTION, wait

    pending = set(found)
    while pending:
        done, pending = wait(pending, LISTEN_S, FIRST_EXCEPTION)
        for item in done:
            item.result()  # raises what it raised
        meanwhile()
    return [entry.result() for entry in found]


def _begin(parent: int, usual: set[int | signal.Signals]) -> None:
    """Initialise a new process; parent: the parent's number; usual: the signals blocked in the parent.

    It ends with its parent. Ctrl-C reaches the parent, which ends its children; they print nothing. Garbage collection
    of inherited objects is disabled: it would cost more than it frees (5 % of a simulation, measured), and copy shared
    pages.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()
    die_with_parent(parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, usual)


def _one(position: int) -> Any:
    assert _work is not None
    function, items = _work
    return function(items[position])
