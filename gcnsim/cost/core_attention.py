"""What a layer of graph attention costs a worker on a CPU core: as the runtime computes it with plain torch.

All rows, those of the boundary too, meet the weights of K heads side by side; scores, a softmax over each row's entries
and, per head, a sparse product (Velickovic et al., Graph Attention Networks, eqs. 1 to 6). Nothing of it can begin
before all rows are there. What the entries cost beside the products is measured (`gcnsim.hardware.profiles`); where
sums are by kernels of the runtime's own, whose attention is one kernel, all that the entries cost is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gcnsim.cost.attention import SCORE_BACKWARD_PASSES, SCORE_PASSES
from gcnsim.cost.core import (
    JOINED_PASSES,
    NORM_PASSES,
    RELU_BACKWARD_PASSES,
    RELU_PASSES,
    CoreCost,
    Kept,
    neighbour_sums,
)
from gcnsim.cost.device import Size, elementwise_seconds
from gcnsim.cost.far import device_in_training
from gcnsim.cost.maps import map_seconds, weight_seconds
from gcnsim.errors import ScenarioError
from gcnsim.hardware import ATTENTION_TERMS, NUMBA, DeviceProfile
from gcnsim.ids import FloatArray
from gcnsim.workload import LayerShape


def core_attention_cost(
    device: DeviceProfile, shape: LayerShape, kept: Kept, *, first: bool, last: bool, norm: bool
) -> CoreCost:
    """The kernels of one layer with shape.heads heads; arguments as of `gcnsim.cost.core_cost`.

    All that sums is in `boundary`, as it waits for the boundary's rows; backward, rows' gradients are ready at the end.
    Raises ScenarioError where the device's calibration does not know attention.
    """
    if device.attention is None:
        raise ScenarioError(
            f"workload.model: gat on {device.name} needs a calibration that measured attention; "
            "write it anew with python -m runtime.profile and gcnsim calibrate"
        )
    heads, width = shape.heads, shape.projected
    nodes, zero = float(kept.inner), np.zeros(kept.inner_entries.shape)
    every = nodes + kept.boundary_rows.astype(np.float64)
    entries = (kept.inner_entries + kept.cross_entries).astype(np.float64)
    if device.kernels.aggregator == NUMBA:
        # One kernel of all heads: what its sums take is among what was measured.
        sums = [zero] * 4
    else:
        # Heads are summed one after the other, each as wide as it is.
        sums = [heads * array for array in neighbour_sums(device, kept, width // heads, first=False)]
    forward = device_in_training(device, kept.between)
    joined = elementwise_seconds(forward, every * shape.d_in, JOINED_PASSES)
    scores = [
        elementwise_seconds(item, (every + nodes) * width, passes)
        for item, passes in ((forward, SCORE_PASSES), (device, SCORE_BACKWARD_PASSES))
    ]
    hidden, extra = (0.0 if last else 1.0), (NORM_PASSES if norm else 0)
    activation = hidden * elementwise_seconds(forward, nodes * shape.d_out, RELU_PASSES + extra)
    undone = hidden * elementwise_seconds(device, nodes * shape.d_out, RELU_BACKWARD_PASSES + extra)
    back = zero if first else map_seconds(device, every, width, shape.d_in)
    ahead, behind = device.attention.forward, device.attention.backward
    rest, undo = (_seconds(item, entries, every, heads, width) for item in (ahead, behind))
    return CoreCost(
        inner=zero,
        boundary=sums[0] + sums[2] + rest,
        update=zero + joined + map_seconds(forward, every, shape.d_in, width) + scores[0] + activation,
        update_backward=zero
        + undone
        + sums[1]
        + sums[3]
        + undo
        + scores[1]
        + weight_seconds(device, every, shape.d_in, width),
        boundary_backward=zero + back,
        inner_backward=zero,
    )


def attention_terms(entries: Size, rows: Size, heads: int, width: int) -> list[FloatArray]:
    """How much of each of ATTENTION_TERMS a pass has. rows: that entries read. width: of all heads together."""
    kept = np.asarray(entries, np.float64)
    every = np.asarray(rows, np.float64) + np.zeros(kept.shape)
    return [np.ones(kept.shape), kept, kept * heads, kept * width, every * width]


def _seconds(entry: Mapping[str, float], entries: FloatArray, rows: FloatArray, heads: int, width: int) -> FloatArray:
    found = np.zeros(entries.shape)
    for name, term in zip(ATTENTION_TERMS, attention_terms(entries, rows, heads, width), strict=True):
        found = found + entry[name] * term
    return found
