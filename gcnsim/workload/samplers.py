"""Sampling rules: the probability with which each stored edge of a worker is kept in one sampled graph.

A rule is prepared once per part (the variance-reduction rule sorts there) and evaluated for any number of rates. A very
large part is processed in blocks of its rows, because every row determines its own probabilities. The self-loop of the
GCN is outside every rule: it is always kept.

`VarianceReduction` is Theorem 2 of PSC-GCN: the edge probabilities of least variance under a budget, for all rows of a
CSR matrix at once. For one row, let q_j = sqrt(a_j) ||y_ij||, with n entries and budget B = epsilon n. Let c_k = B + k
- n, and S_k the sum of the k smallest q. The theorem sorts q and finds the largest k with c_k q_k <= S_k. It sets p_j =
min(1, q_j c_k / S_k).

p > 0 is needed and 1/p must stay bounded, so entries below the floor 0.1 epsilon are raised to it. The rule is then
applied to the others with the remaining budget, until no new entry falls below. That is the exact optimum under floor
<= p <= 1, and the theorem itself if no value is below the floor.

The theorem needs CSR rows sorted by value with their running sums, once per graph for all rates. Rows of similar length
are padded into small rectangular blocks, sorted and summed along the block's second axis. Every row is thus summed
separately. One running sum over all rows would lose a row of small values behind one of large ones.

The norms file has one s_j per node from a training run, which the variance-reduction sampler needs: s_j =
sqrt(sum over layers of ||H_j^(l) W^(l+1)||^2) (PSC-GCN, Theorem 2), so that ||y_ij|| = |P_ij| s_j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from gcnsim.core.container import read_sections, write_sections
from gcnsim.core.errors import FileError, ScenarioError, nearest
from gcnsim.core.fields import AMOUNT, wrong_values
from gcnsim.core.ids import BoolArray, Float32Array, FloatArray, Int32Array, IntArray, frozen
from gcnsim.graph import Graph
from gcnsim.graph.parts import Part

BLOCK = 1 << 16
"""Padded entries handled at a time: a megabyte or two, which stays in the cache."""


@dataclass(frozen=True, slots=True)
class SortedRows:
    """Rows of non-negative values, ascending within a row and padded.

    start, counts, zeros: int64[I]: first entry, entries, and leading zeros of each row.
    values: float32[S]. sums: float64[S], sums[start + k - 1] = the k smallest values of the row added up.
    """

    start: IntArray
    counts: IntArray
    zeros: IntArray
    values: Float32Array
    sums: FloatArray


def sort_rows(indptr: IntArray, values: Float32Array) -> SortedRows:
    """The rows `values[indptr[i]:indptr[i + 1]]` sorted, with running sums."""
    counts = np.diff(indptr)
    widths = _padded(counts)
    start, zeros = np.zeros(counts.size, np.int64), np.zeros(counts.size, np.int64)
    ordered, sums = np.empty(int(widths.sum()), np.float32), np.empty(int(widths.sum()), np.float64)
    first = 0
    for rows, width in _blocks(widths):
        last = first + rows.size * width
        block = ordered[first:last].reshape(rows.size, width)
        columns = np.arange(width)
        np.take(values, indptr[rows, None] + columns, out=block, mode="clip")
        block[columns >= counts[rows, None]] = np.inf
        block.sort(axis=1)
        zeros[rows] = np.count_nonzero(block == 0, axis=1)
        np.cumsum(block, axis=1, dtype=np.float64, out=sums[first:last].reshape(block.shape))
        start[rows] = np.arange(first, last, width)
        first = last
    return SortedRows(start, counts, zeros, ordered, sums)


def _padded(counts: IntArray) -> IntArray:
    """Widths of at most a quarter more, of which there are four for each power of two."""
    step: IntArray = 1 << np.maximum(np.ceil(np.log2(np.maximum(counts, 1))).astype(np.int64) - 3, 0)
    return -(-counts // step) * step


def _blocks(widths: IntArray) -> Iterator[tuple[IntArray, int]]:
    """Groups of rows of equal width, which is not 0."""
    order = np.argsort(widths, kind="stable")
    found, ends = np.unique(widths[order], return_index=True)
    for width, rows in zip(found.tolist(), np.split(order, ends)[1:], strict=True):
        step = max(1, BLOCK // max(width, 1))
        for first in range(0, rows.size if width else 0, step):
            yield rows[first : first + step], width


FLOOR = 0.1
"""The least probability of an edge, as a share of epsilon."""

_SLACK = 1.0 + 1e-12
"""Rounding allowed in the test of the theorem; at the threshold both branches give p = 1."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Per row: p_j = min(1, max(lower, scale q_j)). scale, lower: float64[I]. floored: int64[I], entries at it."""

    scale: FloatArray
    lower: FloatArray
    floored: IntArray


