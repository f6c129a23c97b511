"""Which end of the assumptions a run takes, and what of a method decides its access counts."""

from __future__ import annotations

from enum import Enum

from gcnsim.sampling import NODES
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
    return method.epsilon == 1.0 and method.rate == 1.0


def sampler_of(method: MethodSpec) -> tuple[str, float]:
    """The sampler that draws a method's graphs, and its rate; FULL at 1 where nothing is drawn."""
    if keeps_all(method):
        return FULL, 1.0
    return (NODES, method.rate) if method.rate < 1.0 else (method.sampler, method.epsilon)


def drawing(method: MethodSpec) -> tuple[object, ...]:
    """What of a method decides its access counts: tau and refresh do not."""
    return (*sampler_of(method), method.sample, method.norms, method.cache, method.cache_policy)
