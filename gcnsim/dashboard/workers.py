"""Processes that answer rows: forked from one that has read what they share, so it is read and held once."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, TextIO

GONE: Final = "the process that answers has ended; ask again"


class Origin:
    """The process that others are forked from, as long as one of them is used.

    It waits for none of them, so the number of one that has ended is no other process's until it ends itself.
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
        """End one of its processes, whatever it does."""
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)

    def leave(self, worker: Worker) -> None:
        """Be used by one less; end with the last."""
        self._used.discard(worker)
        if not self._used:
            self._process.kill()
            self._process.communicate()


class Worker:
    """One process that answers a line with a line. Not for two threads at once, but for `kill`."""

    def __init__(self) -> None:
        self._origin: Origin | None = None
        self._ours: socket.socket | None = None
        self._line: TextIO | None = None
        self._number: int | None = None

    def attach(self, origin: Origin, ours: socket.socket) -> None:
        """Answer by the process that `origin` forks at the other end of a socket."""
        self._origin, self._ours, self._number = origin, ours, None
        self._line = ours.makefile("rw", encoding="utf-8", newline="\n")

    def ask(self, line: str) -> dict[str, Any]:
        """The answer to one line, of a new process where the one before has ended."""
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
        found: dict[str, Any] = json.loads(answered)
        return found

    def kill(self) -> None:
        """End the process, whatever it does: who asked it hears that it is gone."""
        if self._number is not None and self._origin is not None:
            self._origin.kill(self._number)

    def end(self) -> None:
        """End the process."""
        self.kill()
        if self._origin is None or self._ours is None or self._line is None:
            return
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)  # whoever reads reads the end
        with suppress(OSError, ValueError):
            self._line.close()
        self._ours.close()
        self._origin.leave(self)
        self._origin = self._ours = self._line = self._number = None