def water_fill(rows: SortedRows, epsilon: float) -> Filling:
    """The filling of every row for the budget epsilon n; needs 0 < epsilon < 1.

    A row whose values are all zero gets p = epsilon. Where the non-zero entries cannot use up the budget even at p = 1,
    the zero ones share the rest equally.
    """
    least = FLOOR * epsilon
    floored = rows.zeros.copy()
    scale, lower = np.zeros(floored.size), np.full(floored.size, least)
    blank = rows.zeros == rows.counts
    lower[blank], floored[blank] = epsilon, 0
    rest = epsilon * rows.counts - (rows.counts - rows.zeros)
    ample = ~blank & (rows.zeros > 0) & (rest >= least * rows.zeros)
    lower[ample] = rest[ample] / rows.zeros[ample]
    scale[ample] = _SLACK / rows.values[(rows.start + rows.zeros)[ample]].astype(np.float64)
    active = np.flatnonzero(~blank & ~ample)
    while active.size:
        scale[active] = _scale(rows, active, floored[active], epsilon)
        below = _below(rows, active, floored[active], least / scale[active])
        grew = below > floored[active]
        floored[active] = below
        active = active[grew]
    return Filling(scale, lower, floored)


def _scale(rows: SortedRows, active: IntArray, floored: IntArray, epsilon: float) -> FloatArray:
    """c_k / S_k of the rows `active` with their `floored` smallest entries fixed at the floor."""
    start, counts = rows.start[active], rows.counts[active]
    offset = epsilon * (counts - FLOOR * floored) - counts
    held = np.where(floored > 0, rows.sums[start + np.maximum(floored, 1) - 1], 0.0)

    def holds(k: IntArray) -> BoolArray:
        at = start + k - 1
        true: BoolArray = (offset + k) * rows.values[at] <= (rows.sums[at] - held) * _SLACK
        return true

    k = _last(floored + 1, counts, holds)
    result: FloatArray = (offset + k) / (rows.sums[start + k - 1] - held)
    return result


def _below(rows: SortedRows, active: IntArray, floored: IntArray, limit: FloatArray) -> IntArray:
    """How many entries of each row are below `limit`, never fewer than `floored`."""
    start = rows.start[active]

    def holds(count: IntArray) -> BoolArray:
        true: BoolArray = rows.values[start + count - 1] < limit
        return true

    return _last(floored, rows.counts[active], holds)


def _last(low: IntArray, high: IntArray, holds: Callable[[IntArray], BoolArray]) -> IntArray:
    """The largest integer in [low, high] for which `holds`, element by element, by bisection.

    `holds` is true up to some integer and false after it; it is taken to be true at `low`.
    """
    while bool(np.any(low < high)):
        middle = (low + high + 1) // 2
        true = holds(middle)
        low, high = np.where(true, middle, low), np.where(true, high, middle - 1)
    return low


INNER_PREFERENCE = 1.1
"""a_j of an inner neighbour in the minimised variance; 1 for a boundary one (PSC-GCN)."""

Rows: TypeAlias = tuple[int, int]
"""Rows first to last - 1 of a part."""


@dataclass(frozen=True, slots=True)
class Probabilities:
    """p: float32[nnz] aligned to `part.columns`, 0 < p <= 1. floored: entries raised to the least probability."""

    p: Float32Array
    floored: int = 0


