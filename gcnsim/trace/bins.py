"""Cells of a worker's boundary nodes with similar inclusion probability and degree, as in a stored profile.

A node is described by its effective cross edges at rate epsilon, log(1 - inclusion) / log(1 - epsilon). Under uniform
sampling this is the number of its cross edges at every rate. Under other rules it is close to that number and changes
slowly with the rate. A few rates are therefore enough: between them its logarithm is interpolated.

The module also computes the expected access of a graph, and draws counts with the mean and spread of a recorded trace.
Nodes of a worker are needed independently of one another, because edges are sampled independently. The rows of a pair
of workers are therefore a sum of independent draws. Its mean is mu = sum p, its variance mu - sum p^2. A binomial
number of n = mu^2 / sum p^2 draws at mu / n has the same mean and variance. Given the rows, the hits among them are
drawn with their conditional mean and variance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from gcnsim.core.ids import AnyArray, FloatArray, IntArray, frozen
from gcnsim.core.streams import stream
from gcnsim.trace.counts import AccessCounts

RATES: Final = (0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8, 0.9)
"""The rates at which the inclusion of every cell is stored."""

MANY_PARTS: Final = 128
"""Above this number of parts, the data per pair of parts are coarser: 1,024 parts have a million pairs."""

MOST_CELLS: Final = 480
"""Cells per worker and sampler; fewer if the number of pairs would make a file too large."""

_BUDGET: Final = 250_000
"""The target size in bytes of a sampler's cells in a file."""

_DEGREES: Final = 12
"""Cells of similar inclusion that differ in degree."""

_GROUPS: Final = 4
"""The fewest groups by inclusion."""

_TOWARDS_TOP: Final = 1.4
"""Groups by inclusion shrink towards the highest inclusion with this power, because caches hold nodes with high
inclusion.

Chosen by trial on four real graphs, between 1.3 and 1.8.
"""

_MOST: Final = 1.0 - 1e-12
"""An inclusion that replaces certainty before taking logarithms."""


@dataclass(frozen=True, slots=True)
class Bins:
    """The cells of all workers under one sampler.

    nodes: int64[P, P, K], int32 above `MANY_PARTS`: boundary nodes of n owned by m in cell k of n. cross_edges:
    float64[P, K], mean over a cell. degree, degree_spread: float64[P, K], mean and standard deviation of the logarithm
    of degree + 1. effective: float64[P, K, R]: effective cross edges at `RATES`, the geometric mean over a cell. tilt:
    float64[P, P, R]: factor on them that gives the expected rows of a pair. inner_kept, boundary_kept: float64[P, R]:
    share of n's inner and cross entries that a graph keeps.
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
    """The integer type for the nodes of cells; 1,024 parts have 50 million cells."""
    return np.int64 if parts <= MANY_PARTS else np.int32


def cells_per_worker(parts: int) -> int:
    """K for this number of parts: at least one group of cells, at most `MOST_CELLS`."""
    room = _BUDGET // (4 * parts * parts + 4 * (len(RATES) + 3) * parts)
    return min(MOST_CELLS, max(_DEGREES * _GROUPS, room // _DEGREES * _DEGREES))


def cell_of_nodes(inclusion: FloatArray, degree: AnyArray, cells: int) -> IntArray:
    """The cell of every boundary node, int64[B]: groups by inclusion, each split into cells by degree.

    inclusion: float64[R, B] at `RATES`. Groups use the mean logarithm of the effective cross edges. Nodes with equal
    values, e.g. with one cross edge each, form one group with more cells by degree.
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
    # Groups without nodes give their cells to the next group with nodes.
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

    inclusion: float64[R, B] at `RATES`. The inclusion of that mean is typical of the cell. The mean inclusion of almost
    certain nodes would depend on the few others, and would rank the cell with them.
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


def reweighted(cells: Bins, inclusion: FloatArray, epsilon: float) -> FloatArray:
    """The probabilities of `inclusion_at` for every owner, float64[P, P, K]."""
    if epsilon == 1.0:
        return np.ones(cells.nodes.shape)
    tilt = np.exp(interpolated(epsilon, cells.tilt, _log))
    return np.asarray(-np.expm1(tilt[:, :, None] * np.log1p(-np.minimum(inclusion, _MOST))[:, None, :]))


