"""Processes that must run as soon as they are woken, and must not outlive the one that started them."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Final

from gcnsim.core.signals import die_with_parent


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
