"""The cost of a graph-attention layer on one worker (Velickovic et al., Graph Attention Networks, eqs. 1 to 6).

All feature rows, including boundary rows, are multiplied by the weights of K heads at once. Each row gives two scores
per head. Each entry adds the scores of its two ends, and a softmax over the entries of a row makes them weights. A
sparse product then sums the rows. In the backward pass, the gradient of a weight is the dot product of two rows. The
kernels are those of graph libraries, one per operation (DGL: `edge_softmax` of two reductions and three per-entry
operations).
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.cost.device import INDEX, SECTOR, VALUE, Size, elementwise_seconds, gemm_seconds, spmm_seconds
from gcnsim.cost.layers import LayerCost, dressing_seconds, dropped_rows
from gcnsim.hardware import DeviceProfile
from gcnsim.workload import EXCHANGE_FIRST, LayerShape

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
) -> LayerCost:
    """The kernels of one layer with shape.heads heads; arguments as in `gcnsim.cost.layer_cost`.

    longest: entries of the longest row. weight_dropout: whether attention weights are dropped too.
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


def dots_seconds(device: DeviceProfile, entries: Size, width: int, heads: int) -> FloatArray:
    """Seconds of the dot product of two rows of `width` values (all heads) for each entry (gSDDMM).

    Consecutive entries share a row. A warp therefore finds the near row in the cache and gathers the far row like a
    sparse sum. Single threads (heads of less than WARP values) read both.
    """
    rows, share = (1, device.spmm_efficiency.value) if width >= WARP * heads else (2, DOT_EFFICIENCY)
    traffic = entries * float(ENTRY_ENDS + rows * VALUE * width + VALUE * heads)
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
