"""Entry point of `python -m runtime.emulate`, and quiet handling of interrupts before a program is ready for them."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from gcnsim.core.terminal import screened


def leave_quietly(program: str) -> None:
    """From now on, SIGINT ends `program` in one line with exit code 130; where it is ignored it stays so."""

    def leave(signum: int, frame: FrameType | None) -> None:
        # Nothing is begun that would have to be ended, and what is raised in a callback of an import is dropped.
        os.write(2, f"{program}: stopped by SIGINT\n".encode())
        os._exit(128 + signum)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, leave)


def interrupt_again() -> None:
    """From now on, SIGINT raises KeyboardInterrupt as usual; where it is ignored it stays so."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    # The imports below take their time.
    leave_quietly("runtime.emulate")
    from runtime.emulate.command import main

    interrupt_again()
    with screened():
        sys.exit(main(sys.argv[1:]))
