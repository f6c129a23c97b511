"""A graph whose nodes have features, labels and a place in the training, validation or test set.

Features are a source that may be sparse, then steps, computed for the requested rows alone and in chunks. A step sees
one chunk, so neither a sparse matrix nor the float64 arithmetic of a step is ever held whole. A step leaves a sparse
chunk sparse where it can; it becomes dense at the end.

A worker's `Share` is its part of the graph and the features, labels and masks of its inner nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from gcnsim.errors import ScenarioError
from gcnsim.graph import Graph
from gcnsim.ids import AnyArray, BoolArray, Float32Array, FloatArray, IntArray, Rank, frozen
from gcnsim.partition import Part, Partitioning, own_send_sets, part_of
from gcnsim.streams import stream

Block: TypeAlias = Any
"""Rows of some nodes: a dense array or a scipy csr_array."""

_CHUNK, _BLOCK, _MOST_PROJECTED = 2**22, 2**18, 2**28


class RowSource(Protocol):
    """Rows of `width` values by node."""

    @property
    def width(self) -> int:
        """Values per row."""

    def block(self, nodes: IntArray) -> Block:
        """The rows of `nodes`, in their order."""


class RowTransform(Protocol):
    """A change of rows, each independent of the others in its chunk."""

    def width(self, width: int) -> int:
        """Values per row behind the step, from those before it."""

    def apply(self, block: Block) -> Block:
        """The changed rows."""


@dataclass(frozen=True, slots=True)
class Features:
    """The features of all nodes, none of them computed yet."""

    source: RowSource
    steps: tuple[RowTransform, ...] = ()

    @property
    def width(self) -> int:
        """d_0, values per row."""
        width = self.source.width
        for step in self.steps:
            width = step.width(width)
        return width

    def rows(self, nodes: IntArray) -> Float32Array:
        """The rows of `nodes`, float32[k, width], new memory."""
        out = np.empty((nodes.size, self.width), dtype=np.float32)
        for begin, block in self.blocks(nodes):
            out[begin : begin + block.shape[0]] = block
        return out

    def blocks(self, nodes: IntArray) -> Iterator[tuple[int, AnyArray]]:
        """The rows of `nodes` as dense chunks of at most 4 M values, each with its place in `nodes`."""
        count = max(1, _CHUNK // max(self.source.width, self.width))
        for begin in range(0, nodes.size, count):
            block = self.source.block(nodes[begin : begin + count])
            for step in self.steps:
                block = step.apply(block)
            yield begin, _dense(block)


@dataclass(frozen=True, slots=True)
class InMemory:
    """Rows held in memory: float32[N, width], or a canonical scipy csr_array of float32."""

    matrix: Block

    @property
    def width(self) -> int:
        """Values per row."""
        return int(self.matrix.shape[1])

    def block(self, nodes: IntArray) -> Block:
        """The rows of `nodes`: sparse when the matrix is."""
        return self.matrix[nodes]


@dataclass(frozen=True, slots=True)
class Normal:
    """Standard normal rows that depend on seed, width and node alone: drawn by blocks of ids, held nowhere."""

    seed: int
    width: int

    def block(self, nodes: IntArray) -> Float32Array:
        """The rows of `nodes`, float32."""
        count = max(1, _BLOCK // self.width)
        home = nodes // count
        out = np.empty((nodes.size, self.width), dtype=np.float32)
        for block in np.unique(home):
            values = stream(self.seed, "features", int(block)).standard_normal((count, self.width), dtype=np.float32)
            here = home == block
            out[here] = values[nodes[here] - block * count]
        return out


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Each row divided by the sum of its absolute values; a zero row stays."""

    def width(self, width: int) -> int:
        """The same."""
        return width

    def apply(self, block: Block) -> Block:
        """Float64 rows, sparse when `block` is."""
        if isinstance(block, np.ndarray):
            wide = block.astype(np.float64)
            return wide / _or_one(np.abs(wide).sum(axis=1))[:, None]
        scaled = block.astype(np.float64)
        scaled.data /= np.repeat(_or_one(abs(scaled).sum(axis=1)), np.diff(scaled.indptr))
        return scaled


