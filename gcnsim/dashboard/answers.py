"""Rows of questions from processes that stay warm: an equal one is asked once however many users ask it, the slowest
row of a question first, and what a page no longer waits for not at all."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Final

from gcnsim.dashboard.workers import Origin, Worker
from gcnsim.errors import ScenarioError

if TYPE_CHECKING:
    from gcnsim.results import Row

MOST_KEPT: Final = 20_000
"""Answers that are kept: about 2 KiB each."""

MOST_PAGES: Final = 1_000

MOST_GPUS: Final = 24
"""Rows of more GPUs take longer than a new process takes to begin: one that nobody waits for any more is given up
where others wait."""

PATIENCE_S: Final = 1.5
"""How long it goes on even so: somebody may come back to it."""


class SupersededError(Exception):
    """The page that asked has asked something else since."""


@dataclass(eq=False, slots=True)
class Turn:
    """One question of a page. over: the page has asked another one since. lines: what it waits for."""

    over: bool = False
    lines: list[str] = field(default_factory=list)


class Answers:
    """Rows by their options, kept; processes: how many answer side by side."""

    def __init__(self, processes: int) -> None:
        self._workers = [Worker() for _ in range(processes)]
        self._free: SimpleQueue[Worker] = SimpleQueue()
        Origin(self._workers)
        for each in self._workers:
            self._free.put(each)
        self._threads = ThreadPoolExecutor(processes, "answers")
        self._kept: OrderedDict[str, Future[dict[str, Any]]] = OrderedDict()
        self._wanted: dict[str, set[Turn]] = {}
        self._running: dict[str, Worker] = {}
        self._given_up: set[str] = set()
        self._turns: OrderedDict[str, Turn] = OrderedDict()
        self._lock = Lock()

    def turn(self, page: str) -> Turn:
        """A page asks anew: rows that it alone still waits for are not begun, and soon given up where others wait."""
        made = Turn()
        with self._lock:
            before = self._turns.pop(page, None)
            self._turns[page] = made
            if len(self._turns) > MOST_PAGES:
                self._turns.popitem(last=False)
            if before is not None:
                self._leave(before)
        return made

    def _leave(self, turn: Turn) -> None:
        """This question is no longer needed."""
        turn.over = True
        for line in turn.lines:
            wanted = self._wanted.get(line)
            if wanted is None:
                continue
            wanted.discard(turn)
            if wanted:
                continue
            if self._kept[line].cancel():
                del self._kept[line], self._wanted[line]
            elif json.loads(line).get("gpus", 0) > MOST_GPUS:
                timer = Timer(PATIENCE_S, self._give_up, [line])
                timer.daemon = True
                timer.start()

    def _give_up(self, line: str) -> None:
        """End the process that answers a line, where nobody waits for that and somebody for something else."""
        with self._lock:
            if self._wanted.get(line) == set() and line in self._running and len(self._wanted) > len(self._running):
                self._given_up.add(line)
                self._running[line].kill()

    def rows(self, asked: Sequence[Mapping[str, Any]], turn: Turn | None = None) -> list[Row]:
        """The row of each of the options. Raises ScenarioError (one line), and SupersededError once `turn` is over."""
        from gcnsim.results import Row

        turn = turn or Turn()
        lines = [json.dumps(each, sort_keys=True) for each in asked]
        order = sorted(zip(asked, lines, strict=True), key=lambda each: _effort(each[0]), reverse=True)
        with self._lock:
            if turn.over:
                raise SupersededError
            found = {line: self._asked(line, turn) for _, line in order}
        rows = []
        for line in lines:
            try:
                answer = found[line].result()
            except CancelledError:
                raise SupersededError from None
            if turn.over:
                raise SupersededError
            if "error" in answer:
                raise ScenarioError(answer["error"])
            rows += [Row(**told) for told in answer["rows"]]
        return rows

    def _asked(self, line: str, turn: Turn) -> Future[dict[str, Any]]:
        turn.lines.append(line)
        if line in self._kept:
            self._kept.move_to_end(line)
            if line in self._wanted:
                self._wanted[line].add(turn)
            return self._kept[line]
        self._wanted[line] = {turn}
        self._kept[line] = made = self._threads.submit(self._answered, line)
        if len(self._kept) > MOST_KEPT:
            oldest = next((each for each in self._kept if each not in self._wanted), line)
            if oldest != line:
                del self._kept[oldest]
        return made

    def _answered(self, line: str) -> dict[str, Any]:
        worker = self._free.get()
        with self._lock:
            self._running[line] = worker
        found = worker.ask(line)
        with self._lock:
            # Given up, and then somebody asked for it after all.
            again = line in self._given_up and bool(self._wanted[line])
            self._given_up.discard(line)
        if again:
            found = worker.ask(line)
        with self._lock:
            del self._running[line], self._wanted[line]
            if "error" in found:
                self._kept.pop(line, None)
        self._free.put(worker)
        return found

    def end(self) -> None:
        """End all processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for each in self._workers:
            each.end()


def _effort(asked: Mapping[str, Any]) -> tuple[int, int]:
    """What says which of several rows take long, which come first so that processes end together: GPUs, then how much
    the method has to be told."""
    return asked.get("gpus", 0), len(asked)