class Sampler(Protocol):
    """A sampling rule prepared for one part, or only for the entries of its `rows` (first, last).

    norms: s_j >= 0 per local id, float[I + B]; None means 1 everywhere.
    """

    name: ClassVar[str]

    def __init__(self, part: Part, norms: Float32Array | None = None, rows: Rows | None = None) -> None: ...

    def probabilities(self, epsilon: float) -> Probabilities:
        """The edge probabilities at rate `epsilon` in (0, 1]; raises ScenarioError outside."""
        ...


class Full:
    """Every edge is kept; the rate and the norms have no effect."""

    name: ClassVar[str] = "full"

    def __init__(self, part: Part, norms: Float32Array | None = None, rows: Rows | None = None) -> None:
        """Prepare for `part`."""
        self._entries = _entries(part, rows).size

    def probabilities(self, epsilon: float) -> Probabilities:
        """p = 1."""
        checked_rate(epsilon)
        return _constant(self._entries, 1.0)


class Uniform:
    """Every edge with probability epsilon; the norms have no effect."""

    name: ClassVar[str] = "uniform"

    def __init__(self, part: Part, norms: Float32Array | None = None, rows: Rows | None = None) -> None:
        """Prepare for `part`."""
        self._entries = _entries(part, rows).size

    def probabilities(self, epsilon: float) -> Probabilities:
        """p = epsilon."""
        return _constant(self._entries, checked_rate(epsilon))


class VarianceReduction:
    """Edges by their share in the variance of the sampled sum (PSC-GCN, Theorem 2), q_ij = sqrt(a_j) |P_ij| s_j.

    It needs about 17 bytes per stored entry. Within a row p depends only on the ratios of q, so rows are scaled to a
    largest value of 1: norms of any magnitude are safe, and |P_ij| reduces to its factor in j.
    """

    name: ClassVar[str] = "vr"

    def __init__(self, part: Part, norms: Float32Array | None = None, rows: Rows | None = None) -> None:
        """Sort the rows of `part`; raises ValueError for norms of a wrong shape, negative or not finite."""
        first, last = rows or (0, part.inner_nodes)
        self._indptr = part.indptr[first : last + 1] - part.indptr[first]
        self._q = _relative(self._indptr, _influence(part, norms)[_entries(part, rows)])
        self._rows = sort_rows(self._indptr, self._q)

    def probabilities(self, epsilon: float) -> Probabilities:
        """The probabilities of least variance whose sum over a row of n entries is epsilon n."""
        if checked_rate(epsilon) == 1.0:
            return _constant(self._q.size, 1.0)
        filling = water_fill(self._rows, epsilon)
        p = np.empty_like(self._q)
        for first, last in row_blocks(self._indptr, BLOCK):
            entries = slice(self._indptr[first], self._indptr[last])
            p[entries] = self._clipped(filling, first, last, entries)
        return Probabilities(frozen(p), int(filling.floored.sum()))

    def _clipped(self, filling: Filling, first: int, last: int, entries: slice) -> FloatArray:
        counts = self._rows.counts[first:last]
        wanted = np.repeat(filling.scale[first:last], counts)
        wanted *= self._q[entries]
        np.maximum(wanted, np.repeat(filling.lower[first:last], counts), out=wanted)
        return np.minimum(wanted, 1.0, out=wanted)


_SAMPLERS: dict[str, type[Sampler]] = {rule.name: rule for rule in (Full, Uniform, VarianceReduction)}


def sampler(name: str) -> type[Sampler]:
    """The rule called `name` (`full`, `uniform`, `vr`); raises ScenarioError with the nearest known name."""
    if name not in _SAMPLERS:
        raise ScenarioError(f"sampler: unknown {name!r}; {nearest(name, _SAMPLERS)}")
    return _SAMPLERS[name]


def checked_rate(epsilon: float) -> float:
    """`epsilon` if it is in (0, 1]; raises ScenarioError otherwise."""
    if not 0.0 < epsilon <= 1.0:
        raise ScenarioError(f"epsilon: {epsilon:g} is outside (0, 1]")
    return epsilon


