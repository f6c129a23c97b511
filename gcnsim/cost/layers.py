"""The cost of one layer on one worker: the kernels of its forward and backward pass.

Order of a GCN or GraphSAGE layer: aggregate at the input width, then update (one dense product, activation). Forward: Z
= P Hcat, H' = act(Z W). Backward: M = J * act', G = Z^T M, and except in the first layer J' = P^T (M W^T). The first
layer needs no input gradient (PipeGCN, Algorithm 1), and the aggregation Z is kept from the forward pass. Dropout
applies to the input of a layer. A hidden layer ends with norm and activation, the last layer with neither. GraphSAGE
has one product for the row and one for the neighbours' mean, and adds both.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from gcnsim.core.ids import Bytes, FloatArray, IntArray
from gcnsim.cost.device import VALUE, Size, elementwise_seconds, gemm_seconds, spmm_seconds
from gcnsim.hardware import DeviceProfile
from gcnsim.workload import DROPOUT_FIRST, EXCHANGE_FIRST, LayerShape

RELU_PASSES, RELU_BACKWARD_PASSES = 2, 3
"""Input read, output written; backward: gradient and output read, gradient written."""

DROPOUT_PASSES = 2
"""Values read and written, in both directions; the mask of one byte per value is ignored."""

NORM_PASSES, NORM_BACKWARD_PASSES = 2, 5
"""A LayerNorm reads and writes its rows. Backward, gradient and input are read twice (for the gradients of rows, and of
scale and shift), and one gradient is written.
"""

ADDITION_PASSES = 3
"""Two operands read, their sum written."""

DIVISION_PASSES = 2
"""Sums read, divided by the degree, written."""

CONCATENATION_PASSES = 2
"""Inner and boundary rows read, both written side by side."""

ADAM_PASSES = 7
"""Adam reads parameter, gradient and two moments and writes parameter and both moments (Kingma and Ba, Algorithm 1)."""

AVERAGE_PASSES = 5
"""A moving average in place: scaled (read, written), then added to (both read, written)."""

LOSS_PASSES = 5
"""Softmax cross-entropy: logits read, probabilities written and read, gradient written, labels read."""


@dataclass(frozen=True, slots=True)
class LayerCost:
    """Seconds of a layer's kernels, float64[T] each (0 for a kernel that does not run); float64[T, P] for P workers."""

    aggregate: FloatArray
    update: FloatArray
    update_backward: FloatArray
    aggregate_backward: FloatArray

    @property
    def seconds(self) -> FloatArray:
        """The sum of all kernels, float64[T]."""
        return self.aggregate + self.update + self.update_backward + self.aggregate_backward

    @property
    def dense(self) -> LayerCost:
        """The layer without its aggregation."""
        return replace(self, aggregate=np.zeros_like(self.aggregate), aggregate_backward=np.zeros_like(self.aggregate))

    def slowed(self, factor: FloatArray) -> LayerCost:
        """The layer with every kernel `factor`[t] times as long."""
        return LayerCost(*(getattr(self, field.name) * factor for field in fields(self)))


def layer_cost(
    device: DeviceProfile,
    shape: LayerShape,
    *,
    first: bool,
    inner: int | IntArray,
    entries: IntArray,
    boundary_rows: IntArray,
    norm: bool = True,
    last: bool = False,
    released: bool = False,
    dropout: str = EXCHANGE_FIRST,
) -> LayerCost:
    """The kernels of one layer on one worker, or on P workers at once. norm: a LayerNorm follows each hidden layer.

    inner: inner nodes, int64[P] for several workers. entries: stored entries of the trained graphs with self-loops,
    int64[T] or int64[T, P]. boundary_rows: their boundary nodes, same shape. last: the layer computes logits. released:
    adds `released_passes`. dropout: one of `gcnsim.workload.DROPOUTS`.
    """
    kept, every, nodes = entries.astype(np.float64), inner + boundary_rows, np.asarray(inner, dtype=np.float64)
    read = dropped_rows(dropout, nodes, every)
    dressed, undressed = dressing_seconds(device, shape, nodes, read, first=first, last=last, norm=norm)
    forward, backward = product_seconds(device, shape, nodes, first=first)
    more, undone = released_passes(device, shape, nodes, every, first=first) if released and shape.gathers else (0, 0)
    both = np.zeros(kept.shape)
    return LayerCost(
        aggregate=spmm_seconds(device, kept, inner, shape.d_in, every),
        update=both + forward + dressed + more,
        update_backward=both + undressed + backward + undone,
        aggregate_backward=both if first else spmm_seconds(device, kept, every, shape.d_in, inner),
    )


