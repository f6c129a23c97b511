"""Answer rows of questions in warm processes.

An equal row is computed once for any number of users. The slowest row of a question comes first, and rows that no page
waits for are skipped. The processes are forked from one that has read the shared inputs, so these are read and stored
once.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any, Final, TextIO

from gcnsim.core.errors import ScenarioError
from gcnsim.core.stamps import stamps_of

if TYPE_CHECKING:
    from gcnsim.results import Row

GONE: Final = "the process that answers has ended; ask again"


class Origin:
    """The process that the workers are forked from; it lives as long as one of them is used.

    It does not reap them, so the process id of an ended worker is not reused before it ends itself.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        pairs = [socket.socketpair() for _ in workers]
        numbers = [theirs.fileno() for _, theirs in pairs]
        self._used = set(workers)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "gcnsim.dashboard.work", "rows", str(os.getpid()), *map(str, numbers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=numbers,
            start_new_session=True,
        )
        for worker, (ours, theirs) in zip(workers, pairs, strict=True):
            theirs.close()
            worker.attach(self, ours)

    def kill(self, number: int) -> None:
        """Kill one of its processes."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def leave(self, worker: Worker) -> None:
        """Release one use; end with the last."""
        self._used.discard(worker)
        if not self._used:
            self._process.kill()
            self._process.communicate()


class Worker:
    """One process that answers a line with a line. Not thread-safe, except for `kill`."""

    def __init__(self) -> None:
        self._origin: Origin | None = None
        self._ours: socket.socket | None = None
        self._line: TextIO | None = None
        self._number: int | None = None

    def attach(self, origin: Origin, ours: socket.socket) -> None:
        """Connect to the process that `origin` forks at the other end of a socket."""
        self._origin, self._ours, self._number = origin, ours, None
        self._line = ours.makefile("rw", encoding="utf-8", newline="\n")

    def ask(self, line: str) -> dict[str, Any]:
        """The answer to one line, from a new process if the previous one has ended."""
        if self._line is None:
            Origin([self])
        held = self._line
        assert held is not None
        try:
            if self._number is None:
                self._number = int(held.readline())
            held.write(line + "\n")
            held.flush()
            answered = held.readline()
        except (OSError, ValueError):  # it has ended, or is ended now
            answered = ""
        if not answered:
            self.end()
            return {"error": GONE}
        answer: dict[str, Any] = json.loads(answered)
        return answer

    def kill(self) -> None:
        """Kill the process; a waiting caller gets an error."""
        if self._number is not None and self._origin is not None:
            self._origin.kill(self._number)

    def end(self) -> None:
        """End the process."""
        self.kill()
        origin, ours, line = self._origin, self._ours, self._line
        self._origin = self._ours = self._line = self._number = None  # another thread may end it as well
        if origin is None or ours is None or line is None:
            return
        with suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)  # wakes up waiting readers
        with suppress(OSError, ValueError):
            line.close()
        ours.close()
        origin.leave(self)


MOST_KEPT: Final = 20_000
"""The most cached answers, about 2 KiB each."""

MOST_PAGES: Final = 1_000

USUAL_LAYERS: Final = 2
MOST_WORK: Final = 24**2 * USUAL_LAYERS
"""Rows with more GPUs, squared, times layers take longer than a process start. If no page waits for one, its process is
killed when another row waits.
"""

PATIENCE_S: Final = 1.5
"""Seconds that such a row continues nevertheless, because a page may return to it."""


class SupersededError(Exception):
    """The page has sent another question since."""


@dataclass(eq=False, slots=True)
class RequestTicket:
    """One question of a page. over: the page has sent another one since. lines: the rows it waits for."""

    over: bool = False
    lines: list[str] = field(default_factory=list)


class Answers:
    """Cached rows by their options; processes: the number of parallel workers."""

    def __init__(self, processes: int) -> None:
        self._workers = [Worker() for _ in range(processes)]
        self._free: SimpleQueue[Worker] = SimpleQueue()
        Origin(self._workers)
        for worker in self._workers:
            self._free.put(worker)
        self._threads = ThreadPoolExecutor(processes, "answers")
        self._kept: OrderedDict[str, Future[dict[str, Any]]] = OrderedDict()
        self._wanted: dict[str, set[RequestTicket]] = {}
        self._running: dict[str, Worker] = {}
        self._given_up: set[str] = set()
        self._turns: OrderedDict[str, RequestTicket] = OrderedDict()
        self._lock = Lock()

    def turn(self, page: str) -> RequestTicket:
        """Start a new question of a page: rows that only its old question waits for are dropped or soon killed."""
        made = RequestTicket()
        with self._lock:
            before = self._turns.pop(page, None)
            self._turns[page] = made
            if len(self._turns) > MOST_PAGES:
                self._turns.popitem(last=False)
            if before is not None:
                self._leave(before)
        return made

    def _leave(self, turn: RequestTicket) -> None:
        """Mark this question as no longer needed."""
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
            elif _work(json.loads(_asked(line))) > MOST_WORK:
                timer = Timer(PATIENCE_S, self._give_up, [line])
                timer.daemon = True
                timer.start()

    def _give_up(self, line: str) -> None:
        """End the process that answers a line if no page waits for it and another row waits."""
        with self._lock:
            if self._wanted.get(line) == set() and line in self._running and len(self._wanted) > len(self._running):
                self._given_up.add(line)
                self._running[line].kill()

    def rows(self, requests: Sequence[Mapping[str, Any]], turn: RequestTicket | None = None) -> list[Row]:
        """The row of each of the options. Raises ScenarioError (one line), and SupersededError once `turn` is over."""
        from gcnsim.results import Row

        turn = turn or RequestTicket()
        lines = [_key(request) for request in requests]
        order = sorted(zip(requests, lines, strict=True), key=lambda item: _effort(item[0]), reverse=True)
        with self._lock:
            if turn.over:
                raise SupersededError
            futures = {line: self._submit(line, turn) for _, line in order}
        rows = []
        for line in lines:
            try:
                answer = futures[line].result()
            except CancelledError:
                raise SupersededError from None
            if turn.over:
                raise SupersededError
            if "error" in answer:
                raise ScenarioError(answer["error"])
            rows += [Row(**values) for values in answer["rows"]]
        return rows

    def progress(self, page: str) -> tuple[int, int]:
        """How many rows of a page's question are answered, and of how many that it asked for so far."""
        with self._lock:
            turn = self._turns.get(page)
            lines = set() if turn is None else set(turn.lines)
            return sum(line not in self._wanted for line in lines), len(lines)

    def read(self, request: Mapping[str, Any]) -> str:
        """What was read of the own graph of options whose row is answered; empty without one."""
        with self._lock:
            kept = self._kept.get(_key(request))
        return str(kept.result().get("read", "")) if kept is not None and kept.done() else ""

    def _submit(self, line: str, turn: RequestTicket) -> Future[dict[str, Any]]:
        turn.lines.append(line)
        if line in self._kept:
            self._kept.move_to_end(line)
            if line in self._wanted:
                self._wanted[line].add(turn)
            return self._kept[line]
        self._wanted[line] = {turn}
        self._kept[line] = made = self._threads.submit(self._run, line)
        if len(self._kept) > MOST_KEPT:
            oldest = next((item for item in self._kept if item not in self._wanted), line)
            if oldest != line:
                del self._kept[oldest]
        return made

    def _run(self, line: str) -> dict[str, Any]:
        worker = self._free.get()
        with self._lock:
            self._running[line] = worker
        answer = worker.ask(_asked(line))
        with self._lock:
            # It was killed, and then requested again.
            again = line in self._given_up and bool(self._wanted[line])
            self._given_up.discard(line)
        if again:
            answer = worker.ask(_asked(line))
        with self._lock:
            del self._running[line], self._wanted[line]
            if "error" in answer:
                self._kept.pop(line, None)
        self._free.put(worker)
        return answer

    def end(self) -> None:
        """End all processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.end()


def _key(options: Mapping[str, Any]) -> str:
    """The line of these options, and below it the stamps of the files that they name."""
    stamps = stamps_of(options)
    return "\n".join([json.dumps(options, sort_keys=True), *([json.dumps(stamps)] if stamps else [])])


def _asked(key: str) -> str:
    """The line of a key."""
    return key.partition("\n")[0]


def _effort(options: Mapping[str, Any]) -> tuple[int, int]:
    """The relative effort of a row, to start slow ones first: its work, then how many knobs the method needs."""
    return _work(options), len(options)


def _work(options: Mapping[str, Any]) -> int:
    """Pairs of GPUs times layers."""
    gpus: int = options.get("gpus", 0)
    layers: int = options.get("layers", USUAL_LAYERS)
    return gpus**2 * layers
