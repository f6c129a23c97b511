"""Figures of a core that only a calibration tells, where compute is measured and no calibration is there.

The laws then say nothing but in which proportion operations of a schedule share the time of one that was measured:
every thing that such a figure counts is given a nanosecond.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gcnsim.cost import BATCH_FIGURES
from gcnsim.hardware import (
    ATTENTION_TERMS,
    POOLING_TERMS,
    AttentionFigures,
    DeviceProfile,
    Figure,
    HostProfile,
    PoolingFigures,
)

EACH_S: Final = 1e-9
WHY: Final = "stands for what was measured: shares the time of one operation among several"


def device_with_stand_ins(found: DeviceProfile) -> DeviceProfile:
    """A core with attention and pooling, where it does not have them."""
    attention, pooling = dict.fromkeys(ATTENTION_TERMS, EACH_S), dict.fromkeys(POOLING_TERMS, EACH_S)
    return replace(
        found,
        attention=found.attention or AttentionFigures(attention, attention),
        pooling=found.pooling or PoolingFigures(pooling, pooling),
    )


def host_with_stand_ins(found: HostProfile) -> HostProfile:
    """A host with figures of mini-batches and dropout, where it does not have them."""
    names = [name for name in (*BATCH_FIGURES, "dropout_values_per_s") if getattr(found, name) is None]
    values = {name: 1.0 / EACH_S if name.endswith("_per_s") else EACH_S for name in names}
    figures = {name: Figure(value, "given", WHY, "") for name, value in values.items()}
    return replace(found, **figures)  # type: ignore[arg-type]
