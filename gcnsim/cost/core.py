"""What workers on CPU cores do beside their measured kernels, and how operations share one measured time.

Times of kernels on cores are measured (`gcnsim.records`); no law stands for them. Where one measured operation
is several of a schedule, their shares are those of the bytes and flop that each moves and computes, by the roofline of
`gcnsim.cost.device` with the catalogue's figures: sums over inner and over boundary columns, maps and dropout. Messages
and the values that all-reduces add are never measured with kernels; what they take is here too.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.cost.device import VALUE, elementwise_seconds, gemm_seconds, spmm_seconds
from gcnsim.cost.layers import DROPOUT_PASSES
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.workload import DROPOUT_FIRST, NO_DROPOUT, LayerShape

ADDING_PASSES = 3
"""Own and received values read, their sum written."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What one worker trains, per graph, int64[T]: its nodes, entries between them (self-loops included), entries that
    cross, and boundary rows they need; None: none."""

    nodes: IntArray
    inner_entries: IntArray
    cross_entries: IntArray | None = None
    boundary_rows: IntArray | None = None


@dataclass(frozen=True, slots=True)
class CoreShares:
    """What operations of one layer share measured times by, float64[T] each (0 where one does not run).

    inner, boundary: sums over a worker's own rows and over received ones. boundary_backward: of the latter's gradients;
    all else is backward what it is forward. update: maps and activation. dropped, dropped_boundary: dropout of its own
    rows and of received ones.
    """

    inner: FloatArray
    boundary: FloatArray
    boundary_backward: FloatArray
    update: FloatArray
    dropped: FloatArray
    dropped_boundary: FloatArray


def core_shares(device: DeviceProfile, shape: LayerShape, kept: Kept, dropout: str) -> CoreShares:
    """The shares of one layer on one worker. dropout: one of `gcnsim.workload.DROPOUTS`.

    Attention waits for the boundary's rows, so all that it sums is in `boundary`; backward, the gradient of all rows is
    ready at once.
    """
    nodes, inner = kept.nodes.astype(np.float64), kept.inner_entries.astype(np.float64)
    zero = np.zeros(inner.shape)
    cross, received = (zero if given is None else given + zero for given in (kept.cross_entries, kept.boundary_rows))
    rows = nodes + received if shape.heads else nodes
    update = gemm_seconds(device, rows, shape.update_in, shape.d_out)
    own, others = _dropped(device, dropout, shape, nodes, received)
    if shape.heads or not shape.gathers:
        summed = spmm_seconds(device, inner + cross, nodes, shape.d_in) if shape.gathers else zero
        return CoreShares(zero, summed, summed, update, own, others)
    return CoreShares(
        inner=spmm_seconds(device, inner, nodes, shape.d_in),
        boundary=np.where(cross > 0, spmm_seconds(device, cross, nodes, shape.d_in), 0.0),
        boundary_backward=np.where(cross > 0, spmm_seconds(device, cross, received, shape.d_in), 0.0),
        update=update,
        dropped=own,
        dropped_boundary=others,
    )


def _dropped(
    device: DeviceProfile, dropout: str, shape: LayerShape, own: FloatArray, received: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Of a worker's own rows and of received ones, where they are read. Attention drops all rows at once, when
    they are there; where the sum was made before training, own rows alone are dropped."""
    others = none = np.zeros(own.shape)
    if dropout == NO_DROPOUT:
        own = none
    elif shape.gathers and dropout != DROPOUT_FIRST:
        own, others = (none, own + received) if shape.heads else (own, received)
    return (
        elementwise_seconds(device, own * shape.d_in, DROPOUT_PASSES),
        elementwise_seconds(device, others * shape.d_in, DROPOUT_PASSES),
    )


def norms_seconds(device: DeviceProfile, inner: int, shapes: tuple[LayerShape, ...]) -> float:
    """The share of measuring the norms of what every inner node sends: each layer's map once more."""
    widths = [shape.projected if shape.heads else shape.d_out for shape in shapes]
    each = [gemm_seconds(device, float(inner), shape.d_in, width) for shape, width in zip(shapes, widths, strict=True)]
    return float(np.sum(each))


def adding_seconds(device: DeviceProfile, nbytes: float) -> float:
    """Core-seconds to add `nbytes` received bytes of fp32 values to one's own."""
    return float(elementwise_seconds(device, nbytes / VALUE, ADDING_PASSES))


def socket_core_seconds(host: HostProfile, nbytes: FloatArray) -> FloatArray:
    """Core-seconds that the bytes of a message take at one end."""
    return nbytes / host.socket_bandwidth.value
