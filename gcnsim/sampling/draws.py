"""Drawing one sampled graph, and the chance that a boundary node takes part in it.

The trace and the training runtime draw through the same function: the same stream gives the same graph in both.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from gcnsim.ids import BoolArray, Float32Array, FloatArray
from gcnsim.partition import Part

_CHUNK = 1 << 16
"""Entries drawn at a time: their uniforms stay in the cache."""


def inclusion(part: Part, p: Float32Array) -> FloatArray:
    """The chance that a boundary node is needed: 1 - product over its inner neighbours i of (1 - p_ij), float64[B].

    Exact, because edges are drawn independently (PSC-GCN, inclusion probability); exactly 1 where any p_ij is 1. Its
    sum is the expected number of boundary rows fetched.
    """
    log_missed = np.zeros(part.boundary_nodes)
    add_log_missed(log_missed, part, p)
    return inclusion_of(log_missed)


def add_log_missed(log_missed: FloatArray, part: Part, p: Float32Array, first: int = 0) -> None:
    """Add log(1 - p) of the entries from `first` on to their boundary nodes in `log_missed`, float64[B].

    Entry by entry in their order, so that the pieces of a part, one after another, give the bits of the whole.
    """
    columns = part.columns[first : first + p.size]
    cross = np.flatnonzero(columns >= part.inner_nodes)
    with np.errstate(divide="ignore"):
        added = np.log1p(-p[cross].astype(np.float64))
    np.add.at(log_missed, columns[cross].astype(np.intp) - part.inner_nodes, added)


def inclusion_of(log_missed: FloatArray) -> FloatArray:
    """The inclusion probabilities of boundary nodes whose log(1 - p) have all been added, float64[B]."""
    chance: FloatArray = -np.expm1(log_missed)
    return chance


def draw(part: Part, p: Float32Array, generator: np.random.Generator, first: int = 0) -> tuple[BoolArray, int, int]:
    """One drawn graph as counts: boundary nodes needed bool[B], inner edges kept, boundary edges kept.

    Every stored entry is kept independently with its own p (a float32 uniform below p, so p counts in steps of 2^-24).
    first: the entry that p begins with; where p is of some entries alone, so are the counts.
    """
    needed = np.zeros(part.boundary_nodes, np.bool_)
    inner_edges = boundary_edges = 0
    for start, kept in _draws(p, generator):
        columns = part.columns[first + start : first + start + kept.size][kept]
        cross = columns[columns >= part.inner_nodes]
        needed[cross - part.inner_nodes] = True
        inner_edges += columns.size - cross.size
        boundary_edges += cross.size
    return needed, inner_edges, boundary_edges


def draw_edges(part: Part, p: Float32Array, generator: np.random.Generator) -> BoolArray:
    """One drawn graph as the mask of its kept entries, bool[nnz]; the same graph as `draw` from the same stream."""
    edges = np.empty(part.entries, np.bool_)
    for first, kept in _draws(p, generator):
        edges[first : first + kept.size] = kept
    return edges


def _draws(p: Float32Array, generator: np.random.Generator) -> Iterator[tuple[int, BoolArray]]:
    uniform = np.empty(_CHUNK, np.float32)
    for first in range(0, p.size, _CHUNK):
        piece = p[first : first + _CHUNK]
        generator.random(out=uniform[: piece.size], dtype=np.float32)
        yield first, uniform[: piece.size] < piece
