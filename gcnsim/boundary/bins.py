"""Boundary nodes of one worker in cells of like inclusion probability and degree: what a stored profile keeps of them.

A node is described by its effective cross edges at rate epsilon, log(1 - inclusion) / log(1 - epsilon): under uniform
sampling the number of its cross edges at every rate, under other rules about as many, changing slowly with the rate.
That is what makes a few rates enough: between them its logarithm is interpolated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from gcnsim.ids import AnyArray, FloatArray, IntArray

RATES: Final = (0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.9)
"""The rates at which the inclusion of every cell is stored."""

MANY_PARTS: Final = 128
"""Above so many parts, what is kept and drawn of every pair of them is coarser: there are a million at 1,024."""

MOST_CELLS: Final = 480
"""Cells per worker and sampler; fewer where the number of pairs would make a file too large."""

_BUDGET: Final = 250_000
"""Bytes of a sampler's cells that a file is kept near."""

_DEGREES: Final = 12
"""Cells of like inclusion that differ in degree."""

_GROUPS: Final = 4
"""The fewest groups by inclusion."""

_TOWARDS_TOP: Final = 1.4
"""Groups by inclusion grow towards the least with this power of their place, since caches hold nodes of the most. Found
by trial, on four real graphs, between 1.3 and 1.8."""

_MOST: Final = 1.0 - 1e-12
"""An inclusion that stands for certainty where its logarithm is taken."""


@dataclass(frozen=True, slots=True)
class Bins:
    """The cells of all workers under one sampler.

    nodes: int64[P, P, K], int32 above `MANY_PARTS`: boundary nodes of n owned by m in cell k of n. cross_edges:
    float64[P, K], mean over a cell.
    degree, degree_spread: float64[P, K], mean and standard deviation of the logarithm of degree + 1.
    effective: float64[P, K, R]: effective cross edges at `RATES`, the geometric mean over a cell.
    tilt: float64[P, P, R]: factor on them with which the expected rows of a pair are its own.
    inner_kept, boundary_kept: float64[P, R]: share of n's inner and cross entries that a graph keeps.
    """

    nodes: IntArray
    cross_edges: FloatArray
    degree: FloatArray
    degree_spread: FloatArray
    effective: FloatArray
    tilt: FloatArray
    inner_kept: FloatArray
    boundary_kept: FloatArray


def node_type(parts: int) -> type[np.int64 | np.int32]:
    """What holds the nodes of cells of so many parts: of 1,024 there are 50 million cells."""
    return np.int64 if parts <= MANY_PARTS else np.int32


