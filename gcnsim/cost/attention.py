"""What a layer of graph attention costs one worker (Velickovic et al., Graph Attention Networks, eqs. 1 to 6).

Order of such a layer, that of the training runtime: all rows, those of the boundary too, meet the weights, K heads side
by side; each row gives two scores a head; each entry adds the scores of its ends, and a softmax over a row's entries
makes them weights; a sparse product sums the rows. Backward, a weight's gradient is the dot product of two rows, so
both are gathered once more. Fusing kernels of a library would save a few of the passes counted here.
"""

from __future__ import annotations

import numpy as np

from gcnsim.cost.device import INDEX, VALUE, elementwise_seconds, gemm_seconds, spmm_seconds
from gcnsim.cost.layers import ACTIVATION_PASSES, NORM_PASSES, LayerCost
from gcnsim.hardware import DeviceProfile
from gcnsim.ids import FloatArray, IntArray
from gcnsim.workload import LayerShape

SCORE_PASSES = 3
"""Rows times a vector, twice: rows read for each, scores written."""

EDGE_PASSES = 11
"""Per entry and head, forward: two scores gathered, their sum written; leaky ReLU; maximum read; exponential of the
difference read and written; sum read; quotient read and written."""

EDGE_BACKWARD_PASSES = 8
"""Per entry and head, backward: weight and its gradient read, their product's row sum, difference written; slope of the
leaky ReLU read and written; added into the scores of both ends."""


def attention_cost(
    device: DeviceProfile,
    shape: LayerShape,
    *,
    first: bool,
    inner: int | IntArray,
    entries: IntArray,
    boundary_rows: IntArray,
    norm: bool = True,
) -> LayerCost:
    """The kernels of one layer with shape.heads heads; arguments as of `gcnsim.cost.layer_cost`."""
    kept, every = entries.astype(np.float64), inner + boundary_rows.astype(np.float64)
    width, heads = shape.projected, shape.heads
    passes = ACTIVATION_PASSES + (NORM_PASSES if norm else 0)
    activation = elementwise_seconds(device, np.asarray(inner * shape.d_out, dtype=np.float64), passes)
    project = gemm_seconds(device, every, shape.d_in, width)
    weight = gemm_seconds(device, shape.d_in, every, width)
    back = np.zeros(kept.shape) if first else gemm_seconds(device, every, width, shape.d_in)
    scores = elementwise_seconds(device, every * width, SCORE_PASSES)
    return LayerCost(
        aggregate=spmm_seconds(device, kept, inner, width, every) + _edges(device, kept, heads, EDGE_PASSES),
        update=project + scores + activation,
        update_backward=activation + weight + back + scores,
        aggregate_backward=spmm_seconds(device, kept, every, width, inner)
        + dots_seconds(device, kept, width)
        + _edges(device, kept, heads, EDGE_BACKWARD_PASSES),
    )


def dots_seconds(device: DeviceProfile, entries: FloatArray, width: int) -> FloatArray:
    """Seconds of the dot product of two rows per entry: as much is gathered as by two sparse products."""
    return spmm_seconds(device, 2 * entries, 0, width)


def _edges(device: DeviceProfile, entries: FloatArray, heads: int, passes: int) -> FloatArray:
    """Seconds of elementwise work per entry and head; each pass reads where the entry is."""
    values = entries * heads * (1 + INDEX / VALUE / heads)
    return elementwise_seconds(device, values, passes)
