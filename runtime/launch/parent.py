"""The parent of local workers: it starts them, ends all when one fails or the user asks, and reports why in one line.

It neither computes nor imports torch. Every worker leads a separate process group, so that Ctrl-C reaches only the
parent, and processes started by a worker end with it. All workers hold the read end of one pipe, and only the parent
its write end: however the parent ends, they see it close.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

from runtime.launch.launchers import RENDEZVOUS
from runtime.launch.verdict import ENDED_BY_TERM, FAILURES, Exit, Failure, first_cause, keep_room, read_failures, say
from runtime.launch.watch import PARENT

_POLL_S: Final = 0.05
_AGAIN_S: Final = 0.3
"""Signals closer than this are one request: `timeout` and terminals signal both the process and its group."""

_REQUESTS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def launch(
    argv: Sequence[str],
    workers: int,
    *,
    extra_env: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
    grace_s: float = 10.0,
    leave_s: float = 25.0,
) -> int:
    """Run `command` (usually `python -m runtime.train`) with `argv` in `workers` local processes; returns the exit
    code.

    0: all ended well. 2 or 1: a worker failed, by a user error or another one; the others got `grace_s` to end
    themselves. 128 + n: signal n (SIGTERM, SIGINT, SIGHUP) asked to stop; the workers had `leave_s` to finish their
    iteration and save it, or were killed at a second signal. Call it from the main thread.
    """
    base = [sys.executable, "-m", "runtime.train"] if command is None else command
    with (
        tempfile.TemporaryDirectory(prefix="gcnsim-run-", ignore_cleanup_errors=True) as folder,
        StopRequests() as requests,
    ):
        group = ProcessGroup(requests, grace_s, leave_s)
        with group.all_ended():
            try:
                keep_room(Path(folder), workers)
                group.start(_processes([*base, *argv], workers, {**os.environ, **(extra_env or {})}, Path(folder)))
            except OSError as error:
                say(f"worker {len(group.processes)}: cannot be started: {error.strerror}")
                return 1
            group.supervise()
        return answer(requests, group.exits, read_failures(Path(folder)))


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """A process to start: its command, and its complete environment."""

    command: Sequence[str]
    env: Mapping[str, str]


def _processes(command: Sequence[str], workers: int, env: Mapping[str, str], folder: Path) -> list[ProcessSpec]:
    """The same command for every worker; the environment contains the rank."""
    common = {**env, RENDEZVOUS: str(folder / "rendezvous"), FAILURES: str(folder)}
    common |= {"WORLD_SIZE": str(workers), "LOCAL_WORLD_SIZE": str(workers)}
    return [ProcessSpec(command, {**common, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(workers)]


def answer(
    requests: StopRequests, ends: Sequence[Exit], failures: Iterable[Failure], tell: Callable[[str], None] = say
) -> int:
    """Report how the run ended, if not well; returns the exit code. ends: of all workers that did not end well."""
    # A scheduler's SIGTERM may reach the workers before the parent: they ended as they would have been asked to.
    exits = [exit for exit in ends if not (requests.signum and exit.code in ENDED_BY_TERM)]
    cause = first_cause(exits, failures)
    if requests.signum and (requests.again or cause is None or cause.consequence):
        stuck = [str(exit.rank) for exit in ends if exit.stuck]
        killed = f"; killed: worker {', '.join(stuck)}" if stuck else ""
        tell(f"stopped by {signal.Signals(requests.signum).name}{killed}")
        return 128 + requests.signum
    if cause is None:
        return 0
    tell(cause.line)
    return cause.code


class StopRequests:
    """The user's signals while workers run: `signum` asks them to leave, `again` kills them."""

    def __init__(self) -> None:
        self.signum = 0
        self.again = False
        self._at = 0.0
        self._old: dict[int, Any] = {}

    def __enter__(self) -> StopRequests:
        for signum in _REQUESTS:
            if signal.getsignal(signum) is not signal.SIG_IGN:  # leave signals ignored by nohup and background jobs
                self._old[signum] = signal.signal(signum, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._old.items():
            signal.signal(signum, handler)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if not self.signum:
            self.signum, self._at = signum, now
        elif now - self._at > _AGAIN_S:
            self.again = True


class ProcessGroup:
    """The processes of one run. Invariant: a process in `processes` is alive or has its Exit in `exits`."""

    def __init__(self, requests: StopRequests, grace_s: float, leave_s: float) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.exits: list[Exit] = []
        self._asked = requests
        self._grace_s, self._leave_s = grace_s, leave_s
        self._told: dict[int, int] = {}
        self._deadline: float | None = None

    @contextlib.contextmanager
    def all_ended(self) -> Iterator[None]:
        """A block after which no worker is alive and every exit is known."""
        reader, writer = os.pipe()
        self._reader = reader
        try:
            yield
        finally:
            self._signal(signal.SIGKILL)
            while self._alive():
                time.sleep(_POLL_S)
            os.close(reader)
            os.close(writer)

    def start(self, specs: Sequence[ProcessSpec]) -> None:
        """Start all. The first one's output is the run's; the others only show errors."""
        for index, spec in enumerate(specs):
            process = subprocess.Popen(
                spec.command,
                env={**spec.env, PARENT: str(self._reader)},
                stdin=subprocess.DEVNULL,
                stdout=None if index == 0 else subprocess.DEVNULL,
                pass_fds=(self._reader,),
                process_group=0,
            )
            self.processes.append(process)

    def supervise(self) -> None:
        """Return when all workers have ended, soon after one fails or the user asks."""
        while self._alive():
            if self._asked.again:
                self._signal(signal.SIGKILL)
            elif not all(exit.willing for exit in self.exits):
                self._end_within(self._grace_s)
            elif self._asked.signum:
                self._end_within(self._leave_s)
            time.sleep(_POLL_S)

    def _end_within(self, seconds: float) -> None:
        """Ask all to end, once, and kill those still alive after the timeout."""
        now = time.monotonic()
        if self._deadline is None:
            self._signal(signal.SIGTERM)
        self._deadline = min(now + seconds, self._deadline or now + seconds)
        if now >= self._deadline:
            self._signal(signal.SIGKILL)

    def _signal(self, signum: signal.Signals) -> None:
        """Send a signal to every living worker; a deadly one also to its child processes."""
        for rank in self._alive():
            self._told[rank] = signum
            if signum == signal.SIGKILL:
                _kill_group(self.processes[rank].pid)
            else:
                self.processes[rank].send_signal(signum)

    def _alive(self) -> list[int]:
        """Ranks of the living workers; records the exits of the others."""
        known = {exit.rank for exit in self.exits}
        alive = []
        for rank, process in enumerate(self.processes):
            code = process.poll()
            if code is None:
                alive.append(rank)
            elif rank not in known:
                self.exits.append(Exit(rank, code, time.time() - _POLL_S, self._told.get(rank, 0)))
                _kill_group(process.pid)
        return alive


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
