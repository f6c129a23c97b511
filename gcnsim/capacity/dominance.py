"""When one option beats another, draw by draw."""

from __future__ import annotations

from typing import Final

import numpy as np

from gcnsim.ids import FloatArray

SURE: Final = 0.95
"""Of the joint draws: an option that another one beats in so many is dominated; in fewer, they cannot be told apart."""


def dominated(times: FloatArray, rates: float) -> FloatArray:
    """Draw by draw, whether an option of `times` the time of another, at `rates` its price of an hour, beats it: it is
    no slower and no dearer, and not the same in both, bool[draws]."""
    cost = times * rates
    no_worse = (times <= 1.0) & (cost <= 1.0)
    return np.asarray(no_worse & ((times < 1.0) | (cost < 1.0)))
