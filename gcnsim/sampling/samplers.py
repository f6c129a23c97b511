"""The sampling rules: the probability with which each stored edge of a worker is kept in one drawn graph.

A rule is prepared once per part (the variance-reduction rule sorts there) and asked for as many rates as wanted; or,
where the part is too large for that, block by block of its rows, since every row has its probabilities from itself
alone. The self-loop of the GCN is outside every rule: it is always kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from gcnsim.errors import ScenarioError, nearest
from gcnsim.ids import Float32Array, FloatArray, Int32Array, IntArray, frozen
from gcnsim.partition import Part
from gcnsim.sampling.water_filling import BLOCK, Filling, sort_rows, water_fill

INNER_PREFERENCE = 1.1
"""a_j of an inner neighbour in the variance to be minimised; 1 for a boundary one (PSC-GCN)."""

Rows: TypeAlias = tuple[int, int]
"""Rows first to last - 1 of a part."""


@dataclass(frozen=True, slots=True)
class Probabilities:
    """p: float32[nnz] aligned to `part.columns`, 0 < p <= 1. floored: entries raised to the least probability."""

    p: Float32Array
    floored: int = 0


class Sampler(Protocol):
    """A sampling rule prepared for one part, or for the entries of its `rows` (first, last) alone.

    norms: s_j >= 0 per local id, float[I + B]; None means 1 everywhere.
    """

    name: ClassVar[str]

    def __init__(self, part: Part, norms: Float32Array | None = None, rows: Rows | None = None) -> None: ...

    def probabilities(self, epsilon: float) -> Probabilities:
        """The edge probabilities at rate `epsilon` in (0, 1]; raises ScenarioError outside."""
        ...


class Full:
    """Every edge, always; the rate and the norms have no effect."""

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

    Holds 16 bytes per stored entry. Within a row p depends only on the ratios of q, so rows are scaled to a largest
    value of 1: norms of any magnitude are safe, and |P_ij| reduces to its factor in j.
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
    """Rows (first, last) of at most `entries` entries each, one after another; a longer row stands alone."""
    rows, first = indptr.size - 1, 0
    while first < rows:
        last = int(np.searchsorted(indptr, indptr[first] + entries, side="right")) - 1
        last = min(max(last, first + 1), rows)
        yield first, last
        first = last