def reweight_factor(nodes: IntArray, chance: FloatArray, rows: FloatArray) -> FloatArray:
    """The factor on log(1 - chance) for which `nodes`, int64[P, K], need `rows`, float64[P], by bisection."""
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


def kept_fractions(cells: Bins, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Shares of every worker's inner and cross entries that a graph keeps at rate `epsilon`, float64[P] each."""
    if epsilon == 1.0:
        return np.ones(len(cells.nodes)), np.ones(len(cells.nodes))
    rates = np.array(RATES)
    fading = fade_to_one(epsilon)
    inner, boundary = (
        np.clip(epsilon * (1.0 + fading * (interpolated(epsilon, stored / rates, lambda value: value) - 1.0)), 0.0, 1.0)
        for stored in (cells.inner_kept, cells.boundary_kept)
    )
    return inner, boundary


def fade_to_one(epsilon: float) -> float:
    """The remaining part of a deviation at the largest stored rate at a larger one: 1 up to that rate, 0 at 1.

    2 d / (d + d0), d = 1 - epsilon, d0 that of the largest stored rate. `vr` keeps a smaller share of cross entries
    than uniform sampling. Of that difference, 0.62 to 0.71 remain at rate 0.95 and 0.17 to 0.23 at 0.99 on three real
    graphs (four METIS parts); this formula gives 0.67 and 0.18.
    """
    dropped, last = 1.0 - epsilon, 1.0 - RATES[-1]
    return min(1.0, 2.0 * dropped / (dropped + last))


def _ends(groups: int) -> FloatArray:
    """The end of each group but the last, as a share of the nodes; groups near the top are smaller."""
    left = 1.0 - np.arange(1, groups) / groups
    return np.asarray(1.0 - left**_TOWARDS_TOP)


_FEW = 25.0
"""If a cache boundary has fewer rows than this on either side, hits are drawn row by row."""


@dataclass(frozen=True, slots=True)
class ExpectedAccess:
    """The expected requests of a graph, float64[P, P] by n and owner m, and float64[P].

    rows, hits: mean rows, and mean rows found in the cache. rows_squares, hits_squares: sums of squared probabilities,
    the difference between mean and variance. held: nodes of m in n's cache. cached_rows: int64[P]. inner_edges,
    boundary_edges: float64[P], mean entries kept.
    """

    rows: FloatArray
    rows_squares: FloatArray
    hits: FloatArray
    hits_squares: FloatArray
    held: FloatArray
    cached_rows: IntArray
    inner_edges: FloatArray
    boundary_edges: FloatArray


class Sizes(Protocol):
    """The sizes of P workers, common to all profiles."""

    @property
    def pairs(self) -> IntArray:
        """Boundary nodes of n owned by m, int64[P, P]."""
        ...

    @property
    def inner_nodes(self) -> IntArray:
        """Nodes of every worker, int64[P]."""
        ...

    @property
    def inner_entries(self) -> IntArray:
        """Stored entries to nodes of the same part, int64[P]."""
        ...

    @property
    def boundary_entries(self) -> IntArray:
        """Stored entries to nodes of other parts, int64[P]."""
        ...


def drawn(mean: ExpectedAccess, sizes: Sizes, iterations: int, seed: int) -> AccessCounts:
    """Counts of `iterations` graphs. Rows and edges depend on the seed and the mean rows, not on the cache."""
    pairs = sizes.pairs
    parts = len(pairs)
    rows, hits = (np.zeros((iterations, parts, parts), np.int64) for _ in range(2))
    inner, boundary = (np.zeros((iterations, parts), np.int64) for _ in range(2))
    count, chance = _equal_draws(mean, pairs)
    for graphs, names in _turns(parts, iterations):
        rows[graphs] = stream(seed, "profile", "rows", *names).binomial(count, chance, rows[graphs].shape)
        generator = stream(seed, "profile", "edges", *names)
        inner[graphs] = _scattered(mean.inner_edges, sizes.inner_entries, generator, len(inner[graphs]))
        needed = rows[graphs].sum(axis=2)
        room = np.maximum(sizes.boundary_entries - needed, 0)
        spare = np.maximum(sizes.boundary_entries - mean.rows.sum(axis=1), 1.0)
        more = np.clip((mean.boundary_edges - mean.rows.sum(axis=1)) / spare, 0.0, 1.0)
        boundary[graphs] = needed + generator.binomial(room, more)
        if mean.cached_rows.any():
            hits[graphs] = _hits(pairs, mean, rows[graphs], stream(seed, "profile", "hits", *names))
    return AccessCounts(
        rows=frozen(rows),
        hits=frozen(hits),
        inner_edges=frozen(inner),
        boundary_edges=frozen(boundary),
        inner_nodes=sizes.inner_nodes,
        boundary_nodes=frozen(pairs.sum(axis=1)),
        entries=frozen(sizes.inner_entries + sizes.boundary_entries),
        cached_rows=frozen(mean.cached_rows),
    )


def _turns(parts: int, iterations: int) -> Iterator[tuple[slice, tuple[int, ...]]]:
    """The groups of graphs that are drawn together, and the suffix of their streams; with many parts one graph at a
    time.
    """
    if parts <= MANY_PARTS:
        yield slice(0, iterations), ()
        return
    for t in range(iterations):
        yield slice(t, t + 1), (t,)


def _equal_draws(mean: ExpectedAccess, pairs: IntArray) -> tuple[IntArray, FloatArray]:
    """Number and probability of equal draws whose sum has the mean and the variance of the rows."""
    count = np.minimum(np.ceil(mean.rows**2 / np.maximum(mean.rows_squares, 1e-300) - 1e-9), pairs)
    return count.astype(np.int64), np.clip(mean.rows / np.maximum(count, 1.0), 0.0, 1.0)


def _scattered(mean: FloatArray, entries: IntArray, generator: np.random.Generator, iterations: int) -> IntArray:
    chance = np.clip(mean / np.maximum(entries, 1), 0.0, 1.0)
    kept: IntArray = generator.binomial(entries, chance, (iterations, entries.size))
    return kept


def _hits(pairs: IntArray, mean: ExpectedAccess, rows: IntArray, generator: np.random.Generator) -> IntArray:
    """Hits among `rows`, int64[T, P, P], limited by the cached nodes and by the uncached ones."""
    held_spread = np.maximum(mean.hits - mean.hits_squares, 0.0)
    spread = np.maximum(mean.rows - mean.rows_squares, 1e-12)
    lean = np.where(spread > 1e-9, held_spread / spread, 0.0)
    centre = mean.hits + lean * (rows - mean.rows)
    deviation = np.sqrt(np.maximum(held_spread * (1.0 - lean), 0.0))
    near = centre + deviation * generator.standard_normal(rows.shape)
    wide = np.floor(near + generator.random(rows.shape))
    few = np.minimum(mean.hits, mean.rows - mean.hits) < _FEW
    held = np.rint(mean.held).astype(np.int64)
    most = np.minimum(rows, held)
    least = np.minimum(np.maximum(0, rows - (pairs - held)), most)
    if len(pairs) <= MANY_PARTS:
        share = np.clip(mean.hits / np.maximum(mean.rows, 1e-300), 0.0, 1.0)
        one_by_one = generator.binomial(rows, share)
    else:
        # With many parts a pair has few rows, and the cached ones are often all that a cache holds of an owner.
        above = np.clip(centre - least, 0.0, most - least)
        count = np.minimum(np.ceil(above**2 / np.maximum(above - deviation**2, 1e-12) - 1e-9), most - least)
        share = np.clip(above / np.maximum(count, 1.0), 0.0, 1.0)
        one_by_one = least + generator.binomial(count.astype(np.int64), share)
    return np.clip(np.where(few, one_by_one, wide), least, most).astype(np.int64)
