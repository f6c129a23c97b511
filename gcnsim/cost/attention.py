"""What a layer of graph attention costs one worker (Velickovic et al., Graph Attention Networks, eqs. 1 to 6).

All rows, those of the boundary too, meet the weights of K heads side by side; each row gives two scores a head; each
entry adds the scores of its ends, and a softmax over a row's entries makes them weights; a sparse product sums the
rows. Backward, a weight's gradient is the dot product of two rows. Kernels are those of graph libraries, one for each
operation (DGL: `edge_softmax` of two reductions and three operations by entry).
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from gcnsim.cost.device import INDEX, SECTOR, VALUE, Size, elementwise_seconds, gemm_seconds, spmm_seconds
from gcnsim.cost.layers import LayerCost, dressing_seconds, dropped_rows
from gcnsim.hardware import DeviceProfile
from gcnsim.ids import FloatArray, IntArray
from gcnsim.workload import EXCHANGE_FIRST, LayerShape

SCORE_PASSES = 3
"""A row times a vector: row read, product written, product read and summed. One vector for each end of an entry."""

SCORE_BACKWARD_PASSES = 7
"""The same backward: the row's gradient written, then added to the row's (two read, one written); for the vector's the
row read, product written, product read and summed."""

ENTRY_ENDS = 2 * INDEX
"""Bytes of an entry's row and column."""

ENTRY_EFFICIENCY = 0.46
"""Share of the memory bandwidth that kernels by entry reach: 0.4 to 0.5, from the edge softmax of Reddit on a V100
(DGL, pull request 3826, "original forward": 58.6, 58.2 and 92.2 ms at 1, 4 and 8 heads; the law is within 18 %)."""

DOT_EFFICIENCY = 0.4
"""The same of dot products of two short rows for each entry, both read from memory. Assumed; 0.25 to 0.6."""

WARP = 32
"""Threads that take one entry's dot product together where a head has as many values or more (DGL, its kernel of dot
products with a tree reduction); of a shorter one a single thread takes it, value after value."""

CHAIN_S = 0.4e-6
"""Seconds of one step along a row, an entry's place and then its value read, where one thread goes from entry to entry.
Assumed; 0.2 to 0.8 us. The measurement above leaves at most 0.8 us, of a row of 21,657 entries."""

SOFTMAX_OPERANDS = (2, 2, 2)
"""Values read or written for each entry: less the maximum, exponential, over the sum. A row's own value is read once
for many entries that follow one another."""

SOFTMAX_BACKWARD_OPERANDS = (3, 2, 3)
"""Weight times its gradient; weight times the row's sum; their difference."""

SCORES_OPERANDS = (2, 2)
"""The score of the far end gathered and the sum written; leaky ReLU."""

SCORES_BACKWARD_OPERANDS = (3,)
"""Slope of the leaky ReLU: gradient and score read, result written."""

DROPOUT_OPERANDS = (3,)
"""Weights read and written, and their mask; as much backward."""

REDUCTIONS, REDUCTIONS_BACKWARD = 2, 3
"""Over a row's entries: maximum and sum; backward the softmax's sum, and one for the scores of each end."""


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
) -> LayerCost:
    """The kernels of one layer with shape.heads heads; arguments as of `gcnsim.cost.layer_cost`.

    longest: entries of the longest row. weight_dropout: weights of entries are dropped too.
    """
    kept, every = entries.astype(np.float64), inner + boundary_rows.astype(np.float64)
    width, heads = shape.projected, shape.heads
    nodes = np.asarray(inner, dtype=np.float64)
    read = dropped_rows(dropout, nodes, every)
    dressed, undressed = dressing_seconds(device, shape, nodes, read, first=first, last=last, norm=norm)
    project = gemm_seconds(device, every, shape.d_in, width)
    weight = gemm_seconds(device, shape.d_in, every, width)
    back = np.zeros(kept.shape) if first else gemm_seconds(device, every, width, shape.d_in)
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
        + dots_seconds(device, kept, width, heads)
        + entries_seconds(device, kept, heads, backward)
        + REDUCTIONS_BACKWARD * reduction,
    )


