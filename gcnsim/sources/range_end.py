"""Which end of the assumptions a run takes, and what of a method decides its access counts."""

from __future__ import annotations

from enum import Enum

from gcnsim.methods import Method


class RangeEnd(Enum):
    """Which end of the assumed ranges a run uses; without assumptions there is only the likely one."""

    LOW = 0
    LIKELY = 1
    HIGH = 2


def drawing(method: Method) -> tuple[object, ...]:
    """What of a method decides its access counts: tau and refresh do not."""
    return (method.sampling(), method.cache, method.cache_policy)
