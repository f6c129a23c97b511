"""Processes that must not outlive the one that started them, whatever ends it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

AGENT: Final = "GCNSIM_AGENT"
"""The number of the process that starts the workers of an emulated host."""

_PR_SET_PDEATHSIG: Final = 1


def end_with_agent() -> None:
    """End this worker when the host's agent, which started it, ends; nothing where AGENT names none."""
    agent = os.environ.get(AGENT, "")
    if agent.isdigit():
        end_with(int(agent))


def end_with(parent: int) -> None:
    """End this process, by SIGKILL, when its parent (number `parent`) ends; at once if that has happened already.

    Linux's prctl(2); elsewhere, where no cluster can be emulated, it does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(128 + signal.SIGKILL)
