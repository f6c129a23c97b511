"""When one option beats another, draw by draw."""

from __future__ import annotations

from math import inf
from typing import Final

import numpy as np

from gcnsim.ids import FloatArray

SURE: Final = 0.95
"""Of the joint draws: an option that another one beats in so many is dominated; in fewer, they cannot be told apart."""


def times_as_dear(price: float, other: float) -> float:
    """`price` over `other`, either of which may be 0 (a machine of one's own): two that cost nothing cost the same."""
    if other == 0.0:
        return 1.0 if price == 0.0 else inf
    return price / other


def dominated(times: FloatArray, rates: float) -> FloatArray:
    """Draw by draw, whether an option of `times` the time of another, at `rates` its price of an hour, beats it: it is
    no slower and no dearer, and not the same in both, bool[draws]."""
    cost = times * rates
    no_worse = (times <= 1.0) & (cost <= 1.0)
    return np.asarray(no_worse & ((times < 1.0) | (cost < 1.0)))
