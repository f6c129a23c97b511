"""Requests to end: Ctrl-C and SIGTERM raise here, and where Python drops what they raise they raise again.

What a destructor or the callback of a weak reference raises is printed and dropped, and the interpreter runs such
callbacks after every import: without this, a request that comes just then is lost, and the command runs on to its end.
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
"""From a request that was dropped until it is made again."""


_PR_SET_PDEATHSIG: Final = 1
"""Of Linux's prctl(2)."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C.

    A class of our own: where a KeyboardInterrupt itself passes through text that is executed (dataclasses are made so),
    `python -m` ends by that signal whatever catches it, and not with our exit code.
    """


class Terminated(BaseException):
    """SIGTERM: whoever started us wants us to end."""


ANSWERS: Final = {
    signal.SIGINT: (signal.default_int_handler, Interrupted),
    signal.SIGTERM: (signal.SIG_DFL, Terminated),
}
"""By signal: the handler that we replace, and what ours raises."""


@contextmanager
def raising_signals() -> Iterator[None]:
    """A block in which both signals raise `Interrupted` and `Terminated`.

    One that somebody ignores or handles stays so, and both do where it is not the main thread that runs us.
    """
    main = threading.current_thread() is threading.main_thread()
    ours = {number: usual for number, (usual, _) in ANSWERS.items() if main and signal.getsignal(number) is usual}
    usual_hook = sys.unraisablehook

    def interrupt(number: int, _: FrameType | None) -> None:
        # Whoever asks twice does not want to wait for the first request to be done with.
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
    """The request to end that `error` is or came of (Python wraps what interrupts it as it makes a class)."""
    while error is not None and not isinstance(error, KeyboardInterrupt | Terminated):
        error = error.__cause__
    return error


def die_with_parent(parent: int) -> None:
    """End this process, by SIGKILL, when its parent (number `parent`) ends; at once if that has happened already.

    Linux's prctl(2); elsewhere, where no cluster can be emulated, it does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)
