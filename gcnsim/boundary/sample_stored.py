"""Access counts drawn from a stored profile: as those of a trace recorded from its graph, in mean and in spread.

Nodes of a worker are needed independently of one another, since edges are drawn independently. The rows of a pair of
workers are therefore a sum of independent draws with mean mu = sum p and variance mu - sum p^2; a binomial number of
n = mu^2 / sum p^2 draws at mu / n has the same mean and variance. Given the rows, the hits among them are drawn with
their conditional mean and variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.boundary.bins import inclusion_at, kept_at, tilted
from gcnsim.boundary.cached_bins import cached_in_cells
from gcnsim.boundary.counts import AccessCounts
from gcnsim.boundary.stored import StoredProfile
from gcnsim.caching import CacheSize, capacity
from gcnsim.errors import ScenarioError, nearest
from gcnsim.ids import FloatArray, IntArray, frozen
from gcnsim.sampling import checked_rate
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


def expected_access(
    profile: StoredProfile, *, sampler: str, epsilon: float, cache: CacheSize, policy: str, feature_width: int
) -> ExpectedAccess:
    """The expectation of one graph drawn by `sampler` at `epsilon` (`full`: every edge), with every cache filled once.

    Raises ScenarioError for a sampler the profile does not hold, an unknown policy, or epsilon outside (0, 1].
    """
    rate = 1.0 if sampler == "full" else checked_rate(epsilon)
    name = "vr" if sampler == "full" else sampler
    if name not in profile.cells:
        raise ScenarioError(f"sampler: the profile holds no {sampler!r}; {nearest(sampler, profile.cells)}")
    cells = profile.cells[name]
    ranked = inclusion_at(cells, rate)
    chance = tilted(cells, ranked, rate)
    size = np.array([capacity(cache, int(nodes), feature_width) for nodes in profile.boundary_nodes], np.int64)
    cached = cached_in_cells(cells, ranked, policy, size)
    inner, boundary = kept_at(cells, rate)
    return ExpectedAccess(
        rows=(cells.nodes * chance).sum(axis=2),
        rows_squares=(cells.nodes * chance**2).sum(axis=2),
        hits=(cached * chance).sum(axis=2),
        hits_squares=(cached * chance**2).sum(axis=2),
        held=cached.sum(axis=2),
        cached_rows=size,
        inner_edges=profile.inner_entries * inner,
        boundary_edges=profile.boundary_entries * boundary,
    )


def draw_access(
    profile: StoredProfile,
    *,
    sampler: str,
    epsilon: float,
    iterations: int,
    seed: int,
    cache: CacheSize,
    policy: str,
    feature_width: int,
) -> AccessCounts:
    """Counts of `iterations` graphs. Rows and edges depend on the seed only, not on the cache.

    Cells of the `random` policy hold their share of the cache, as a random choice does in the mean. Raises as
    `expected_access` does.
    """
    mean = expected_access(
        profile, sampler=sampler, epsilon=epsilon, cache=cache, policy=policy, feature_width=feature_width
    )
    shape = (iterations, profile.parts, profile.parts)
    rows = stream(seed, "profile", "rows").binomial(*_draws(mean, profile.pairs), shape)
    generator = stream(seed, "profile", "edges")
    inner = _scattered(mean.inner_edges, profile.inner_entries, generator, iterations)
    needed = rows.sum(axis=2)
    room = np.maximum(profile.boundary_entries - needed, 0)
    spare = np.maximum(profile.boundary_entries - mean.rows.sum(axis=1), 1.0)
    more = np.clip((mean.boundary_edges - mean.rows.sum(axis=1)) / spare, 0.0, 1.0)
    return AccessCounts(
        rows=frozen(rows),
        hits=frozen(_hits(profile, mean, rows, seed)),
        inner_edges=frozen(inner),
        boundary_edges=frozen(needed + generator.binomial(room, more)),
        inner_nodes=profile.inner_nodes,
        boundary_nodes=frozen(profile.boundary_nodes),
        entries=frozen(profile.entries),
        cached_rows=frozen(mean.cached_rows),
    )


def _draws(mean: ExpectedAccess, pairs: IntArray) -> tuple[IntArray, FloatArray]:
    """Number and chance of the equal draws whose sum has the mean and the variance of the rows."""
    count = np.minimum(np.ceil(mean.rows**2 / np.maximum(mean.rows_squares, 1e-300) - 1e-9), pairs)
    return count.astype(np.int64), np.clip(mean.rows / np.maximum(count, 1.0), 0.0, 1.0)


def _scattered(mean: FloatArray, entries: IntArray, generator: np.random.Generator, iterations: int) -> IntArray:
    chance = np.clip(mean / np.maximum(entries, 1), 0.0, 1.0)
    drawn: IntArray = generator.binomial(entries, chance, (iterations, entries.size))
    return drawn


def _hits(profile: StoredProfile, mean: ExpectedAccess, rows: IntArray, seed: int) -> IntArray:
    """Hits among `rows`, int64[T, P, P]: at most the cached nodes, and no fewer than the others leave over."""
    if not mean.cached_rows.any():
        return np.zeros_like(rows)
    generator = stream(seed, "profile", "hits")
    held_spread = np.maximum(mean.hits - mean.hits_squares, 0.0)
    spread = np.maximum(mean.rows - mean.rows_squares, 1e-12)
    lean = np.where(spread > 1e-9, held_spread / spread, 0.0)
    centre = mean.hits + lean * (rows - mean.rows)
    deviation = np.sqrt(np.maximum(held_spread * (1.0 - lean), 0.0))
    near = centre + deviation * generator.standard_normal(rows.shape)
    wide = np.floor(near + generator.random(rows.shape))
    few = np.minimum(mean.hits, mean.rows - mean.hits) < _FEW
    share = np.clip(mean.hits / np.maximum(mean.rows, 1e-300), 0.0, 1.0)
    drawn = np.where(few, generator.binomial(rows, share), wide)
    most = np.minimum(rows, np.rint(mean.held).astype(np.int64))
    least = np.minimum(np.maximum(0, rows - (profile.pairs - np.rint(mean.held).astype(np.int64))), most)
    return np.clip(drawn, least, most).astype(np.int64)