@dataclass(frozen=True, slots=True)
class Standard:
    """(x - mean) / deviation by column; a column that does not vary is only shifted."""

    mean: FloatArray
    deviation: FloatArray

    @classmethod
    def over(cls, features: Features, nodes: IntArray) -> Standard:
        """The mean and the population's standard deviation over `nodes`, in two passes over their rows."""
        first = features.rows(nodes[:1])[0].astype(np.float64)
        total, varies = np.zeros_like(first), np.zeros(first.size, dtype=np.bool_)
        for _, block in features.blocks(nodes):
            total += block.sum(axis=0, dtype=np.float64)
            varies |= (block.astype(np.float32, copy=False) != first).any(axis=0)
        mean = total / nodes.size
        squares = np.zeros_like(mean)
        for _, block in features.blocks(nodes):
            squares += np.square(block - mean).sum(axis=0)
        # Rounding leaves a constant column a deviation of 1e-17 or so, and dividing by that would make it all noise.
        deviation = np.where(varies, np.sqrt(squares / nodes.size), 1.0)
        return cls(frozen(mean), frozen(_or_one(deviation)))

    def width(self, width: int) -> int:
        """The same."""
        return width

    def apply(self, block: Block) -> FloatArray:
        """Float64 rows, dense."""
        result: FloatArray = (_dense(block) - self.mean) / self.deviation
        return result


@dataclass(frozen=True, slots=True)
class Projection:
    """Rows times a fixed matrix, in float64."""

    matrix: FloatArray

    @classmethod
    def fixed(cls, width: int, to: int) -> Projection:
        """The matrix [width, to] of N(0, 1 / to) entries, the same in every run.

        Inner products of rows survive on average (Johnson and Lindenstrauss, 1984). Raises ScenarioError when the
        matrix would pass 2 GiB.
        """
        if width * to > _MOST_PROJECTED:
            most = _MOST_PROJECTED // width
            raise ScenarioError(f"--feature-dim: {to} is too many for features of {width} values; allowed: 1 to {most}")
        values = stream(0, "projection").standard_normal((width, to))
        return cls(frozen(values / np.sqrt(to)))

    def width(self, width: int) -> int:
        """The matrix' columns."""
        return int(self.matrix.shape[1])

    def apply(self, block: Block) -> Block:
        """Float64 rows, dense."""
        return block.astype(np.float64) @ self.matrix


def _dense(block: Block) -> AnyArray:
    return block if isinstance(block, np.ndarray) else block.toarray()


def _or_one(divisors: FloatArray) -> FloatArray:
    result: FloatArray = np.where(divisors > 0, divisors, 1.0)
    return result


@dataclass(frozen=True, slots=True)
class Dataset:
    """The whole graph's data, in node order.

    labels: int64[N], -1 unknown; or, with `multilabel`, float32[N, classes] in 0..1. train, val, test: bool[N],
    disjoint, every node in them labelled, at least one in train. Arrays are read-only. notes: what a user must know of
    how features, labels and split were read, a line each: the first of several splits, one drawn at random.
    """

    name: str
    graph: Graph
    features: Features
    labels: AnyArray
    train: BoolArray
    val: BoolArray
    test: BoolArray
    classes: int
    multilabel: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """What worker n = `part.rank` holds, in the order of `part.inner` (I nodes). Arrays are read-only.

    send_sets: [m] is S(n, m), int64 local ids, ascending, empty for m == n. features: float32[I, d_0].
    labels: int64[I] or float32[I, C]. train, val, test: bool[I]; train_total counts over all workers.
    """

    part: Part
    send_sets: tuple[IntArray, ...]
    features: Float32Array
    labels: AnyArray
    train: BoolArray
    val: BoolArray
    test: BoolArray
    train_total: int


def share_of(dataset: Dataset, partitioning: Partitioning, rank: Rank) -> Share:
    """What worker `rank` holds, built without the other workers' parts.

    Raises GraphError when the partition is not this graph's or has no such rank.
    """
    part = part_of(dataset.graph, partitioning, rank)
    return Share(
        part=part,
        send_sets=own_send_sets(part),
        features=frozen(dataset.features.rows(part.inner)),
        labels=frozen(dataset.labels[part.inner]),
        train=frozen(dataset.train[part.inner]),
        val=frozen(dataset.val[part.inner]),
        test=frozen(dataset.test[part.inner]),
        train_total=int(np.count_nonzero(dataset.train)),
    )