def _constant(entries: int, value: float) -> Probabilities:
    """One probability for all entries, stored once."""
    return Probabilities(np.broadcast_to(np.float32(value), (entries,)))


def _influence(part: Part, norms: Float32Array | None) -> Float32Array:
    """sqrt(a_j) s_j / sqrt(deg_j + 1) per local id, float32[I + B], with the largest norm scaled to 1."""
    degrees = np.concatenate([part.inner_degree, part.boundary_degree])
    influence: Float32Array = (1.0 / np.sqrt(degrees + 1.0)).astype(np.float32)
    influence[: part.inner_nodes] *= np.float32(np.sqrt(INNER_PREFERENCE))
    if norms is None:
        return influence
    if norms.shape != influence.shape:
        raise ValueError(f"norms of shape {norms.shape}, the part has {influence.size} local ids")
    if not bool(np.all(np.isfinite(norms) & (norms >= 0))):
        raise ValueError("norms must be finite and not negative")
    top = float(norms.max(initial=0.0))
    scaled: Float32Array = influence * (norms / top if top > 0 else norms).astype(np.float32)
    return scaled


def _relative(indptr: IntArray, q: Float32Array) -> Float32Array:
    """`q` with every row divided by its largest value; a row of zeros stays as it is."""
    counts = np.diff(indptr)
    top = np.ones(counts.size, np.float32)
    filled = counts > 0
    if q.size:
        top[filled] = np.maximum.reduceat(q, indptr[:-1][filled])
    top[top == 0] = 1
    q /= np.repeat(top, counts)
    return q


def _entries(part: Part, rows: Rows | None) -> Int32Array:
    """The columns of the entries of `rows`, or of all."""
    columns: Int32Array = part.columns if rows is None else part.columns[slice(*part.indptr[list(rows)])]
    return columns


def row_blocks(indptr: IntArray, entries: int) -> Iterator[Rows]:
    """Rows (first, last) of at most `entries` entries each, one after another; a longer row forms a separate block."""
    rows, first = indptr.size - 1, 0
    while first < rows:
        last = int(np.searchsorted(indptr, indptr[first] + entries, side="right")) - 1
        last = min(max(last, first + 1), rows)
        yield first, last
        first = last


KIND = "norms"
VERSION = 1


def write_norms(path: str | Path, norms: Float32Array, graph_hash: str) -> str:
    """Write s_j of every node, float32[N], for the graph of this content hash; return the file's content hash.

    Raises ValueError for norms that are negative or not finite, FileError when the file cannot be written.
    """
    values = np.asarray(norms, np.float32)
    wrong = _wrong(values)
    if wrong:
        raise ValueError(wrong)
    return write_sections(path, kind=KIND, version=VERSION, meta={"graph_hash": graph_hash}, arrays={"norms": values})


def read_norms(path: str | Path, graph: Graph) -> Float32Array:
    """s_j of every node of `graph`, float32[N], read-only.

    Raises FileError when the file is missing, altered, made for another graph, or holds NaN, infinite or negative
    values.
    """
    stored = read_sections(path, kind=KIND, version=VERSION)
    values = stored.arrays.get("norms")
    if values is None or values.dtype != np.float32 or values.ndim != 1:
        raise FileError(f"{path}: has no float32 section 'norms'")
    if values.size != graph.nodes:
        raise FileError(f"{path}: norms of {values.size:,} nodes, graph {graph.name} has {graph.nodes:,}")
    if stored.meta.get("graph_hash") != graph.content_hash():
        raise FileError(f"{path}: norms of another graph than {graph.name} (content hashes differ)")
    wrong = _wrong(values)
    if wrong:
        raise FileError(f"{path}: {wrong}")
    return frozen(values)


def _wrong(values: Float32Array) -> str | None:
    """What is wrong with the norms, naming the first bad node; None when all are finite and not negative."""
    bad = np.flatnonzero(wrong_values(values, AMOUNT))
    if not bad.size:
        return None
    return f"norm of node {bad[0]} is {values[bad[0]]}; allowed: {AMOUNT.allowed} ({bad.size:,} such values)"
