"""Access counts drawn from a stored profile: what its cells ask in expectation, and graphs drawn around that.

Which nodes of a stored profile's cells a static cache holds: as `gcnsim.caching` ranks nodes, told by cell.

Ties matter: a cache that ends among nodes of one degree takes those of the lower ranks' workers, whose boundary indices
come first, and leaves others' out; on small graphs that decides which pair of workers sends the most.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Final

import numpy as np

from gcnsim.boundary.bins import Bins, inclusion_at, kept_at, tilted
from gcnsim.boundary.counts import AccessCounts
from gcnsim.boundary.expected import ExpectedAccess, drawn
from gcnsim.boundary.stored import StoredProfile
from gcnsim.caching import CacheSize, cache_policy, capacity
from gcnsim.errors import ScenarioError, nearest
from gcnsim.ids import FloatArray, IntArray
from gcnsim.sampling import checked_rate

_BLOCK: Final = 1 << 21
"""Cells of workers and owners that are looked at at a time: some 100 MB."""


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
    size = np.array([capacity(cache, int(nodes), feature_width) for nodes in profile.boundary_nodes], np.int64)
    step = max(1, _BLOCK // max(1, profile.parts * cells.degree.shape[1]))
    blocks = [
        _asked(_of_workers(cells, slice(first, first + step)), rate, policy, size[first : first + step])
        for first in range(0, profile.parts, step)
    ]
    rows, rows_squares, hits, hits_squares, held = (np.concatenate(each) for each in zip(*blocks, strict=True))
    inner, boundary = kept_at(cells, rate)
    return ExpectedAccess(
        rows=rows,
        rows_squares=rows_squares,
        hits=hits,
        hits_squares=hits_squares,
        held=held,
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
    return drawn(mean, profile, iterations, seed)


def _of_workers(cells: Bins, workers: slice) -> Bins:
    """The cells of some of the workers."""
    return Bins(*(getattr(cells, field.name)[workers] for field in fields(Bins)))


def _asked(cells: Bins, rate: float, policy: str, size: IntArray) -> tuple[FloatArray, ...]:
    """Of some workers: rows and hits in the mean, each with its squares, and what caches of `size` rows hold."""
    ranked = inclusion_at(cells, rate)
    chance = tilted(cells, ranked, rate)
    cached = cached_in_cells(cells, ranked, policy, size)
    rows, squares = (cells.nodes * chance).sum(axis=2), (cells.nodes * chance**2).sum(axis=2)
    if not size.any():
        return rows, squares, *np.zeros((3, *rows.shape))
    return rows, squares, (cached * chance).sum(axis=2), (cached * chance**2).sum(axis=2), cached.sum(axis=2)


def cached_in_cells(cells: Bins, chance: FloatArray, policy: str, size: IntArray) -> FloatArray:
    """Cached nodes by worker, owner and cell, float64[P, P, K], of caches of `size` rows, int64[P].

    chance: inclusion of every cell, float64[P, K]. Raises ScenarioError for an unknown policy.
    """
    rule = cache_policy(policy).name
    cached = np.zeros(cells.nodes.shape)
    for rank, rows in enumerate(size.tolist()):
        nodes = cells.nodes[rank]
        if rows and rule == "random":
            cached[rank] = nodes * (rows / nodes.sum())
        elif rows:
            # Traces hold inclusion as float32, so that what is needed almost surely ties there and goes by degree.
            rank_by = np.zeros(chance[rank].shape) if rule == "degree" else chance[rank].astype(np.float32)
            cached[rank] = _first(nodes, rank_by, cells.degree[rank], cells.degree_spread[rank], rows)
    return cached


def _first(nodes: IntArray, rank_by: FloatArray, degree: FloatArray, spread: FloatArray, size: int) -> FloatArray:
    """The first `size` nodes by `rank_by`, ties by degree, float64[P, K]."""
    total = nodes.sum(axis=0)
    order = np.argsort(-rank_by, kind="stable")
    last = rank_by[order[np.searchsorted(np.cumsum(total[order]), size)]]
    left = size - int(total[rank_by > last].sum())
    return np.asarray(nodes * (rank_by > last) + _largest(nodes * (rank_by == last), degree, spread, left))


def _largest(nodes: IntArray, degree: FloatArray, spread: FloatArray, size: int) -> FloatArray:
    """The `size` nodes of highest degree, ties by owner, float64[P, K]; log(degree + 1) is flat within a cell."""
    total = nodes.sum(axis=0)
    reach = np.maximum(spread * math.sqrt(3.0), 1e-9)
    top = degree + reach

    def above(least: int) -> FloatArray:
        return np.asarray(np.clip((top - math.log(least + 1.5)) / (2.0 * reach), 0.0, 1.0))

    low, high = -1, math.ceil(math.expm1(float(top.max())))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if float(above(middle) @ total) > size else (low, middle)
    more = above(high)
    tied = nodes * (above(high - 1) - more)
    own = tied.sum(axis=1)
    before = float(more @ total) + np.cumsum(own) - own
    share = np.clip((size - before) / np.maximum(own, 1e-12), 0.0, 1.0)
    return np.asarray(nodes * more + tied * share[:, None])
