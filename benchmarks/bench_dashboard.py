"""The dashboard as those meet it who use it: its start, one user's sliders, a drag, and 20 users at once.

`python -m benchmarks.bench_dashboard`, with a number the seconds that the 20 users take (60), then `users` for them
alone. A real server on loopback is sent the requests that its pages send; what a browser then draws is not in it. A
question is asked once: no answer that is measured was given before, except those that the 20 users share.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil
from statistics import median

from benchmarks.measuring import Figure, held_bytes, report, spent_s
from benchmarks.visitor import SLIDERS, Answered, Visitor, dashboard

WARM, MOVES = 12, 60
USERS, THINKS_S = 20, (0.5, 1.5)
DRAGGED, STEP_S = 6, 0.08
"""Stops that a slider is dragged over, and the seconds that it is at each."""

MOST_GPUS = 24

QUIET = ("bandwidth", "tau", "epsilon", "cache")
"""Sliders that leave the machine's size alone."""


@dataclass(slots=True)
class Walk:
    """Moves of one visitor to questions that were not asked before. seen: what was."""

    visitor: Visitor
    chance: random.Random
    sliders: Sequence[str] = QUIET
    seen: set[tuple[int, ...]] = field(default_factory=set)

    def next(self) -> tuple[str, int]:
        """A slider and its next stop. Raises RuntimeError once there is none left."""
        now = {name: self.visitor.place(name) for name in SLIDERS}
        for _ in range(1000):
            name = self.chance.choice(self.sliders)
            place = self.chance.randrange(len(self.visitor.stops(name)))
            requested = tuple((now | {name: place}).values())
            large = name == "gpus" and self.visitor.stops(name)[place] > MOST_GPUS
            if requested not in self.seen and place != now[name] and not large:
                self.seen.add(requested)
                return name, place
        raise RuntimeError("every question was asked")

    def timed(self) -> float:
        """Seconds from a move to its picture."""
        return timed(lambda: self.visitor.move(*self.next()))


def timed(ask: Callable[[], Answered]) -> float:
    """Seconds of a move that brings a picture. Raises RuntimeError where it brings none."""
    start = time.perf_counter()
    answered = ask()
    taken = time.perf_counter() - start
    if not answered.complete:
        raise RuntimeError(f"no picture: {answered.response}")
    return taken


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that `share` of all do not exceed."""
    return sorted(values)[ceil(share * len(values)) - 1]


def spread(name: str, values: Sequence[float], limit: str = "") -> Iterator[Figure]:
    """Median and 95th percentile."""
    yield Figure(f"{name}: median", median(values), "s")
    yield Figure(f"{name}: p95", percentile(values, 0.95), "s", limit)


def started(folder: str) -> Iterator[Figure]:
    """From the command to the first page with its picture, and the memory of all processes then."""
    begun = time.perf_counter()
    with dashboard("--files", folder) as (process, address):
        listens = time.perf_counter() - begun
        visitor = Visitor(address)
        visitor.load()
        visitor.page()
        shown = time.perf_counter() - begun
        timed(visitor.picture)
        yield Figure("start: listens", listens, "s")
        yield Figure("start: first page's fields", shown, "s")
        yield Figure("start: first page with its picture", time.perf_counter() - begun, "s", "<= 2")
        yield Figure("start: processor time of all that", spent_s(process), "s")
        yield Figure("memory with the first page", held_bytes(process) / 1e6, "MB", "<= 400")
        visitor.close()


def alone(process: int, address: str) -> Iterator[Figure]:
    """One user at 6 and at 24 GPUs, and a slider dragged over several stops at 24."""
    for gpus, limit in ((6, "<= 0.3"), (24, "<= 1")):
        visitor = Visitor(address)
        visitor.open("" if gpus == 6 else f"?gpus={gpus}")
        walk = Walk(visitor, random.Random(gpus))
        for _ in range(WARM):
            walk.timed()
        before = spent_s(process)
        taken = [walk.timed() for _ in range(MOVES)]
        yield from spread(f"{gpus} GPUs", taken, limit)
        yield Figure(f"{gpus} GPUs: processor time of a move", (spent_s(process) - before) / MOVES, "s")
        if gpus == 24:
            visitor.move("epsilon", 0)
            yield from spread("24 GPUs, dragged", [dragged(visitor, 41 + 2 * index) for index in range(5)])
        visitor.close()


def dragged(visitor: Visitor, cache: int) -> float:
    """Seconds from the last of several stops, each asked without waiting for the one before, to its picture: epsilon
    from one end to the other, at another cache than before."""
    places = range(1, 1 + DRAGGED)
    places = places if visitor.place("epsilon") < places[0] else places[::-1]
    visitor.move("cache", cache % len(visitor.stops("cache")))
    with ThreadPoolExecutor(DRAGGED) as threads:
        for place in places[:-1]:
            threads.submit(visitor.move, "epsilon", place, apart=True)
            time.sleep(STEP_S)
        taken = timed(lambda: visitor.move("epsilon", places[-1]))
    visitor.move("epsilon", 0 if places[-1] == 1 else 1 + DRAGGED)
    return taken


def together(address: str, seconds: float, sliders: Sequence[str]) -> tuple[list[float], list[str]]:
    """Seconds of every move of 20 users, each of whom looks at a picture for a second or so; what went wrong."""
    end = time.perf_counter() + seconds

    def user(number: int) -> tuple[list[float], list[str]]:
        taken: list[float] = []
        chance = random.Random(1000 + number)
        time.sleep(chance.uniform(0.0, THINKS_S[1]))
        visitor = Visitor(address)
        try:
            visitor.open()
            walk = Walk(visitor, chance, sliders)
            while time.perf_counter() < end:
                taken.append(walk.timed())
                time.sleep(chance.uniform(*THINKS_S))
        except (OSError, RuntimeError) as error:
            return taken, [f"{type(error).__name__}: {error}"]
        finally:
            visitor.close()
        return taken, []

    with ThreadPoolExecutor(USERS) as threads:
        found = list(threads.map(user, range(USERS)))
    return [value for taken, _ in found for value in taken], [text for _, wrong in found for text in wrong]


def main() -> int:
    """Measure; return the exit code."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    with tempfile.TemporaryDirectory() as folder:
        figures: list[Figure] = []
        if sys.argv[2:] != ["users"]:
            list(started(folder))  # what the system reads from disk once
            figures += started(folder)
            with dashboard("--files", folder) as (process, address):
                figures += alone(process, address)
                figures.append(Figure("memory after 24 GPUs", held_bytes(process) / 1e6, "MB"))
        with dashboard("--files", folder) as (process, address):
            for name, sliders, limit in (("6 GPUs", QUIET, "<= 1"), ("2 to 24 GPUs", SLIDERS, "")):
                before = spent_s(process)
                taken, wrong = together(address, seconds, sliders)
                used = (spent_s(process) - before) / len(taken)
                sys.stdout.writelines(f"  {text}\n" for text in wrong)
                figures.append(Figure(f"{USERS} users, {name}: errors", len(wrong), "", "<= 0"))
                figures.append(Figure(f"{USERS} users, {name}: moves", len(taken), ""))
                figures += spread(f"{USERS} users, {name}", taken, limit)
                figures.append(Figure(f"{USERS} users, {name}: processor time of a move", used, "s"))
            figures.append(Figure("memory after them", held_bytes(process) / 1e6, "MB"))
    return report("dashboard", f"gcnsim dashboard, {USERS} users for {seconds:g} s", figures)


if __name__ == "__main__":
    sys.exit(main())
