"""The cost of one layer on one worker: the kernels of its forward and backward pass.

Order of a GCN or GraphSAGE layer: aggregate at the input width, then update (one dense product, activation). Forward: Z
= P Hcat, H' = act(Z W). Backward: M = J * act', G = Z^T M, and except in the first layer J' = P^T (M W^T). The first
layer needs no input gradient (PipeGCN, Algorithm 1), and the aggregation Z is kept from the forward pass. Dropout
applies to the input of a layer. A hidden layer ends with norm and activation, the last layer with neither. GraphSAGE
has one product for the row and one for the neighbours' mean, and adds both.

Graph attention (Velickovic et al., Graph Attention Networks, eqs. 1 to 6): all feature rows, including boundary rows,
are multiplied by the weights of K heads at once. Each row gives two scores per head. Each entry adds the scores of its
two ends, and a softmax over the entries of a row makes them weights. A sparse product then sums the rows. In the
backward pass, the gradient of a weight is the dot product of two rows. The kernels are those of graph libraries, one
per operation (DGL: `edge_softmax` of two reductions and three per-entry operations).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from statistics import NormalDist

import numpy as np

from gcnsim.core.ids import Bytes, FloatArray, IntArray
from gcnsim.cost.device import INDEX, SECTOR, VALUE, Size, elementwise_seconds, gemm_seconds, spmm_seconds
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


SCORE_PASSES = 3
"""A row times a vector: row read, product written, product read and summed. One vector for each end of an entry."""

SCORE_BACKWARD_PASSES = 7
"""The same in the backward pass. For the row's gradient: written, then added (two reads, one write). For the vector's
gradient: row read, product written, product read and summed.
"""

ENTRY_ENDS = 2 * INDEX
"""Bytes of an entry's row and column indices."""

ENTRY_EFFICIENCY = 0.46
"""The share of the memory bandwidth that per-entry kernels reach, 0.4 to 0.5.

Source: edge softmax of Reddit on a V100 (DGL, pull request 3826, "original forward"): 58.6, 58.2 and 92.2 ms at 1, 4
and 8 heads. The law is within 18 %.
"""

DOT_EFFICIENCY = 0.4
"""The same share for dot products of two short rows per entry, both read from memory. Assumed; 0.25 to 0.6."""

WARP = 32
"""Threads that share one entry's dot product if a head has at least this many values (DGL's kernel with a tree
reduction).

With fewer values, one thread computes it, value after value.
"""

CHAIN_S = 0.4e-6
"""Seconds of one step along a row by a single thread: it reads an entry's index, then its value.

Assumed; 0.2 to 0.8 us. The measurement above allows at most 0.8 us, for a row of 21,657 entries.
"""

SOFTMAX_OPERANDS = (2, 2, 2)
"""Values read or written per entry: subtract the maximum, exponentiate, divide by the sum. The per-row value is read
once for many consecutive entries.
"""

SOFTMAX_BACKWARD_OPERANDS = (3, 2, 3)
"""Weight times its gradient; weight times the row's sum; their difference."""

SCORES_OPERANDS = (2, 2)
"""The score of the far end is gathered and the sum written; leaky ReLU."""

SCORES_BACKWARD_OPERANDS = (3,)
"""Slope of the leaky ReLU: gradient and score read, result written."""

DROPOUT_OPERANDS = (3,)
"""Weights read and written, and their mask; the same in the backward pass."""

REDUCTIONS, REDUCTIONS_BACKWARD = 2, 3
"""Reductions over a row's entries: maximum and sum; backward, the softmax's sum and one for the scores of each end."""


def attention_cost(
    device: DeviceProfile,
    shape: LayerShape,
    *,
    first: bool,
    inner: int | IntArray,
    entries: IntArray,
    boundary_rows: IntArray,
    norm: bool = True,
    last: bool = False,
    dropout: str = EXCHANGE_FIRST,
    longest: Size = 0.0,
    weight_dropout: bool = False,
    own_again: bool = False,
) -> LayerCost:
    """The kernels of one layer with shape.heads heads; arguments as in `gcnsim.cost.layer_cost`.

    longest: entries of the longest row. weight_dropout: whether attention weights are dropped too. own_again: whether
    inner rows are multiplied by the weights a second time, as near ends (DGL's GATConv(graph, (all rows, own rows)),
    which released code calls; both products use the same weights).
    """
    kept, every = entries.astype(np.float64), inner + boundary_rows.astype(np.float64)
    width, heads = shape.projected, shape.heads
    nodes = np.asarray(inner, dtype=np.float64)
    read = dropped_rows(dropout, nodes, every)
    dressed, undressed = dressing_seconds(device, shape, nodes, read, first=first, last=last, norm=norm)
    project = gemm_seconds(device, every, shape.d_in, width)
    weight = gemm_seconds(device, shape.d_in, every, width)
    back = np.zeros(kept.shape) if first else gemm_seconds(device, every, width, shape.d_in)
    if own_again:
        project = project + gemm_seconds(device, nodes, shape.d_in, width)
        weight = weight + gemm_seconds(device, shape.d_in, nodes, width)
        if not first:
            added = elementwise_seconds(device, nodes * float(shape.d_in), ADDITION_PASSES)
            back = back + gemm_seconds(device, nodes, width, shape.d_in) + added
    dropped = DROPOUT_OPERANDS if weight_dropout else ()
    forward = (*SCORES_OPERANDS, *SOFTMAX_OPERANDS, *dropped)
    backward = (*dropped, *SOFTMAX_BACKWARD_OPERANDS, *SCORES_BACKWARD_OPERANDS)
    reduction = reduction_seconds(device, kept, heads, longest)
    return LayerCost(
        aggregate=entries_seconds(device, kept, heads, forward)
        + REDUCTIONS * reduction
        + _sum(device, kept, inner, width, every, heads),
        update=project + _scores(device, every, inner, width, SCORE_PASSES) + dressed,
        update_backward=undressed + weight + back + _scores(device, every, inner, width, SCORE_BACKWARD_PASSES),
        aggregate_backward=_sum(device, kept, every, width, inner, heads)
        + dots_seconds(device, kept, width, heads, inner, every)
        + entries_seconds(device, kept, heads, backward)
        + REDUCTIONS_BACKWARD * reduction,
    )