def dropped_rows(dropout: str, own: FloatArray, every: Size) -> Size:
    """The rows to which a layer applies dropout: none, the worker's inner rows, or all rows it reads. dropout: one of
    DROPOUTS.
    """
    return every if dropout == EXCHANGE_FIRST else own * float(dropout == DROPOUT_FIRST)


def dressing_seconds(
    device: DeviceProfile, shape: LayerShape, made: FloatArray, read: Size, *, first: bool, last: bool, norm: bool
) -> tuple[FloatArray, FloatArray]:
    """Seconds of dropout, norm and activation, forward and backward.

    Dropout applies to the `read` input rows, norm and activation to the `made` output rows of a hidden layer.
    """
    rows, width = (read, shape.d_in) if shape.gathers else (np.minimum(read, made), shape.update_in)
    dropped = elementwise_seconds(device, rows * float(width), DROPOUT_PASSES)
    forward, backward = dropped, np.zeros_like(dropped) if first else dropped
    if not last:
        values = made * float(shape.d_out)
        forward = forward + elementwise_seconds(device, values, RELU_PASSES)
        backward = backward + elementwise_seconds(device, values, RELU_BACKWARD_PASSES)
        if norm:
            forward = forward + elementwise_seconds(device, values, NORM_PASSES)
            backward = backward + elementwise_seconds(device, values, NORM_BACKWARD_PASSES)
    return forward, backward


def twice_mapped(shape: LayerShape) -> bool:
    """Whether a row and the mean of its neighbours have separate products whose results are added (GraphSAGE)."""
    return shape.gathers and shape.update_in == 2 * shape.d_in


def product_seconds(
    device: DeviceProfile, shape: LayerShape, nodes: FloatArray, *, first: bool
) -> tuple[FloatArray, FloatArray]:
    """Seconds of a layer's dense products, forward and backward; GraphSAGE has two and their sum."""
    maps = 2 if twice_mapped(shape) else 1
    width = shape.update_in // maps
    forward = maps * gemm_seconds(device, nodes, width, shape.d_out)
    backward = maps * gemm_seconds(device, width, nodes, shape.d_out)
    if not first:
        backward = backward + maps * gemm_seconds(device, nodes, shape.d_out, width)
    if maps == 2:
        forward = forward + elementwise_seconds(device, nodes * float(shape.d_out), ADDITION_PASSES)
        if not first:
            backward = backward + elementwise_seconds(device, nodes * float(shape.d_in), ADDITION_PASSES)
    return forward, backward


def released_passes(
    device: DeviceProfile, shape: LayerShape, nodes: FloatArray, every: Size, *, first: bool
) -> tuple[FloatArray, FloatArray]:
    """Seconds of further passes over rows in the published systems' code, forward and backward.

    Inner and boundary rows are concatenated, and sums are divided by the degree (GCN also divides rows before summing).
    GraphSAGE slices the inner rows; backward, their gradient is written into zeros for all rows.
    """
    width = float(shape.d_in)
    divided = elementwise_seconds(device, nodes * width, DIVISION_PASSES)
    if not twice_mapped(shape):
        divided = divided + elementwise_seconds(device, every * width, DIVISION_PASSES)
    forward = elementwise_seconds(device, every * width, CONCATENATION_PASSES) + divided
    if first:
        return forward, np.zeros_like(forward)
    if twice_mapped(shape):
        zeroed = elementwise_seconds(device, every * width, 1)
        divided = divided + zeroed + elementwise_seconds(device, nodes * width, 2)
    return forward, divided


def average_seconds(device: DeviceProfile, rows: IntArray, width: int) -> FloatArray:
    """Seconds to add `rows` received rows of `width` values to their moving average (PipeGCN, smoothing)."""
    return elementwise_seconds(device, rows * float(width), AVERAGE_PASSES)


def loss_seconds(device: DeviceProfile, inner: int | IntArray, classes: int) -> FloatArray:
    """Seconds of the loss and its gradient over the logits of the inner nodes, float64[] or shaped as `inner`."""
    return elementwise_seconds(device, np.asarray(inner * classes, dtype=np.float64), LOSS_PASSES)


def parameters(shapes: tuple[LayerShape, ...]) -> int:
    """The number of trained parameters of the model."""
    return sum(shape.weights for shape in shapes)


def gradient_bytes(shapes: tuple[LayerShape, ...]) -> Bytes:
    """Bytes of one flat fp32 gradient, the payload of the all-reduce."""
    return VALUE * parameters(shapes)


def step_seconds(device: DeviceProfile, shapes: tuple[LayerShape, ...]) -> FloatArray:
    """Seconds of one Adam step over all parameters, float64[]."""
    return elementwise_seconds(device, float(parameters(shapes)), ADAM_PASSES)
