"""Rows of questions from processes that stay warm, the same question asked once however many users ask it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Lock
from typing import Any, Final

from gcnsim.errors import ScenarioError
from gcnsim.results import Row

MOST_KEPT: Final = 20_000
"""Answers that are kept: about 2 KiB each."""

GONE: Final = "the process that answers has ended; ask again"


class Worker:
    """One process that answers a line with a line. Not for two threads at once."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> subprocess.Popen[str]:
        """The process, begun if it is not there."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gcnsim.dashboard.work", "rows", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
        return self._process

    def ask(self, line: str) -> dict[str, Any]:
        """The answer to one line."""
        process = self.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            answered = process.stdout.readline()
        except (OSError, ValueError):  # it has ended, or is ended now
            answered = ""
        if not answered:
            self.end()
            return {"error": GONE}
        found: dict[str, Any] = json.loads(answered)
        return found

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class Answers:
    """Rows by their options, kept; processes: how many answer side by side."""

    def __init__(self, processes: int) -> None:
        self._workers = [Worker() for _ in range(processes)]
        self._free: SimpleQueue[Worker] = SimpleQueue()
        for each in self._workers:
            each.start()
            self._free.put(each)
        self._threads = ThreadPoolExecutor(processes, "answers")
        self._kept: OrderedDict[str, Future[dict[str, Any]]] = OrderedDict()
        self._lock = Lock()

    def rows(self, asked: Sequence[Mapping[str, Any]]) -> list[Row]:
        """The row of each of the options. Raises ScenarioError (one line)."""
        found = [self._asked(json.dumps(each, sort_keys=True)) for each in asked]
        rows = []
        for each in found:
            answer = each.result()
            if "error" in answer:
                raise ScenarioError(answer["error"])
            rows += [Row(**told) for told in answer["rows"]]
        return rows

    def _asked(self, line: str) -> Future[dict[str, Any]]:
        with self._lock:
            if line in self._kept:
                self._kept.move_to_end(line)
                return self._kept[line]
            made = self._threads.submit(self._answered, line)
            self._kept[line] = made
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return made

    def _answered(self, line: str) -> dict[str, Any]:
        worker = self._free.get()
        try:
            found = worker.ask(line)
        finally:
            self._free.put(worker)
        if "error" in found:
            with self._lock:
                self._kept.pop(line, None)
        return found

    def end(self) -> None:
        """End all processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for each in self._workers:
            each.end()
