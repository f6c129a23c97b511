"""Which end of the assumptions a run takes, and what of a method decides its access counts."""

from __future__ import annotations

from enum import Enum

from gcnsim.scenario import MethodSpec

FULL = "full"
"""The sampler that keeps every edge."""


class Corner(Enum):
    """Which end of the stated assumptions a run takes; where nothing is assumed there is only the likely one."""

    LOW = 0
    LIKELY = 1
    HIGH = 2


def keeps_all(method: MethodSpec) -> bool:
    """Whether a method draws nothing: every edge of every graph is kept."""
    return method.epsilon == 1.0


def drawing(method: MethodSpec) -> tuple[object, ...]:
    """What of a method decides its access counts: tau and refresh do not."""
    rule = (FULL,) if keeps_all(method) else (method.sampler, method.epsilon, method.norms)
    return (*rule, method.cache, method.cache_policy)
