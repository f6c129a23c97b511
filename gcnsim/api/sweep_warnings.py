"""Warnings about the rates of a sweep, given before it begins because its rows cannot show them."""

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
    """Warnings about impossibly high rates, for the base and for each value of each axis."""
    settings, found = Settings(question.base), []
    for values in _alone(question):
        # What contradicts the base alone may stand with other values: points say so.
        with suppress(GcnsimError):
            found.append(settings.scenario(values))
    return tuple(dict.fromkeys(rate_warnings(found)))
