"""Timing one kernel (warm up, repeat until there is enough, with the garbage collector off), and its made-up inputs.

Matrices and graphs have a given size, with rows alike or a few large ones, near the diagonal or anywhere. What a
kernel's time depends on besides its size is told by numbers that can be computed of any matrix (`facts_of`), so that a
fit over these holds for real ones.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import torch

from gcnsim.core.ids import AnyArray, FloatArray, IntArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, part_of
from runtime.aggregate import Matrix, Rows, matrix_kind
from runtime.microbench.measurements import Measurement, MicrobenchRequest, TimeBudget

SEED: Final = 0
"""Of all inputs, which are the same in every run."""

APART: Final = 32 << 20
"""Bytes touched between two uses of the same rows where they shall not be in the cache of one core: as in training,
whose other work lies between."""

APART_ON_GPU: Final = 512 << 20
"""The same on a GPU: twice the largest last cache in the catalogue."""

_LEAST_S: Final = 20e-6
"""A sample shorter than this is of several calls: reading the clock costs a thousandth of it."""

_LEAST_CUDA_S: Final = 1e-3
_AWAKE: Final = 2_048

Call = Callable[[int], object]
"""A kernel; the argument counts the calls, to take buffers in turn by."""


@dataclass(frozen=True)
class Bench:
    """Where kernels are timed, and to whom it is told."""

    request: MicrobenchRequest
    device: torch.device
    tell: Callable[[Measurement], None]

    @property
    def budget(self) -> TimeBudget:
        """How thoroughly."""
        return self.request.budget

    def time(self, kernel: str, params: Mapping[str, float], call: Call) -> None:
        """Measure `call` alone on this machine and tell of it."""
        sampled = _cuda_samples if self.on_gpu else samples
        seconds = sampled(call, self.budget)
        # An iteration takes as long as all its kernels together, so what one takes on average counts, slow ones too.
        self.found(kernel, params, seconds, mean=fmean(seconds))

    def found(
        self,
        kernel: str,
        params: Mapping[str, float],
        seconds: Sequence[float],
        processes: int = 1,
        mean: float | None = None,
    ) -> None:
        """Tell of samples taken elsewhere. mean: what counts instead of their median."""
        low, middle, high = (float(value) for value in np.quantile(seconds, (0.1, 0.5, 0.9)))
        value = middle if mean is None else mean
        plain = {name: float(number) for name, number in params.items()}
        self.tell(Measurement(kernel, plain, self.request.threads, processes, value, low, high, len(seconds)))

    @property
    def on_gpu(self) -> bool:
        """Whether kernels run on a GPU, which takes larger ones."""
        return self.device.type == "cuda"

    def sets(self, nbytes: float) -> int:
        """How many buffers of `nbytes` to take in turn, so that APART bytes (APART_ON_GPU) lie between two uses."""
        return max(1, min(math.ceil(self._apart / max(nbytes, 1)), 512))

    @property
    def _apart(self) -> int:
        if self.budget.level == "tiny":
            return 1 << 16
        return APART_ON_GPU if self.on_gpu else APART

    def wake(self) -> None:
        """Keep a GPU busy for a while: one that had nothing to do runs at a low clock."""
        if not self.on_gpu:
            return
        engine: Any = torch.autograd.backward
        square = torch.ones(_AWAKE, _AWAKE, device=self.device, requires_grad=True)
        # torch warns where the first kernel of its thread of backward passes is a dense product.
        engine((square * square).sum())
        start = time.perf_counter()
        with torch.no_grad():
            while time.perf_counter() - start < self.budget.window_s:
                torch.mm(square, square)
                torch.cuda.synchronize(self.device)


@contextmanager
def no_collector() -> Iterator[None]:
    """A block in which no cycles of garbage are looked for."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def samples(call: Call, budget: TimeBudget) -> list[float]:
    """Seconds per call, at least `budget.samples` of them."""
    count = 0

    def several(calls: int) -> float:
        nonlocal count
        start = time.perf_counter()
        for i in range(count, count + calls):
            call(i)
        seconds = time.perf_counter() - start
        count += calls
        return seconds

    with no_collector():
        several(1)
        once = several(1)
        batch = max(1, math.ceil(_LEAST_S / max(once, 1e-9)))
        several(batch)
        return _enough(lambda: several(batch) / batch, budget, batch)


def _cuda_samples(call: Call, budget: TimeBudget) -> list[float]:
    """Seconds per call on the GPU's own clock, calls one after the other without waiting for any.

    A kernel that ends before the host has started the next one takes as long as that start.
    """
    cuda: Any = torch.cuda
    count = 0

    def several(calls: int) -> float:
        nonlocal count
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        for i in range(count, count + calls):
            call(i)
        end.record()
        end.synchronize()
        count += calls
        return 1e-3 * float(start.elapsed_time(end))

    with no_collector():
        several(3)
        once = several(3) / 3
        batch = max(1, math.ceil(_LEAST_CUDA_S / max(once, 1e-9)))
        return _enough(lambda: several(batch) / batch, budget, batch)


def _enough(sample: Callable[[], float], budget: TimeBudget, batch: int) -> list[float]:
    found: list[float] = []
    spent = 0.0
    while len(found) < budget.samples or spent < budget.sample_s:
        found.append(sample())
        spent += found[-1] * batch
    return found


