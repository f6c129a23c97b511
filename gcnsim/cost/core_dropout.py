"""What dropout costs a worker on a CPU core: masks drawn and multiplied with, as the runtime does it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.cost.device import Size, elementwise_seconds
from gcnsim.errors import ScenarioError
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.ids import FloatArray
from gcnsim.workload import DROPOUT_FIRST, NO_DROPOUT, LayerShape

MASK_PASSES = 3
"""Backward: gradient and mask read, their product written."""


@dataclass(frozen=True, slots=True)
class CoreDropout:
    """Core-seconds of one layer's dropout on one worker, float64[T] each: of its own rows, and of those it received."""

    inner: FloatArray
    boundary: FloatArray
    boundary_backward: FloatArray
    inner_backward: FloatArray


def core_dropout(
    device: DeviceProfile, host: HostProfile, order: str, shape: LayerShape, own: Size, received: Size, *, first: bool
) -> CoreDropout | None:
    """Of `own` rows and `received` ones that a layer reads; None where nothing is dropped.

    order: one of `gcnsim.workload.DROPOUTS`. first: the layer's rows are the input, which learns nothing. Attention
    and pooling drop all their rows at once, when they are there; where the sum was made before training, it and the own
    rows are dropped.
    Raises ScenarioError where no calibration has measured dropout.
    """
    if order == NO_DROPOUT:
        return None
    if host.dropout_values_per_s is None:
        raise ScenarioError(
            "cluster.calibration: has no dropout_values_per_s; dropout on CPU cores needs a calibration of a profile "
            "that measured it (python -m runtime.profile, then gcnsim calibrate)"
        )
    none: FloatArray = np.zeros(np.broadcast_shapes(np.shape(own), np.shape(received)))
    mine, others = none + own, none
    if shape.gathers and order != DROPOUT_FIRST:
        mine, others = (none, mine + received) if shape.joins else (mine, none + received)
    masks = 1 if shape.gathers else 2

    def seconds(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = rows * (masks * shape.d_in)
        assert host.dropout_values_per_s is not None
        undone = np.zeros(values.shape) if first else elementwise_seconds(device, values, MASK_PASSES)
        return values / host.dropout_values_per_s.value, undone

    (inner, inner_back), (boundary, boundary_back) = seconds(mine), seconds(others)
    return CoreDropout(inner, boundary, boundary_back, inner_back)
