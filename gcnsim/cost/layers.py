"""What one layer costs one worker: the kernels of its forward and backward pass.

Order of a GCN or GraphSAGE layer: aggregate at the input width, then update (one dense product, activation). Forward:
Z = P Hcat, H' = act(Z W). Backward: M = J * act', G = Z^T M, then, unless it is the first layer, J' = P^T (M W^T).
The first layer needs no input gradient (PipeGCN, Algorithm 1), and the aggregation Z is kept from the forward pass.
The norm and dropout after each hidden layer are counted with the activation.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from gcnsim.cost.device import VALUE, elementwise_seconds, gemm_seconds, spmm_seconds
from gcnsim.hardware import DeviceProfile
from gcnsim.ids import Bytes, FloatArray, IntArray
from gcnsim.workload import LayerShape

ACTIVATION_PASSES = 4
"""Reads and writes of activation and dropout together: two kernels, one read and one write each."""

NORM_PASSES = 2
"""Reads and writes of a LayerNorm kernel."""

ADAM_PASSES = 7
"""Adam reads parameter, gradient and two moments and writes parameter and both moments (Kingma and Ba, Algorithm 1)."""

AVERAGE_PASSES = 5
"""A moving average in place: scaled (read, written), then added to (both read, written)."""

LOSS_PASSES = 5
"""Softmax cross-entropy: logits read, probabilities written and read, gradient written, labels read."""


@dataclass(frozen=True, slots=True)
class LayerCost:
    """Seconds of a layer's kernels, float64[T] each (0 where one does not run); float64[T, P] of P workers."""

    aggregate: FloatArray
    update: FloatArray
    update_backward: FloatArray
    aggregate_backward: FloatArray

    @property
    def seconds(self) -> FloatArray:
        """All kernels, float64[T]."""
        return self.aggregate + self.update + self.update_backward + self.aggregate_backward

    @property
    def dense(self) -> LayerCost:
        """The layer without its sums over neighbours."""
        return replace(self, aggregate=np.zeros_like(self.aggregate), aggregate_backward=np.zeros_like(self.aggregate))

    def slowed(self, factor: FloatArray) -> LayerCost:
        """Every kernel takes `factor`[t] times as long."""
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
) -> LayerCost:
    """The kernels of one layer on one worker, or on P workers at once. norm: a LayerNorm follows each layer.

    inner: its inner nodes, int64[P] of several. entries: int64[T] or int64[T, P], stored entries of the trained graphs,
    self-loops included. boundary_rows: of the same shape, rows of the boundary nodes in them.
    """
    kept, every, nodes = entries.astype(np.float64), inner + boundary_rows, np.asarray(inner, dtype=np.float64)
    update = gemm_seconds(device, nodes, shape.update_in, shape.d_out)
    passes = ACTIVATION_PASSES + (NORM_PASSES if norm else 0)
    activation = elementwise_seconds(device, nodes * shape.d_out, passes)
    weight_gradient = gemm_seconds(device, shape.update_in, nodes, shape.d_out)
    input_gradient = gemm_seconds(device, nodes, shape.d_out, shape.update_in)
    both = np.zeros(kept.shape)
    return LayerCost(
        aggregate=spmm_seconds(device, kept, inner, shape.d_in, every),
        update=both + update + activation,
        update_backward=both + activation + weight_gradient + (0.0 if first else input_gradient),
        aggregate_backward=both if first else spmm_seconds(device, kept, every, shape.d_in, inner),
    )


def average_seconds(device: DeviceProfile, rows: IntArray, width: int) -> FloatArray:
    """Seconds in which `rows` received rows of `width` values enter their moving average (PipeGCN, smoothing)."""
    return elementwise_seconds(device, rows * float(width), AVERAGE_PASSES)


def loss_seconds(device: DeviceProfile, inner: int | IntArray, classes: int) -> FloatArray:
    """Seconds of loss and its gradient over the logits of the inner nodes, float64[] or as `inner`."""
    return elementwise_seconds(device, np.asarray(inner * classes, dtype=np.float64), LOSS_PASSES)


def parameters(shapes: tuple[LayerShape, ...]) -> int:
    """Number of trained parameters of the model."""
    return sum(shape.weights for shape in shapes)


def gradient_bytes(shapes: tuple[LayerShape, ...]) -> Bytes:
    """Bytes of one flat fp32 gradient, what the all-reduce carries."""
    return VALUE * parameters(shapes)


def step_seconds(device: DeviceProfile, shapes: tuple[LayerShape, ...]) -> FloatArray:
    """Seconds of one Adam step over all parameters, float64[]."""
    return elementwise_seconds(device, float(parameters(shapes)), ADAM_PASSES)
