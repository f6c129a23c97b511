"""Sample one graph, and compute the probability that a boundary node is part of it.

The trace and the training runtime use the same function: the same stream gives the same graph in both.

BNS-GCN (Algorithm 1) samples boundary nodes instead of edges, a random share of those that a peer may need. Of n nodes
floor(p n) are sampled, and one more with the remaining probability, so that each node is included with probability p
for any n. The training runtime does the same: the same stream gives the same nodes in both.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Final

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import BoolArray, Float32Array, FloatArray, IntArray
from gcnsim.graph.parts import Part

_CHUNK = 1 << 16
"""Entries sampled at a time, an even number, so that their uniforms stay in the cache."""

_BITS = 24
_STEPS = 1 << _BITS
"""A float32 uniform is a multiple of 1 / _STEPS."""


def inclusion(part: Part, p: Float32Array) -> FloatArray:
    """The probability that a boundary node is needed: 1 - product over its inner neighbours i of (1 - p_ij),
    float64[B].

    Exact, because edges are sampled independently (PSC-GCN, inclusion probability); exactly 1 if any p_ij is 1. Its sum
    is the expected number of boundary rows fetched.
    """
    log_missed = np.zeros(part.boundary_nodes)
    add_log_missed(log_missed, part, p)
    return inclusion_of(log_missed)


def add_log_missed(log_missed: FloatArray, part: Part, p: Float32Array, first: int = 0) -> None:
    """Add log(1 - p) of the entries from `first` on to their boundary nodes in `log_missed`, float64[B].

    Entry by entry in order, so that processing a part in pieces gives identical results.
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


class Draws:
    """The entries of a part with their p, prepared for sampling many graphs.

    A float32 uniform is a multiple of 2^-24, from the upper 24 of 32 random bits. So u < p if that number is below
    ceil(2^24 p), and no uniform is computed.
    """

    def __init__(self, part: Part, p: Float32Array, first: int = 0) -> None:
        """first: the first entry of p, 0 <= p <= 1; if p covers some entries only, so do the graphs."""
        self._part, self._columns = part, part.columns[first : first + p.size]
        self._limits = np.empty(p.size, np.uint32)
        np.ceil(np.multiply(p, np.float32(_STEPS)), out=self._limits, casting="unsafe")
        self._kept = np.empty(p.size, np.bool_)

    @cached_property
    def _crossing(self) -> tuple[IntArray, IntArray]:
        """The entries of boundary columns, and the boundary index of each."""
        crossing = np.flatnonzero(self._columns >= self._part.inner_nodes)
        return crossing, self._columns[crossing].astype(np.intp) - self._part.inner_nodes

    def draw(self, generator: np.random.Generator) -> tuple[BoolArray, int, int]:
        """One sampled graph as counts: boundary nodes needed bool[B], inner edges kept, boundary edges kept.

        Every stored entry is kept independently with its p (a float32 uniform below p, so p has steps of 2^-24).
        """
        kept, (crossing, nodes) = self.edges(generator), self._crossing
        found = np.flatnonzero(kept[crossing])
        needed = np.zeros(self._part.boundary_nodes, np.bool_)
        needed[nodes[found]] = True
        return needed, int(np.count_nonzero(kept)) - found.size, found.size

    def edges(self, generator: np.random.Generator) -> BoolArray:
        """One sampled graph as the mask of its kept entries, bool[nnz], which the next call overwrites.

        The same graph as `draw` from the same stream, by the uniforms of `generator.random(dtype=np.float32)`.
        """
        size, bits = self._kept.size, generator.bit_generator
        first = 0
        if bits.state["has_uint32"] and size:
            # The upper half of a step whose lower half was used before.
            self._draw_one(0, generator)
            first = 1
        paired = size - (size - first) % 2
        for begin in range(first, paired, _CHUNK):
            end = min(begin + _CHUNK, paired)
            # The lower half of a step comes first, on every machine.
            halves = bits.random_raw((end - begin) // 2).astype("<u8", copy=False).view("<u4")
            halves >>= 32 - _BITS
            np.less(halves, self._limits[begin:end], out=self._kept[begin:end])
        if paired < size:
            self._draw_one(paired, generator)
        return self._kept

    def _draw_one(self, entry: int, generator: np.random.Generator) -> None:
        self._kept[entry] = int(generator.random(dtype=np.float32) * _STEPS) < self._limits[entry]


def draw(part: Part, p: Float32Array, generator: np.random.Generator, first: int = 0) -> tuple[BoolArray, int, int]:
    """One sampled graph as counts, equal to one of `Draws`."""
    return Draws(part, p, first).draw(generator)


NODES: Final = "bns"
"""The name of this rule in a trace; its rate replaces epsilon."""


def draw_nodes(nodes: int, rate: float, generator: np.random.Generator) -> IntArray:
    """The sampled indices among `nodes`, int64[k], ascending."""
    mean = rate * nodes
    count = math.floor(mean)
    count += bool(generator.random() < mean - count)
    return np.sort(generator.choice(nodes, size=count, replace=False)) if nodes else np.zeros(0, np.int64)


def checked_share(rate: float) -> float:
    """`rate` if it is in [0, 1]; raises ScenarioError otherwise."""
    if not 0.0 <= rate <= 1.0:
        raise ScenarioError(f"rate: {rate:g} is outside [0, 1]")
    return rate