def softmax_seconds(device: DeviceProfile, entries: Size, heads: int, longest: Size = 0.0) -> FloatArray:
    """Seconds of the softmax of `entries` entries over their rows, forward, for each of `heads` heads."""
    reductions = REDUCTIONS * reduction_seconds(device, entries, heads, longest)
    return entries_seconds(device, entries, heads, SOFTMAX_OPERANDS) + reductions


def reduction_seconds(device: DeviceProfile, entries: Size, heads: int, longest: Size = 0.0) -> FloatArray:
    """Seconds of a maximum or sum over each row's entries, for each head; `longest`: entries of the longest row.

    A thread goes along a row, for each head, so that neighbouring threads read far apart: a sector for the entry's
    place, and one for its values or as many as these fill. No row is done before its thread has been along it.
    """
    traffic = entries * float(SECTOR + max(SECTOR, VALUE * heads))
    seconds = np.maximum(traffic / (device.memory_bandwidth.value * ENTRY_EFFICIENCY), longest * CHAIN_S)
    return np.where(np.asarray(entries) > 0, seconds + device.launch_s.value, 0.0)


def entries_seconds(device: DeviceProfile, entries: Size, heads: int, operands: tuple[int, ...]) -> FloatArray:
    """Seconds of a kernel for each of `operands`, so many values of each entry and head read or written."""
    traffic = entries * float(sum(ENTRY_ENDS + VALUE * heads * operand for operand in operands))
    seconds = traffic / (device.memory_bandwidth.value * ENTRY_EFFICIENCY) + len(operands) * device.launch_s.value
    return np.where(np.asarray(entries) > 0, seconds, 0.0)


def dots_seconds(device: DeviceProfile, entries: Size, width: int, heads: int) -> FloatArray:
    """Seconds of the dot product of two rows of `width` values, those of all heads, for each entry (gSDDMM).

    Entries of a row follow one another: a warp that takes one finds the row's own values in the cache, and gathers
    those of the far end as a sparse sum does. Single threads (heads of less than WARP values) read both.
    """
    rows, share = (1, device.spmm_efficiency.value) if width >= WARP * heads else (2, DOT_EFFICIENCY)
    traffic = entries * float(ENTRY_ENDS + rows * VALUE * width + VALUE * heads)
    seconds = traffic / (device.memory_bandwidth.value * share)
    return np.where(np.asarray(entries) > 0, seconds + device.launch_s.value, 0.0)


def longest_row(entries: Size, rows: Size, spread: float, most: Size) -> FloatArray:
    """Entries of the longest of `rows` rows, about: the mean times exp(spread z - spread^2 / 2), z the normal quantile
    of 1 - 1 / rows, of lognormal lengths with the spread `spread` of their logarithm; at most `most`."""
    counts = np.maximum(np.asarray(rows, dtype=np.float64), 2.0)
    quantile = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])(1.0 - 1.0 / counts)
    return np.asarray(np.minimum(entries / counts * np.exp(spread * quantile - spread**2 / 2.0), most))


def _scores(device: DeviceProfile, every: Size, inner: int | IntArray, width: int, passes: int) -> FloatArray:
    """Seconds of the scores of both ends: of all rows as far ends, of inner rows as near ones."""
    far = elementwise_seconds(device, every * float(width), passes)
    return np.asarray(far + elementwise_seconds(device, inner * float(width), passes))


def _sum(device: DeviceProfile, entries: FloatArray, rows: Size, width: int, gathered: Size, heads: int) -> FloatArray:
    """Seconds of the weighted sum of rows: a sparse product, each entry with a weight for every head."""
    more = entries * float(VALUE * (heads - 1)) / (device.memory_bandwidth.value * device.spmm_efficiency.value)
    return spmm_seconds(device, entries, rows, width, gathered) + more
