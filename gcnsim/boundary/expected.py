"""What a graph asks in expectation, and counts drawn from that: as of a recorded trace, in mean and in spread.

Nodes of a worker are needed independently of one another, since edges are drawn independently. The rows of a pair of
workers are therefore a sum of independent draws with mean mu = sum p and variance mu - sum p^2; a binomial number of
n = mu^2 / sum p^2 draws at mu / n has the same mean and variance. Given the rows, the hits among them are drawn with
their conditional mean and variance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gcnsim.boundary.bins import MANY_PARTS
from gcnsim.boundary.counts import AccessCounts
from gcnsim.ids import FloatArray, IntArray, frozen
from gcnsim.streams import stream

_FEW = 25.0
"""Rows on either side of a cache below which hits are drawn row by row."""


@dataclass(frozen=True, slots=True)
class ExpectedAccess:
    """What a graph asks in expectation, float64[P, P] of n and owner m, and float64[P].

    rows, hits: mean rows, and those of them that the cache holds. rows_squares, hits_squares: sums of squared
    probabilities, which the variances lack to the means. held: nodes of m that n's cache holds. cached_rows: int64[P].
    inner_edges, boundary_edges: float64[P], mean entries kept.
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
    """The sizes of P workers, as every profile knows them."""

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
        """Stored entries that end inside, int64[P]."""
        ...

    @property
    def boundary_entries(self) -> IntArray:
        """Stored entries that end outside, int64[P]."""
        ...


def drawn(mean: ExpectedAccess, sizes: Sizes, iterations: int, seed: int) -> AccessCounts:
    """Counts of `iterations` graphs. Rows and edges depend on the seed and on what is needed in the mean, not on the
    cache."""
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
    """The graphs that are drawn together, and what their streams are named besides: of many parts each by itself."""
    if parts <= MANY_PARTS:
        yield slice(0, iterations), ()
        return
    for t in range(iterations):
        yield slice(t, t + 1), (t,)


def _equal_draws(mean: ExpectedAccess, pairs: IntArray) -> tuple[IntArray, FloatArray]:
    """Number and chance of the equal draws whose sum has the mean and the variance of the rows."""
    count = np.minimum(np.ceil(mean.rows**2 / np.maximum(mean.rows_squares, 1e-300) - 1e-9), pairs)
    return count.astype(np.int64), np.clip(mean.rows / np.maximum(count, 1.0), 0.0, 1.0)


def _scattered(mean: FloatArray, entries: IntArray, generator: np.random.Generator, iterations: int) -> IntArray:
    chance = np.clip(mean / np.maximum(entries, 1), 0.0, 1.0)
    kept: IntArray = generator.binomial(entries, chance, (iterations, entries.size))
    return kept


def _hits(pairs: IntArray, mean: ExpectedAccess, rows: IntArray, generator: np.random.Generator) -> IntArray:
    """Hits among `rows`, int64[T, P, P]: at most the cached nodes, and no fewer than the others leave over."""
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
        # Of many parts a pair has few rows, and of these the cached are often all that a cache holds of an owner.
        above = np.clip(centre - least, 0.0, most - least)
        count = np.minimum(np.ceil(above**2 / np.maximum(above - deviation**2, 1e-12) - 1e-9), most - least)
        share = np.clip(above / np.maximum(count, 1.0), 0.0, 1.0)
        one_by_one = least + generator.binomial(count.astype(np.int64), share)
    return np.clip(np.where(few, one_by_one, wide), least, most).astype(np.int64)