POWER: Final = 0.6
"""The k-th largest row, and the k-th most frequent column, has a share in proportion to k^-POWER."""

BLOCKS: Final = 32
"""Entries near the diagonal stay within one of so many blocks."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A matrix to be made. skewed: a few rows and columns hold many entries. local: entries are near the diagonal."""

    entries: int
    rows: int
    columns: int
    skewed: bool = False
    local: bool = False

    def made(self) -> Rows:
        """The matrix; entries that fall together are one, so it may have a few less."""
        generator = stream(SEED, "matrix", self.entries, self.rows, self.columns, int(self.skewed), int(self.local))
        lengths = self._lengths(generator)
        row = np.repeat(np.arange(self.rows), lengths)
        place = self._positions(generator, row.size)
        if self.local:
            size = max(1, self.columns // BLOCKS)
            first = (row * BLOCKS // self.rows) * self.columns // BLOCKS
            column = np.minimum(first + (place * size).astype(np.int64), self.columns - 1)
        else:
            column = generator.permutation(self.columns)[(place * self.columns).astype(np.int64)]
        key = np.sort(row * self.columns + column)
        key = key[np.diff(key, prepend=-1) > 0]
        row, column = np.divmod(key, self.columns)
        indptr = np.searchsorted(row, np.arange(self.rows + 1))
        # As in training, weights are a factor of the row times one of the column: some kernels read none per entry.
        left, right = generator.random(self.rows) + 0.5, generator.random(self.columns) + 0.5
        return Rows(indptr, column.astype(np.int32), left[row] * right[column], self.columns, (left, right))

    def _lengths(self, generator: np.random.Generator) -> IntArray:
        lengths: IntArray
        if self.skewed:
            share = np.arange(1, self.rows + 1) ** -POWER
            exact = generator.permutation(share) * (self.entries / share.sum())
            lengths = np.minimum(np.maximum(np.round(exact), 1), self.columns).astype(np.int64)
        else:
            lengths = np.diff(np.arange(self.rows + 1) * self.entries // self.rows)
        return lengths

    def _positions(self, generator: np.random.Generator, count: int) -> FloatArray:
        """Where in its range each entry's column is, in [0, 1)."""
        uniform = generator.random(count)
        return uniform ** (1 / (1 - POWER)) if self.skewed else uniform


def matrix_of(rows: Rows, device: torch.device, aggregator: str = "plain") -> Matrix:
    """`rows` as training with `--aggregator aggregator` multiplies them."""
    return matrix_kind(aggregator)(rows, torch.float32, device)


@cache
def prepared(shape: Shape, device: torch.device, aggregator: str) -> tuple[Matrix, Mapping[str, float]]:
    """The matrix of a shape and its facts: made once, whichever kernels and rounds ask for it."""
    rows = shape.made()
    return matrix_of(rows, device, aggregator), MappingProxyType(facts_of(rows))


def facts_of(rows: Rows) -> dict[str, float]:
    """The numbers that tell one matrix from another of its size.

    skew, column_skew: deviation over mean of the entries per row, per column. locality: 1 where all entries are on the
    diagonal, 0 where they are anywhere: 1 - 3 mean |row / rows - column / columns|.
    """
    row, column = rows.places
    count = rows.indptr.size - 1
    away = np.abs((row + 0.5) / count - (column + 0.5) / rows.width)
    return {
        "entries": column.size,
        "rows": count,
        "columns": rows.width,
        "skew": _spread(np.diff(rows.indptr)),
        "column_skew": _spread(np.bincount(column, minlength=rows.width)),
        "locality": 1 - 3 * float(away.mean()) if away.size else 0.0,
    }


def _spread(counts: AnyArray) -> float:
    mean = float(counts.mean())
    return float(counts.std()) / mean if mean else 0.0


def made_rows(rows: int, width: int, device: torch.device, *names: str | int) -> torch.Tensor:
    """Normal values, float32[rows, width]."""
    if device.type == "cuda":
        # The GPU itself makes them: so many are slow to draw on the host.
        return torch.randn(rows, width, device=device, generator=torch.Generator(device).manual_seed(SEED))
    generator = stream(SEED, "rows", rows, width, *names)
    return torch.from_numpy(generator.standard_normal((rows, width), dtype=np.float32)).to(device)


def made_graph(nodes: int, entries: int) -> Graph:
    """A graph of about `entries` stored entries, skewed, most edges near the diagonal."""
    half = Shape(entries // 2, nodes, nodes, skewed=True, local=True).made()
    far = Shape(entries // 8, nodes, nodes, skewed=True).made()
    ends = [np.concatenate(pair) for pair in zip(half.places, far.places, strict=True)]
    return build_csr(ends[0], ends[1], nodes, "made")


def made_part(nodes: int, entries: int) -> Part:
    """Worker 0's part of such a graph in four blocks."""
    graph = made_graph(nodes, entries)
    return part_of(graph, partition_graph(graph, 4, "block", "vol", 0), 0)


def saved_graph(folder: Path, nodes: int, entries: int) -> tuple[str, Graph]:
    """A made-up graph as a file that training reads, and the graph."""
    graph = made_graph(nodes, entries)
    path = folder / f"made-{nodes}-{entries}.npz"
    np.savez(path, allow_pickle=False, indptr=graph.indptr, indices=graph.indices)
    return str(path), graph
