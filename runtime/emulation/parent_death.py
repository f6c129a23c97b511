"""Processes that must not outlive the one that started them, whatever ends it."""

from __future__ import annotations

import os
from typing import Final

from gcnsim.ending import end_with

AGENT: Final = "GCNSIM_AGENT"
"""The number of the process that starts the workers of an emulated host."""


def end_with_agent() -> None:
    """End this worker when the host's agent, which started it, ends; nothing where AGENT names none."""
    agent = os.environ.get(AGENT, "")
    if agent.isdigit():
        end_with(int(agent))