def cells_per_worker(parts: int) -> int:
    """K for so many parts: at least one group of cells, at most `MOST_CELLS`."""
    room = _BUDGET // (4 * parts * parts + 4 * (len(RATES) + 3) * parts)
    return min(MOST_CELLS, max(_DEGREES * _GROUPS, room // _DEGREES * _DEGREES))


def cell_of_nodes(inclusion: FloatArray, degree: AnyArray, cells: int) -> IntArray:
    """The cell of every boundary node, int64[B]: groups by inclusion, each in cells by degree.

    inclusion: float64[R, B] at `RATES`; groups go by the mean logarithm of the effective cross edges, and nodes that
    tie in it, as those of one cross edge do, are of one group, which has more cells by degree for it.
    """
    nodes = degree.size
    value = np.log(np.maximum(effective_edges(inclusion, RATES), 1e-9)).mean(axis=0).astype(np.float32)
    order = np.argsort(value, kind="stable")
    borders = np.concatenate([[0], np.flatnonzero(np.diff(value[order])) + 1, [nodes]])
    start = np.concatenate([[0], _nearest(borders, np.rint(_ends(cells // _DEGREES) * nodes))])
    group = np.empty(nodes, np.int64)
    group[order] = np.searchsorted(start, np.arange(nodes), side="right") - 1
    order = np.lexsort((degree, group))
    size = np.bincount(group, minlength=start.size)
    place = np.arange(nodes) - np.repeat(np.cumsum(size) - size, size)
    # Groups without nodes lend their cells to the next one that has some.
    first = np.searchsorted(start, start)[group[order]]
    width = (group[order] - first + 1) * _DEGREES
    cell = np.empty(nodes, np.int64)
    cell[order] = first * _DEGREES + place * width // np.maximum(size[group[order]], 1)
    return cell


def _nearest(borders: IntArray, wanted: FloatArray) -> IntArray:
    """The border nearest to each wanted place."""
    above = np.minimum(np.searchsorted(borders, wanted), borders.size - 1)
    below = np.maximum(above - 1, 0)
    chosen: IntArray = np.where(wanted - borders[below] < borders[above] - wanted, borders[below], borders[above])
    return chosen


def cell_means(values: AnyArray, cell: IntArray, cells: int) -> FloatArray:
    """The mean of `values` over each cell, float64[K]; 0 for a cell without nodes."""
    counts = np.bincount(cell, minlength=cells)
    means: FloatArray = np.bincount(cell, weights=values, minlength=cells) / np.maximum(counts, 1)
    return means


def typical_edges(inclusion: FloatArray, cell: IntArray, cells: int) -> FloatArray:
    """The geometric mean of effective cross edges over each cell, float64[R, K]; 0 for a cell without nodes.

    inclusion: float64[R, B] at `RATES`. The inclusion of that mean is the middle of the cell's: of nodes needed almost
    surely the mean inclusion is that of the few which are not, and would rank the cell with them.
    """
    logarithm = _log(effective_edges(inclusion, RATES))
    held = np.bincount(cell, minlength=cells) > 0
    return np.stack([np.exp(cell_means(row, cell, cells)) * held for row in logarithm])


def effective_edges(inclusion: FloatArray, rates: tuple[float, ...]) -> FloatArray:
    """Effective cross edges of inclusion probabilities float64[R, ...] at `rates`."""
    log_missed = np.log1p(-np.minimum(inclusion, _MOST))
    return np.asarray(log_missed / np.log1p(-np.array(rates)).reshape(-1, *[1] * (inclusion.ndim - 1)))


def interpolated(epsilon: float, values: FloatArray, change: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """`values` float64[..., R] at a rate below 1, linear in log(-log(1 - epsilon)) after `change`; constant outside."""
    stations = np.log(-np.log1p(-np.array(RATES)))
    at = float(np.clip(np.log(-np.log1p(-epsilon)), stations[0], stations[-1]))
    right = int(np.clip(np.searchsorted(stations, at), 1, len(RATES) - 1))
    weight = (at - stations[right - 1]) / (stations[right] - stations[right - 1])
    low, high = change(values[..., right - 1]), change(values[..., right])
    mixed: FloatArray = low + weight * (high - low)
    return mixed


def inclusion_at(cells: Bins, epsilon: float) -> FloatArray:
    """The chance that a node of cell k of n is needed at rate `epsilon`, float64[P, K]: the mean over its owners."""
    if epsilon == 1.0:
        return np.ones(cells.degree.shape)
    edges = np.exp(interpolated(epsilon, cells.effective, _log))
    return np.asarray(-np.expm1(edges * np.log1p(-epsilon)))


def tilted(cells: Bins, inclusion: FloatArray, epsilon: float) -> FloatArray:
    """The chances of `inclusion_at` for every owner, float64[P, P, K]."""
    if epsilon == 1.0:
        return np.ones(cells.nodes.shape)
    tilt = np.exp(interpolated(epsilon, cells.tilt, _log))
    return np.asarray(-np.expm1(tilt[:, :, None] * np.log1p(-np.minimum(inclusion, _MOST))[:, None, :]))


def tilt_of(nodes: IntArray, chance: FloatArray, rows: FloatArray) -> FloatArray:
    """The factor on log(1 - chance) with which `nodes`, int64[P, K], need `rows`, float64[P], by bisection."""
    log_missed = np.log1p(-np.minimum(chance, _MOST))
    tilt, held = np.ones(rows.size), np.flatnonzero(nodes.any(axis=1))
    nodes, rows = nodes[held], rows[held]
    low, high = np.full(rows.size, -3.0), np.full(rows.size, 3.0)
    for _ in range(40):
        middle = (low + high) / 2.0
        found = (nodes * -np.expm1(np.exp(middle)[:, None] * log_missed)).sum(axis=1)
        low, high = np.where(found < rows, middle, low), np.where(found < rows, high, middle)
    tilt[held] = np.exp((low + high) / 2.0)
    return tilt


def _log(value: FloatArray) -> FloatArray:
    logarithm: FloatArray = np.log(np.maximum(value, 1e-9))
    return logarithm


def kept_at(cells: Bins, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Shares of every worker's inner and cross entries that a graph keeps at rate `epsilon`, float64[P] each."""
    if epsilon == 1.0:
        return np.ones(len(cells.nodes)), np.ones(len(cells.nodes))
    rates = np.array(RATES)
    fading = towards_one(epsilon)
    inner, boundary = (
        np.clip(epsilon * (1.0 + fading * (interpolated(epsilon, kept / rates, lambda value: value) - 1.0)), 0.0, 1.0)
        for kept in (cells.inner_kept, cells.boundary_kept)
    )
    return inner, boundary


def towards_one(epsilon: float) -> float:
    """How much of a deviation at the largest stored rate is left at a larger one: 1 up to that rate, 0 at 1.

    2 d / (d + d0), d = 1 - epsilon, d0 that of the largest stored rate. Of the share of cross entries that `vr` keeps
    less than uniform sampling does, 0.62 to 0.71 are left at rate 0.95 and 0.17 to 0.23 at 0.99 on three real graphs
    (four METIS parts); this gives 0.67 and 0.18.
    """
    dropped, last = 1.0 - epsilon, 1.0 - RATES[-1]
    return min(1.0, 2.0 * dropped / (dropped + last))


def _ends(groups: int) -> FloatArray:
    """Where each group but the last ends, as a share of the nodes: the nearer to the top, the smaller."""
    left = 1.0 - np.arange(1, groups) / groups
    return np.asarray(1.0 - left**_TOWARDS_TOP)
