"""Requests to end: Ctrl-C and SIGTERM raise exceptions here, and raise again if Python drops them.

Exceptions in destructors and weak-reference callbacks are printed and dropped, and the interpreter runs such callbacks
after every import. Without this, a request at that moment would be lost, and the command would run to its end.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

AGAIN_S: Final = 0.02
"""Seconds until a dropped request is raised again."""


_PR_SET_PDEATHSIG: Final = 1
"""A constant of Linux's prctl(2)."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C.

    A separate class: if a KeyboardInterrupt passes through executed text (as in dataclasses), `python -m` dies by that
    signal even if it is caught, and not with our exit code.
    """


class Terminated(BaseException):
    """SIGTERM: a request to end."""


ANSWERS: Final = {
    signal.SIGINT: (signal.default_int_handler, Interrupted),
    signal.SIGTERM: (signal.SIG_DFL, Terminated),
}
"""By signal: the handler that is replaced, and the exception to raise."""


@contextmanager
def raising_signals() -> Iterator[None]:
    """Make both signals raise `Interrupted` and `Terminated` in this block.

    A signal that is ignored or already handled stays so; outside the main thread nothing changes.
    """
    main = threading.current_thread() is threading.main_thread()
    ours = {number: usual for number, (usual, _) in ANSWERS.items() if main and signal.getsignal(number) is usual}
    usual_hook = sys.unraisablehook

    def interrupt(number: int, _: FrameType | None) -> None:
        # A second request ends at once, without waiting for the first one's cleanup.
        signal.signal(number, ours[signal.Signals(number)])
        raise ANSWERS[signal.Signals(number)][1]

    def again(_: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code is dropped.__code__:
            signal.setitimer(signal.ITIMER_REAL, AGAIN_S)
            return
        raise lost[-1]

    def dropped(args: UnraisableHookArgs) -> None:
        if not issubclass(args.exc_type, Interrupted | Terminated):
            usual_hook(args)
            return
        lost.append(args.exc_type)
        signal.signal(signal.SIGALRM, again)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_S)

    lost: list[type[BaseException]] = []
    alarm = signal.getsignal(signal.SIGALRM)
    for number in ours:
        signal.signal(number, interrupt)
    sys.unraisablehook = dropped if ours else usual_hook
    try:
        yield
    finally:
        sys.unraisablehook = usual_hook
        for number, usual in ours.items():
            signal.signal(number, usual)
        if lost:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, alarm)


def interrupt_of(error: BaseException | None) -> BaseException | None:
    """The request to end behind `error`, if any (Python wraps exceptions raised while it creates a class)."""
    while error is not None and not isinstance(error, KeyboardInterrupt | Terminated):
        error = error.__cause__
    return error


def die_with_parent(parent: int) -> None:
    """Kill this process by SIGKILL when its parent (number `parent`) ends; at once if it has already ended.

    Linux's prctl(2). On other systems, which cannot emulate a cluster, it does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)
