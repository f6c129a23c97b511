"""Operations of GPU workers that wait for one another in every product, each at least as long as its host calls."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.cost import STEP_CALLS
from gcnsim.cost.device import Size
from gcnsim.cost.host_calls import LAYER_CALLS, LOSS_CALLS
from gcnsim.methods.method import Facts
from gcnsim.timeline import OpKind

PRODUCT_CALLS: Final = 2
"""Framework calls of one sparse product: the sum and its addition to those before."""

_CALLS: Final[Mapping[OpKind, int]] = MappingProxyType(
    {OpKind.AGGREGATE: PRODUCT_CALLS, OpKind.UPDATE: LAYER_CALLS - PRODUCT_CALLS, OpKind.LOSS: LOSS_CALLS}
)


def issued(facts: Facts, kind: OpKind, seconds: Size) -> FloatArray:
    """Seconds of an operation with its host calls, which the step adds and others overlap; none in released code."""
    call_s = 0.0 if facts.released else facts.host.call_s.value
    if kind is OpKind.STEP:
        return np.asarray(seconds + STEP_CALLS * call_s, dtype=np.float64)
    return np.asarray(np.maximum(seconds, _CALLS[kind] * call_s), dtype=np.float64)
