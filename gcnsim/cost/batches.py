"""The cost of one mini-batch on a GPU: kernels of layers whose input and output rows differ, and memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.cost.device import VALUE, elementwise_seconds, spmm_seconds
from gcnsim.cost.layers import (
    LOSS_PASSES,
    LayerCost,
    dressing_seconds,
    parameters,
    product_seconds,
)
from gcnsim.cost.memory import ENTRY, ID, MOMENTS, Memory
from gcnsim.hardware import DeviceProfile
from gcnsim.workload import EXCHANGE_FIRST, NO_DROPOUT, LayerShape

KEPT = 3
"""Copies of a layer's output: before and after the activation, and its gradient."""


def batch_layer_cost(
    device: DeviceProfile,
    shape: LayerShape,
    *,
    first: bool,
    rows_in: IntArray,
    rows_out: IntArray,
    entries: IntArray,
    norm: bool = True,
    last: bool = False,
    dropout: str = EXCHANGE_FIRST,
) -> LayerCost:
    """The kernels of one layer on one worker, as in `layer_cost`: rows_in rows are read, rows_out computed, int64[T].

    entries: int64[T], entries summed over, without self-loops. norm: a LayerNorm follows each hidden layer. last: the
    layer computes logits. dropout: one of `gcnsim.workload.DROPOUTS`; all rows are local, so every kind of dropout
    applies to all.
    """
    made, read = rows_out.astype(np.float64), rows_in.astype(np.float64)
    none = np.zeros(made.shape)
    kept = np.where(made > 0, entries + made, 0.0) if shape.gathers else none
    dropped = np.zeros(read.shape) if dropout == NO_DROPOUT else read
    dressed, undressed = dressing_seconds(device, shape, made, dropped, first=first, last=last, norm=norm)
    update, back = product_seconds(device, shape, made, first=first)
    update, back = update + dressed, back + undressed
    sums = shape.gathers and not first
    return LayerCost(
        aggregate=np.where(kept > 0, spmm_seconds(device, kept, made, shape.d_in, read), 0.0),
        update=np.where(made > 0, update, 0.0),
        update_backward=np.where(made > 0, back, 0.0),
        aggregate_backward=np.where(kept > 0, spmm_seconds(device, kept, read, shape.d_in, made), 0.0)
        if sums
        else none,
    )


def batch_loss_seconds(device: DeviceProfile, targets: IntArray, classes: int) -> FloatArray:
    """Seconds of loss and its gradient over the logits of the batch, float64[T]."""
    return elementwise_seconds(device, targets.astype(np.float64) * classes, LOSS_PASSES)


def batch_memory(
    levels: Sequence[float],
    entries: Sequence[float],
    shapes: Sequence[LayerShape],
    *,
    waiting: int = 0,
    width: int,
    cached: int = 0,
) -> Memory:
    """The GPU memory at the peak of mini-batch training.

    levels: rows per level, L + 1 of them, of the largest batch; entries: per layer of that batch. waiting: batches
    loaded in advance. width: values of an input row. cached: cached input rows. Assumption: all layers' activations are
    kept until the backward pass ends.
    """
    weights = parameters(tuple(shapes))
    made = list(zip(shapes, levels[1:], strict=True))
    return Memory(
        features=VALUE * levels[0] * width * (1 + waiting) + ID * levels[-1],
        adjacency=sum(entries) * ENTRY,
        activations=VALUE * sum(rows * (shape.update_in + KEPT * shape.d_out) for shape, rows in made),
        boundary=0.0,
        cache=VALUE * cached * width,
        model=VALUE * weights,
        gradients=VALUE * weights,
        optimizer=VALUE * MOMENTS * weights,
        workspace=VALUE * max(rows * shape.update_in for shape, rows in made),
    )
