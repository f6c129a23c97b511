"""What a layer of GraphSAGE's pooling costs a worker on a CPU core: as the runtime computes it.

All rows, those of the boundary too, meet the map before pooling and its ReLU; the largest values of each row's
neighbours are taken, column by column; own rows and these each meet a map (Hamilton et al., GraphSAGE, Equation 3 and
Algorithm 1). Nothing of it can begin before all rows are there. What taking the largest values costs is measured
(`gcnsim.hardware.profiles`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gcnsim.cost.core import JOINED_PASSES, NORM_PASSES, RELU_BACKWARD_PASSES, RELU_PASSES, CoreCost, Kept
from gcnsim.cost.device import Size, elementwise_seconds
from gcnsim.cost.far import device_in_training
from gcnsim.cost.maps import map_seconds, weight_seconds
from gcnsim.errors import ScenarioError
from gcnsim.hardware import POOLING_TERMS, DeviceProfile, PoolingFigures
from gcnsim.ids import FloatArray
from gcnsim.workload import LayerShape

OWN_PASSES = 2
"""Backward, the gradient of a worker's own rows is read and written,"""

ALL_PASSES = 4
"""among as many rows as there are, all zero, and added to that of the map before pooling: two read, one written."""

PARTED_PASSES = 2
"""Then own rows' gradients and those of others are read and written apart."""


@dataclass(frozen=True, slots=True)
class PoolingCost:
    """Core-seconds of what stands before a layer's own maps, float64[T]: the largest values taken, and the map of all
    rows with its ReLU; and their gradients."""

    largest: FloatArray
    mapped: FloatArray
    largest_backward: FloatArray
    mapped_backward: FloatArray
    input_backward: FloatArray
    """The gradient of the rows read: of the map before pooling, and of the own rows put among the others; 0 where they
    are the input."""


def pooling_cost(
    device: DeviceProfile, shape: LayerShape, *, entries: Size, read: Size, made: Size, first: bool, between: float
) -> PoolingCost:
    """Of `read` rows that `entries` entries gather into `made` ones. first: the rows are the input. between: bytes that
    an iteration touches.

    Raises ScenarioError where the device's calibration does not know pooling.
    """
    figures = _known(device)
    width, rows = shape.d_in, np.asarray(read, np.float64)
    values, zero = rows * width, np.zeros(np.broadcast_shapes(np.shape(entries), np.shape(read), np.shape(made)))
    ahead, behind = (_seconds(item, entries, rows, made, width) for item in (figures.forward, figures.backward))
    trains = device_in_training(device, between)
    relu = elementwise_seconds(trains, values, RELU_PASSES)
    undone = elementwise_seconds(device, values, RELU_BACKWARD_PASSES)
    own = elementwise_seconds(device, np.asarray(made, np.float64) * width, OWN_PASSES)
    added = own + elementwise_seconds(device, values, ALL_PASSES)
    return PoolingCost(
        largest=zero + ahead,
        mapped=zero + map_seconds(trains, rows, width, width) + relu,
        largest_backward=zero + behind,
        mapped_backward=zero + undone + weight_seconds(device, rows, width, width),
        input_backward=zero if first else zero + map_seconds(device, rows, width, width) + added,
    )


def core_pooling_cost(
    device: DeviceProfile, shape: LayerShape, kept: Kept, *, first: bool, last: bool, norm: bool
) -> CoreCost:
    """The kernels of one layer that pools; arguments as of `gcnsim.cost.core_cost`.

    What pools is in `boundary`, as it waits for the boundary's rows; backward, rows' gradients are ready at the end.
    Raises ScenarioError where the device's calibration does not know pooling.
    """
    nodes, zero = float(kept.inner), np.zeros(kept.inner_entries.shape)
    every = nodes + kept.boundary_rows.astype(np.float64)
    # A node is not its own neighbour here: self-loops are in the counts, not in what is pooled.
    entries = (kept.inner_entries + kept.cross_entries).astype(np.float64) - nodes
    between = kept.between
    pooled = pooling_cost(device, shape, entries=entries, read=every, made=nodes, first=first, between=between)
    ahead = device_in_training(device, kept.between)
    joined = elementwise_seconds(ahead, every * shape.d_in, JOINED_PASSES)
    hidden, extra = (0.0 if last else 1.0), (NORM_PASSES if norm else 0)
    activation = hidden * elementwise_seconds(ahead, nodes * shape.d_out, RELU_PASSES + extra)
    undone = hidden * elementwise_seconds(device, nodes * shape.d_out, RELU_BACKWARD_PASSES + extra)
    back = map_seconds(device, nodes, shape.d_out, learning_width(shape, first=first))
    apart = elementwise_seconds(device, every * shape.d_in, PARTED_PASSES)
    return CoreCost(
        inner=zero,
        boundary=pooled.mapped + pooled.largest,
        update=zero + joined + map_seconds(ahead, nodes, shape.update_in, shape.d_out) + activation,
        update_backward=zero
        + undone
        + weight_seconds(device, nodes, shape.update_in, shape.d_out)
        + back
        + pooled.largest_backward
        + pooled.mapped_backward,
        boundary_backward=zero if first else pooled.input_backward + apart,
        inner_backward=zero,
    )


def learning_width(shape: LayerShape, *, first: bool) -> int:
    """Width of the rows before a layer's own maps whose gradient is needed: the largest values are of rows that learn,
    in layer 0 too, where the own rows beside them are the input."""
    return shape.d_in if first else shape.update_in


def pooling_terms(entries: Size, read: Size, made: Size, width: int) -> list[FloatArray]:
    """How much of each of POOLING_TERMS a pass has. read: rows that entries read. made: rows of the result."""
    kept, rows, results = (np.asarray(size, np.float64) for size in (entries, read, made))
    zero = np.zeros(np.broadcast_shapes(kept.shape, rows.shape, results.shape))
    return [zero + 1.0, zero + kept, zero + kept * width, zero + rows * width, zero + results * width]


def _known(device: DeviceProfile) -> PoolingFigures:
    if device.pooling is None:
        raise ScenarioError(
            f"workload.sage_aggregator: pool on {device.name} needs a calibration that measured pooling; "
            "write it anew with python -m runtime.profile and gcnsim calibrate"
        )
    return device.pooling


def _seconds(entry: Mapping[str, float], entries: Size, read: Size, made: Size, width: int) -> FloatArray:
    found = np.zeros(())
    for name, term in zip(POOLING_TERMS, pooling_terms(entries, read, made, width), strict=True):
        found = found + entry[name] * term
    return found
