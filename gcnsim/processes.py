"""Independent work on all cores: the same results in the same order, whatever the number of processes.

Processes are forked, so what the parent has read (a graph, its traces) is shared and never copied through a pipe;
only positions go out and results come back. Where the system cannot fork, or there is one core or one item, it is a
plain loop.
"""

from __future__ import annotations

import gc
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gcnsim.errors import KilledError
from gcnsim.resources import usable_resources
from gcnsim.signals import die_with_parent

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")

LISTEN_S = 0.2
"""Between two looks at how far other processes are."""

ENDING = (signal.SIGINT, signal.SIGTERM)
"""Signals that ask a process to end."""

_work: tuple[Callable[[Any], Any], Sequence[Any]] | None = None
"""What the forked processes do: set before the fork, read after it."""


def cores() -> int:
    """Cores this process may use, by its affinity and the quota of its containers."""
    return usable_resources().cores


def parallel_map(function: Callable[[T], R], items: Sequence[T], processes: int) -> list[R]:
    """`function` of every item, in order, in up to `processes` processes; what one of them raises is raised here."""
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
    """As `each`, of a function that also says how far it is: it calls its second argument with what it has just done.

    `on_count` hears of it in this process, whichever process did it: at once in this one, else a few times a second.
    threads: in as many threads of this process, for work that mostly runs without the interpreter's lock.
    """
    count = min(processes, len(items))
    if _alone(count):
        return [function(item, on_count) for item in items]
    done = np.frombuffer(mmap.mmap(-1, 8 * len(items)), np.int64)  # seen by all processes; a place for every item
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
    """Each item's place and `function` of it, as they come; None where its processes ended, `attempts` times and more.

    What an item raises is raised here. Where a process ends, nobody knows whose fault it was: all that were under way
    are asked again, and from the last attempt on each in a process of its own. It is given up when two of those ended:
    attempts before may have ended by another's fault.
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
    """Of the items at `places`; ends early where a process ends. under_way: takes the places that were handed out."""
    global _work
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
    from concurrent.futures.process import BrokenProcessPool

    others = set(multiprocessing.active_children())
    count = min(processes, len(places))
    todo = list(reversed(places))
    _work = function, items
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    made = ProcessPoolExecutor(count, multiprocessing.get_context("fork"), partial(_begin, os.getpid(), usual))
    running: dict[Any, int] = {}
    complete = False
    try:
        try:
            while todo and len(running) < count + 1:
                running[made.submit(_one, todo[-1])] = todo[-1]
                under_way.add(todo.pop())
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        while running:
            found, _ = wait(running, return_when=FIRST_COMPLETED)
            for item in found:
                place = running.pop(item)
                result = item.result()
                if todo:
                    running[made.submit(_one, todo[-1])] = todo[-1]
                    under_way.add(todo.pop())
                yield place, result
        complete = True
    except BrokenProcessPool:
        return
    finally:
        _work = None
        if not complete:
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
        made.shutdown(cancel_futures=True)


def _alone(count: int) -> bool:
    """Whether `count` processes are this one: few, no fork, or this is one of them."""
    return count < 2 or not sys.platform.startswith("linux") or _work is not None


def _forked(function: Callable[[T], R], items: Sequence[T], count: int, meanwhile: Callable[[], None]) -> list[R]:
    """`function` of every item in `count` new processes; `meanwhile` is called as they work and when they are done."""
    global _work
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    others = set(multiprocessing.active_children())
    _work = function, items
    # A process that is asked to end before it has put the parent's handlers away would lose that word, and be waited
    # for for ever: until then it is kept.
    usual = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    begin = partial(_begin, os.getpid(), usual)
    made = ProcessPoolExecutor(count, multiprocessing.get_context("fork"), begin)
    complete = False
    try:
        try:
            found = [made.submit(_one, position) for position in range(len(items))]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, usual)
        results = _awaited(found, meanwhile)
        complete = True
        return results
    except BrokenProcessPool:
        raise KilledError(
            f"one of {count} processes was killed, as systems do that run out of memory; --processes 1 needs the least"
        ) from None
    finally:
        _work = None
        if not complete:
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
        made.shutdown(cancel_futures=True)


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
    """What a new process does first; parent: the number of who started it; usual: the signals that this one blocks.

    It ends with its parent, whatever ends that. Ctrl-C reaches the parent, which ends its processes; they say nothing
    of their own. What they have from the parent stays anyway: looking through it for cycles of garbage would cost more
    than it frees (5 % of a simulation, measured), and copy its pages.
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
