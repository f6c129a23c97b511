"""Distinct edges from repeated draws, and the graph of them.

An edge is one int64 key: its smaller end in the upper half, its larger end in the lower half, so that sorted keys are
the upper triangle's rows in order. Draws come in blocks of a fixed size with a stream each, which makes the graph the
same in any number of processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from gcnsim.errors import GraphError
from gcnsim.graph.csr import Graph
from gcnsim.ids import IntArray, frozen
from gcnsim.processes import parallel_map
from gcnsim.streams import stream

BLOCK = 1 << 20
"""Edges drawn from one stream; another value is another graph."""

_MOST_DRAWS = 8
"""Draws of one round per edge asked for: a model that needs more has no room for its edges."""

Draw: TypeAlias = Callable[[int, int], IntArray]
"""`draw(round, count)`: the keys of about `count` edges, self-loops and duplicates among them."""

Say: TypeAlias = Callable[[str], None]
"""Takes one line on what is being done."""


def silent(_: str) -> None:
    """Say nothing."""


def keys_of(first: IntArray, second: IntArray) -> IntArray:
    """The keys of edges between first[k] and second[k], int64."""
    keys: IntArray = np.minimum(first, second) << 32
    keys |= np.maximum(first, second)
    return keys


def blocks(count: int, drawn: Callable[[int, int], IntArray], processes: int) -> IntArray:
    """`drawn(start, stop)` of every block of `count` draws, joined."""
    starts = range(0, count, BLOCK)
    found = parallel_map(lambda start: drawn(start, min(start + BLOCK, count)), starts, processes)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def distinct_edges(draw: Draw, edges: int, seed: int, name: str, say: Say = silent) -> IntArray:
    """The sorted keys of exactly `edges` different edges without self-loops, drawn in rounds; int64[edges].

    Raises GraphError when the draws repeat themselves so much that the number is not reached.
    """
    kept = np.empty(0, np.int64)
    accepted, turn = 1.0, 0
    while kept.size < edges:
        missing = edges - kept.size
        count = int(missing / accepted) + (64 if turn else 0)
        if count > _MOST_DRAWS * edges + BLOCK:
            raise GraphError(
                f"{name}: {edges:,} edges: only {kept.size:,} different ones were found; use fewer, or other parameters"
            )
        say(f"drawing {edges:,} edges: {kept.size:,} found")
        fresh = _fresh(draw(turn, count), kept)
        accepted = max(fresh.size / count, accepted / 4.0)
        if fresh.size > missing:
            chosen = stream(seed, "generate", "surplus", turn).choice(fresh.size, missing, replace=False, shuffle=False)
            fresh = fresh[chosen]
        kept = np.concatenate([kept, fresh]) if kept.size else fresh
        kept.sort()
        turn += 1
    return kept


def _fresh(keys: IntArray, kept: IntArray) -> IntArray:
    """Those of `keys` that are not self-loops and not in `kept`, each once, sorted. `keys` is overwritten."""
    keys.sort()
    good = keys >> 32 != keys & 0xFFFFFFFF
    good[1:] &= keys[1:] != keys[:-1]
    fresh: IntArray = keys[good]
    if kept.size:
        place = np.minimum(np.searchsorted(kept, fresh), kept.size - 1)
        fresh = fresh[kept[place] != fresh]
    return fresh


def graph_of(keys: IntArray, nodes: int, name: str, features: int | None = None, classes: int | None = None) -> Graph:
    """The graph of sorted distinct keys: each row its smaller neighbours, then its larger ones, both ascending."""
    from scipy.sparse import csr_array

    above = np.searchsorted(keys, np.arange(nodes + 1, dtype=np.int64) << 32)
    upper = keys.astype(np.int32)
    # scipy copies all indices to the width of the row starts.
    starts = above.astype(np.int32) if keys.size < 2**31 else above
    rows = csr_array((np.ones(keys.size, np.bool_), upper, starts), shape=(nodes, nodes))
    columns = rows.tocsc()
    lower = columns.indices.astype(np.int32, copy=False)
    below = columns.indptr.astype(np.int64, copy=False)
    counts = np.stack([np.diff(below), np.diff(above)], axis=1).ravel()
    first = np.repeat(np.tile(np.array([True, False]), nodes), counts)
    indices = np.empty(2 * keys.size, np.int32)
    indices[first] = lower
    indices[~first] = upper
    return Graph(frozen(above + below), frozen(indices), name, features, classes)
