"""The configuration model: a random graph of given degrees.

Every node has as many stubs as its degree says; stubs are paired at random. A pair that repeats an edge or joins a node
to itself is broken up by an edge taken at random: (u, v) and (x, y) become (u, x) and (v, y) if both are new.

Newman, "Networks" (2010), section 13.2.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from gcnsim.errors import FileError, GraphError
from gcnsim.graph.build import MOST_NODES
from gcnsim.graph.csr import Cleaning, Graph
from gcnsim.graph.formats.arrays import read_npy
from gcnsim.graph.formats.source import file_text
from gcnsim.graph.generate.distinct import Say, graph_of, keys_of, silent
from gcnsim.graph.generate.limits import check_size
from gcnsim.ids import AnyArray, IntArray
from gcnsim.streams import stream

ROUNDS = 200
"""Changes of ends before what is left is given up."""

_TRIES = 64
"""Edges at most with which a pair tries to change ends before the edges are sorted again."""

_SWAPS = 1 << 21
"""Tries of all pairs in one round, at most, where there are fewer pairs: more would take longer than another round."""

_DIGITS = 18
"""Of a number in a text file, at most: more do not fit."""

_ALLOWED = f"whole numbers from 0 to {MOST_NODES:,}"

_LOW = 0xFFFFFFFF
"""The half of a key that holds the larger end."""


def configuration(
    degrees: AnyArray, seed: int, name: str = "configuration", *, max_memory: float | None = None, say: Say = silent
) -> Graph:
    """A graph in which node v has degrees[v] neighbours, integers[N] of even sum.

    Of a sequence with more than half of all pairs the pairs without an edge are drawn. One that leaves too little room
    (a few nodes joined to nearly all others) loses edges; `cleaning.duplicates_dropped` says how many. Raises
    GraphError for a sequence that no graph has, and when drawing would take more than `max_memory` bytes.
    """
    _check(degrees, name, max_memory)
    degrees = degrees.astype(np.int64)
    if int(degrees.sum()) > degrees.size * (degrees.size - 1) // 2:
        absent, left = _paired(degrees.size - 1 - degrees, seed, say)
        if not left.size:
            return graph_of(_others(absent, degrees.size), degrees.size, name)
    kept, left = _paired(degrees, seed, say)
    graph = graph_of(kept, degrees.size, name)
    return replace(graph, cleaning=Cleaning(duplicates_dropped=left.size))


def _paired(degrees: IntArray, seed: int, say: Say) -> tuple[IntArray, IntArray]:
    """Sorted keys of the edges, and the pairs that found no place."""
    say(f"pairing {int(degrees.sum()):,} stubs")
    stubs = stream(seed, "generate", "pairs").permutation(np.repeat(np.arange(degrees.size, dtype=np.int32), degrees))
    half = stubs.size // 2
    keys = keys_of(stubs[:half].astype(np.int64), stubs[half:].astype(np.int64))
    del stubs
    keys.sort()
    good = keys >> 32 != keys & _LOW
    good[1:] &= keys[1:] != keys[:-1]
    kept, left = keys[good], keys[~good]
    del keys
    for turn in range(ROUNDS):
        if not left.size or not kept.size:
            break
        say(f"breaking up {left.size:,} pairs")
        kept, left = _swapped(kept, left, stream(seed, "generate", "swaps", turn))
    return kept, left


def _others(keys: IntArray, nodes: int) -> IntArray:
    """Sorted keys of all pairs of nodes but those of `keys`."""
    low, high = keys >> 32, keys & _LOW
    there = np.ones(nodes * (nodes - 1) // 2, np.bool_)
    there[low * (2 * nodes - low - 1) // 2 + high - low - 1] = False
    rows = np.repeat(np.arange(nodes), np.arange(nodes - 1, -1, -1))[there]
    start = rows * (2 * nodes - rows - 1) // 2
    return rows << 32 | np.flatnonzero(there) - start + rows + 1


def read_degrees(path: str | Path) -> IntArray:
    """The degree sequence in a `.npy` file or a text file of one number per node, int64[N]; text may be gzip.

    Raises FileError when it cannot be read, or holds anything but whole numbers from 0.
    """
    source = Path(path)
    if source.suffix.lower() == ".npy":
        found = read_npy(source)
    else:
        words = file_text(source).split()
        bad = next((word for word in words if not word.isdigit() or len(word) > _DIGITS), None)
        if bad is not None:
            raise FileError(f"{path}: degrees must be {_ALLOWED}, not {bad.decode('utf-8', 'replace')[:40]!r}")
        found = np.array([int(word) for word in words], np.int64)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not found.size:
        raise FileError(f"{path}: {found.dtype}{list(found.shape)}; a 1-D array of whole numbers is needed")
    if found.max() > MOST_NODES or found.min() < 0:
        bad = found.max() if found.max() > MOST_NODES else found.min()
        raise FileError(f"{path}: degrees must be {_ALLOWED}, not {bad}")
    return found.astype(np.int64)


def _check(degrees: AnyArray, name: str, max_memory: float | None) -> None:
    if degrees.ndim != 1 or degrees.dtype.kind not in "iu":
        raise GraphError(f"{name}: degrees are {degrees.dtype}{list(degrees.shape)}; a 1-D array of integers is needed")
    if degrees.size > 1 and (degrees.min() < 0 or degrees.max() >= degrees.size):
        found = degrees.min() if degrees.min() < 0 else degrees.max()
        raise GraphError(f"{name}: a degree of {found:,}; {degrees.size:,} nodes allow 0 to {degrees.size - 1:,}")
    total = int(degrees.sum(dtype=np.int64))
    check_size(name, degrees.size, total // 2, max_memory)
    if total % 2:
        raise GraphError(f"{name}: the degrees' sum {total:,} is odd; every edge has two ends")
    _check_room(degrees, name)


def _check_room(degrees: AnyArray, name: str) -> None:
    """Raises GraphError where the k largest degrees add up to more than k nodes can have, for any k.

    Erdos and Gallai (1960): k(k - 1) among themselves, and min(d, k) with each other node of degree d. Only a k whose
    k-th degree is k - 1 or more can fail.
    """
    rising = np.sort(degrees.astype(np.int64))
    falling = rising[::-1]
    added = np.cumsum(falling)
    k = np.arange(1, int(np.count_nonzero(falling >= np.arange(falling.size))) + 1)
    full = np.maximum(falling.size - np.searchsorted(rising, k), k)
    most = k * (k - 1) + k * (full - k) + added[-1] - added[full - 1]
    bad = np.flatnonzero(added[: k.size] > most)
    if bad.size:
        count = int(k[bad[0]])
        raise GraphError(
            f"{name}: the {count:,} largest degrees add up to {added[count - 1]:,}; "
            f"these {degrees.size:,} nodes allow {most[bad[0]]:,} at most, so no graph has them"
        )


def _swapped(kept: IntArray, left: IntArray, draws: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Sorted edges and pairs that are none, after every such pair tried to change ends with edges of its own."""
    pairs = left[: kept.size]
    tries = max(1, min(_TRIES, kept.size // (2 * pairs.size), _SWAPS // pairs.size))
    place = draws.choice(kept.size, tries * pairs.size, replace=False)
    flip = draws.random(place.size) < 0.5
    low, high, broken = kept[place] >> 32, kept[place] & _LOW, np.tile(pairs, tries)
    first = keys_of(broken >> 32, np.where(flip, low, high))
    second = keys_of(broken & _LOW, np.where(flip, high, low))
    both = np.concatenate([first, second])
    edges, which, times = np.unique(both, return_inverse=True, return_counts=True)
    fit = (edges >> 32 != edges & _LOW) & (times == 1)
    fit &= kept[np.minimum(np.searchsorted(kept, edges), kept.size - 1)] != edges
    new = fit[which]
    found = np.flatnonzero(new[: place.size] & new[place.size :])
    done, chosen = np.unique(found % pairs.size, return_index=True)
    taken = found[chosen]
    kept = np.concatenate([np.delete(kept, place[taken]), first[taken], second[taken]])
    kept.sort()
    return kept, np.delete(left, done)
