"""Which nodes of a stored profile's cells a static cache holds: as `gcnsim.caching` ranks nodes, told by cell.

Ties matter: a cache that ends among nodes of one degree takes those of the lower ranks' workers, whose boundary indices
come first, and leaves others' out; on small graphs that decides which pair of workers sends the most.
"""

from __future__ import annotations

import math

import numpy as np

from gcnsim.boundary.bins import Bins
from gcnsim.caching import cache_policy
from gcnsim.ids import FloatArray, IntArray


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
