"""Interrupts before a program is ready for them."""

from __future__ import annotations

import signal
import sys
from types import FrameType


def leave_quietly(program: str) -> None:
    """From now on, SIGINT ends `program` in one line with exit code 130; where it is ignored it stays so."""

    def leave(signum: int, frame: FrameType | None) -> None:
        sys.stderr.write(f"{program}: stopped by SIGINT\n")
        raise SystemExit(128 + signum)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)


def interrupt_again() -> None:
    """From now on, SIGINT raises KeyboardInterrupt as usual; where it is ignored it stays so."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