def reduction_seconds(device: DeviceProfile, entries: Size, heads: int, longest: Size = 0.0) -> FloatArray:
    """Seconds of a maximum or sum over each row's entries, per head. longest: entries of the longest row.

    One thread per head walks along a row, so neighbouring threads read addresses far apart. Each step reads a sector
    for the entry's index and at least one for its values. The kernel lasts at least as long as the longest row's
    thread.
    """
    traffic = entries * float(SECTOR + max(SECTOR, VALUE * heads))
    seconds = np.maximum(traffic / (device.memory_bandwidth.value * ENTRY_EFFICIENCY), longest * CHAIN_S)
    return np.where(np.asarray(entries) > 0, seconds + device.launch_s.value, 0.0)


def entries_seconds(device: DeviceProfile, entries: Size, heads: int, operands: tuple[int, ...]) -> FloatArray:
    """Seconds of one kernel per item of `operands`, each the number of values read or written per entry and head."""
    traffic = entries * float(sum(ENTRY_ENDS + VALUE * heads * operand for operand in operands))
    seconds = traffic / (device.memory_bandwidth.value * ENTRY_EFFICIENCY) + len(operands) * device.launch_s.value
    return np.where(np.asarray(entries) > 0, seconds, 0.0)


def dots_seconds(
    device: DeviceProfile, entries: Size, width: int, heads: int, rows: Size = 0.0, gathered: Size | None = None
) -> FloatArray:
    """Seconds of the dot product of two rows of `width` values (all heads) for each entry (gSDDMM). rows: near rows.
    gathered: far rows.

    Consecutive entries share a row. A warp therefore finds the near row in the cache and gathers the far row like a
    sparse sum. Single threads (heads of less than WARP values) read both.
    """
    warps = width >= WARP * heads
    if warps and gathered is not None and device.multiprocessors is not None and device.spmm_curve is None:
        results = entries * float(VALUE * heads) / (device.memory_bandwidth.value * device.elementwise_efficiency.value)
        return np.asarray(spmm_seconds(device, entries, rows, width, gathered) + results)
    ends, share = (1, device.spmm_efficiency.value) if warps else (2, DOT_EFFICIENCY)
    traffic = entries * float(ENTRY_ENDS + ends * VALUE * width + VALUE * heads)
    seconds = traffic / (device.memory_bandwidth.value * share)
    return np.where(np.asarray(entries) > 0, seconds + device.launch_s.value, 0.0)


def longest_row(entries: Size, rows: Size, spread: float, most: Size) -> FloatArray:
    """The expected entries of the longest of `rows` rows with lognormal lengths, at most `most`.

    This is the mean times exp(spread z - spread^2 / 2). spread: the standard deviation of the logarithm. z: the normal
    quantile of 1 - 1 / rows.
    """
    counts = np.maximum(np.asarray(rows, dtype=np.float64), 2.0)
    quantile = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])(1.0 - 1.0 / counts)
    return np.asarray(np.minimum(entries / counts * np.exp(spread * quantile - spread**2 / 2.0), most))


def _scores(device: DeviceProfile, every: Size, inner: int | IntArray, width: int, passes: int) -> FloatArray:
    """Seconds of the scores of both ends: all rows as far ends, inner rows as near ends."""
    far = elementwise_seconds(device, every * float(width), passes)
    return np.asarray(far + elementwise_seconds(device, inner * float(width), passes))


def _sum(device: DeviceProfile, entries: FloatArray, rows: Size, width: int, gathered: Size, heads: int) -> FloatArray:
    """Seconds of the weighted sum of rows: a sparse product in which each entry has a weight per head."""
    more = entries * float(VALUE * (heads - 1)) / (device.memory_bandwidth.value * device.spmm_efficiency.value)
    return spmm_seconds(device, entries, rows, width, gathered) + more
