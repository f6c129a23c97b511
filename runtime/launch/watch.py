"""A worker's watch: it ends with what started it, and receives requests to stop regardless of its main thread.

Where it waits in place of a GPU, it must also run as soon as it is woken.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from gcnsim.core.signals import die_with_parent
from runtime.launch.launchers import RENDEZVOUS, Place
from runtime.launch.verdict import FAILURES, say

STARTED_BY: Final = os.getppid()
"""The parent process at the start; it changes when the parent dies."""

AGENTS_WORKER: Final = "TORCHELASTIC_RUN_ID"
"""A variable that only torchrun's agent sets."""

PARENT: Final = "GCNSIM_WATCH"
"""The number of a pipe's read end; only the parent has the write end, so it closes when the parent dies."""


class Watch:
    """SIGTERM (and under torchrun SIGINT) becomes a request to stop; the parent's death ends this process.

    Until `ready` is called there is nothing to save, and a request ends the process at once with 128 + the signal's
    number. After it, `stop` becomes True, and the main thread finishes its iteration and leaves. torchrun waits 30 s
    before it kills; a worker under torchrun that has not left `patience_s` after the first request is ended here. The
    built-in parent uses its own timeout. One cause may send several requests (scheduler and launcher), so further ones
    change nothing. A thread waits for both, because signal handlers cannot run while the main thread is inside a
    collective.
    """

    def __init__(self, place: Place, *, patience_s: float = 20.0) -> None:
        self._launched = place.launched
        self._patience_s = patience_s
        self._ready = False
        self._stop = 0
        self._deadline: float | None = None
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    @property
    def stop(self) -> bool:
        """Whether this worker was asked to leave."""
        return self._stop != 0

    def ready(self) -> None:
        """From now on there is something to save: a request to stop only sets `stop`."""
        self._ready = True

    def __enter__(self) -> Watch:
        self._inbox, self._outbox = os.pipe()
        os.set_blocking(self._outbox, False)
        self._parent = int(os.environ[PARENT]) if self._launched else None
        if self._parent is not None:
            os.set_inheritable(self._parent, False)
        self._agent = None if self._launched else _agent()
        self._thread.start()
        self._old_wakeup = signal.set_wakeup_fd(self._outbox, warn_on_full_buffer=False)
        self._old: dict[int, Any] = {signal.SIGTERM: signal.signal(signal.SIGTERM, _noted)}
        answer = signal.SIG_IGN if self._launched else _noted
        self._old[signal.SIGINT] = signal.signal(signal.SIGINT, answer)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._old.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._old_wakeup)
        os.close(self._outbox)
        self._thread.join()
        os.close(self._inbox)
        if self._agent is not None:
            os.close(self._agent)

    def _run(self) -> None:
        while True:
            left = None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)
            sources = [item for item in (self._inbox, self._parent, self._agent) if item is not None]
            seen = select.select(sources, [], [], left)[0]
            if self._parent in seen:
                _end_with_parent()
            if self._agent is not None and self._agent in seen:
                say("the agent of torchrun that started this worker was killed; it ends too")
                _end_group()
            if self._inbox in seen:
                numbers = os.read(self._inbox, 64)
                if not numbers:
                    return
                self._forward(numbers)
            elif not seen:
                os._exit(128 + self._stop)

    def _forward(self, numbers: bytes) -> None:
        """Handle signals, some of which are not requests (e.g. SIGCHLD with another handler)."""
        signals = [number for number in numbers if number in (signal.SIGTERM, signal.SIGINT)]
        if not signals or self._stop:
            return
        self._stop = signals[0]
        if not self._ready:
            os._exit(128 + self._stop)
        if not self._launched:
            self._deadline = time.monotonic() + self._patience_s


def _noted(signum: int, frame: FrameType | None) -> None:
    """Do nothing; the existence of a handler makes the interpreter write the signal to the watch's pipe."""


def _end_with_parent() -> None:
    """Clean up for the dead parent, then end this process and everything it has started."""
    with contextlib.suppress(OSError):
        for path in (Path(os.environ[RENDEZVOUS]), *Path(os.environ[FAILURES]).glob("*.*")):
            path.unlink(missing_ok=True)
        Path(os.environ[FAILURES]).rmdir()
    _end_group()


def _agent() -> int | None:
    """A handle that becomes readable when the process that started this worker ends; None unless that is torchrun's
    agent.

    A shell or a scheduler may end before the workers that it started.
    """
    if AGENTS_WORKER not in os.environ or not hasattr(os, "pidfd_open"):
        return None
    try:
        agent = os.pidfd_open(STARTED_BY)
    except ProcessLookupError:
        _end_group()
    except OSError:
        return None
    if os.getppid() != STARTED_BY:
        _end_group()
    return agent


def _end_group() -> NoReturn:
    """End this process and everything it has started."""
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(128 + signal.SIGKILL)


def realtime_priority(yes: bool) -> bool:
    """Whether all threads of this process now run as soon as they are woken, whatever else the machine does (yes), or
    in turn with others. They wait most of the time, so nobody else is kept from a core for long.

    Needs Linux and the right to it; otherwise everything stays as it is.
    """
    if not sys.platform.startswith("linux"):
        return False
    policy, priority = (os.SCHED_RR, 1) if yes else (os.SCHED_OTHER, 0)
    try:
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setscheduler(int(thread), policy, os.sched_param(priority))
    except PermissionError:
        return False
    return yes


AGENT: Final = "GCNSIM_AGENT"
"""The number of the process that starts the workers of an emulated host."""


def end_with_agent() -> None:
    """End this worker when the host's agent, which started it, ends; nothing where AGENT names none."""
    agent = os.environ.get(AGENT, "")
    if agent.isdigit():
        die_with_parent(int(agent))
