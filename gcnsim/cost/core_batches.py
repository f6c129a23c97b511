"""What a mini-batch costs a worker on a CPU core: drawing it, and the kernels of layers whose rows differ."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from gcnsim.cost.core import (
    NORM_PASSES,
    RELU_BACKWARD_PASSES,
    RELU_PASSES,
    RESULT_PASSES,
    result_seconds,
    sum_seconds,
)
from gcnsim.cost.core_pooling import learning_width, pooling_cost
from gcnsim.cost.device import VALUE, elementwise_seconds
from gcnsim.cost.far import REUSED, device_in_training
from gcnsim.cost.maps import map_seconds, weight_seconds
from gcnsim.cost.sums import Product, product_seconds
from gcnsim.errors import ScenarioError
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.ids import FloatArray, IntArray
from gcnsim.partition import WINDOWS
from gcnsim.workload import LayerShape

BATCH_FIGURES = (
    "batch_s",
    "batch_looked_per_s",
    "batch_drawn_per_s",
    "batch_built_per_s",
    "batch_stored_per_s",
    "batch_turned_per_s",
    "batch_matrix_s",
)
"""Figures of a host that no catalogue has: only a calibration tells them."""


@dataclass(frozen=True, slots=True)
class BatchCoreCost:
    """Core-seconds of one worker's kernels of one layer, float64[T] each (0 where a kernel does not run)."""

    aggregate: FloatArray
    update: FloatArray
    update_backward: FloatArray
    aggregate_backward: FloatArray

    def times(self, factor: FloatArray) -> BatchCoreCost:
        """All of it so many times as long."""
        return BatchCoreCost(*(factor * getattr(self, field.name) for field in fields(self)))

    def plus(self, other: BatchCoreCost) -> BatchCoreCost:
        """Both."""
        return BatchCoreCost(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


@dataclass(frozen=True, slots=True)
class BatchHost:
    """Core-seconds of the sampler's thread: of a batch, an entry looked at, drawn, built, stored, turned; of a matrix,
    and of a row that is drawn and built."""

    each: float
    looked: float
    drawn: float
    built: float
    stored: float
    turned: float
    matrix: float
    row: float

    @classmethod
    def of(cls, host: HostProfile) -> BatchHost:
        """The figures of `host`. Raises ScenarioError where no calibration has told them."""
        found: list[float] = []
        for name in BATCH_FIGURES:
            figure = getattr(host, name)
            if figure is None:
                raise ScenarioError(
                    f"cluster.calibration: has no {name}; mini-batches on CPU cores need a calibration of a profile "
                    "that measured them (python -m runtime.profile, then gcnsim calibrate)"
                )
            rate = name.endswith("_per_s")
            found.append(1.0 / figure.value if rate else figure.value)
        found.append(0.0 if host.batch_row_s is None else host.batch_row_s.value)
        return cls(*found)

    def drawing(self, looked: IntArray, drawn: IntArray, built: IntArray, rows: IntArray) -> FloatArray:
        """Of batches of `rows` rows: `looked` entries looked at, `drawn` drawn one by one, `built` put into rows."""
        whole = self.each + looked * self.looked + drawn * self.drawn + built * self.built + rows * self.row
        return np.asarray(whole, np.float64)

    def making(self, stored: IntArray, *, turned: bool) -> FloatArray:
        """Of a matrix of `stored` entries; turned: with its transpose."""
        return np.asarray(self.matrix + stored * (self.stored + (self.turned if turned else 0.0)), np.float64)


def loading_seconds(host: HostProfile, rows: IntArray, width: int) -> FloatArray:
    """Core-seconds of picking `rows` rows of `width` values out of memory, int64[T]: of a call, a row and a byte."""
    calls = [0.0 if figure is None else figure.value for figure in (host.load_s, host.load_row_s)]
    return np.asarray(
        (rows > 0) * calls[0] + rows * calls[1] + rows * (VALUE * width) / host.gather_bandwidth.value, np.float64
    )


def batch_core_cost(
    device: DeviceProfile,
    shape: LayerShape,
    *,
    rows_in: IntArray,
    rows_out: IntArray,
    entries: IntArray,
    first: bool,
    last: bool,
    norm: bool,
    between: float = 0.0,
) -> BatchCoreCost:
    """The kernels of one layer: rows_in rows are read, rows_out made, int64[T].

    entries: int64[T], those summed over, self-loops not counted. norm: a LayerNorm stands before each hidden layer's
    activation. between: bytes that all workers of the machine touch in an iteration. Neighbours are drawn, so a sum
    reads any of its rows again as soon as any other; by records that know of no memory further than the last cache, it
    costs what its sizes say.
    """
    read, made, kept = (array.astype(np.float64) for array in (rows_in, rows_out, entries))
    zero = np.zeros(made.shape)
    values = made * shape.d_out
    hidden, extra = (0.0 if last else 1.0), (NORM_PASSES if norm else 0)
    ahead = device_in_training(device, between)
    forward = map_seconds(ahead, made, shape.update_in, shape.d_out)
    summed, undone = _sums(device, shape, kept, read, made, between, first=first)
    weight = weight_seconds(device, made, shape.update_in, shape.d_out)
    if shape.pooled:
        back = map_seconds(device, made, shape.d_out, learning_width(shape, first=first))
    else:
        back = zero if first else map_seconds(device, made, shape.d_out, shape.update_in)
    return BatchCoreCost(
        aggregate=summed,
        update=forward + hidden * elementwise_seconds(ahead, values, RELU_PASSES + extra),
        update_backward=weight + back + hidden * elementwise_seconds(device, values, RELU_BACKWARD_PASSES + extra),
        aggregate_backward=undone,
    )


def _sums(
    device: DeviceProfile,
    shape: LayerShape,
    kept: FloatArray,
    read: FloatArray,
    made: FloatArray,
    between: float,
    *,
    first: bool,
) -> tuple[FloatArray, FloatArray]:
    """What neighbours become, and its gradient: 0 where nothing learns of it."""
    zero, width = np.zeros(made.shape), shape.d_in
    if not shape.gathers:
        return zero, zero
    if shape.pooled:
        pooled = pooling_cost(device, shape, entries=kept, read=read, made=made, first=first, between=between)
        undone = pooled.largest_backward + pooled.mapped_backward + pooled.input_backward
        return pooled.mapped + pooled.largest, undone
    if device.sums is not None and device.far is not None:
        every = kept + made
        # The input is another thread's: its rows are in no cache of this core's.
        ago = between / REUSED
        since = np.inf if first else ago
        summed = product_seconds(device.sums, _product(every, made, read, width, since, ago))
        undone = zero if first else product_seconds(device.sums, _product(every, read, made, width, ago, ago))
        return summed, undone
    own = result_seconds(device, made * width) / RESULT_PASSES
    back = zero if first else sum_seconds(device, kept, read, width, made) + own
    return sum_seconds(device, kept, made, width, read) + own, back


def _product(
    entries: FloatArray, rows: FloatArray, read: FloatArray, width: int, since: float, between: float
) -> Product:
    """A sum over `entries`, self-loops among them, whose rows come in any order: each of the `read` ones is as likely
    as any other to be that of the next entry, once all have come a first time.

    Rows made just before lie in memory that was last used an iteration ago, and are read as slowly as that: measured,
    on an Intel Xeon, with 3.5 to 15 MB of them.
    """
    count, distinct = float(entries.mean()), float(read.mean())
    windows = np.asarray(WINDOWS, np.float64)
    again = max(1.0 - distinct / count, 0.0) if count else 0.0
    reuse = again * -np.expm1(-windows / max(distinct, 1.0))
    back = max(1.0 - float(rows.mean()) / count, 0.0) if count else 0.0
    return Product(entries, rows, width, reuse, np.full(windows.shape, back), since, between)
