"""What is odd about the rates that a sweep asks for, said before it begins: its rows have no room for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from gcnsim.errors import GcnsimError
from gcnsim.planning import rate_warnings
from gcnsim.sweeps import Question, Settings


def _alone(question: Question) -> Iterator[dict[str, Any]]:
    """Nothing, then each value of each axis of the cluster, of ranges the ends."""
    yield {}
    for axis in question.axes:
        if axis.path.startswith("cluster."):
            ends = axis.values if axis.between is None else (axis.between.at(0.0), axis.between.at(1.0))
            yield from ({axis.path: each} for each in ends)


def sweep_warnings(question: Question) -> tuple[str, ...]:
    """Lines about rates above what there is, of the base and of each value of an axis alone put into it."""
    settings, found = Settings(question.base), []
    for values in _alone(question):
        # What contradicts the base alone may stand with other values: points say so.
        with suppress(GcnsimError):
            found.append(settings.scenario(values))
    return tuple(dict.fromkeys(rate_warnings(found)))
