"""Access counts drawn from a stored profile: what its cells ask in expectation, and graphs drawn around that."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

import numpy as np

from gcnsim.boundary.bins import Bins, inclusion_at, kept_at, tilted
from gcnsim.boundary.cached_bins import cached_in_cells
from gcnsim.boundary.counts import AccessCounts
from gcnsim.boundary.expected import ExpectedAccess, drawn
from gcnsim.boundary.stored import StoredProfile
from gcnsim.caching import CacheSize, capacity
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
