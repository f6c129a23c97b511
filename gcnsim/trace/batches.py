"""The trace of mini-batches: which input rows every batch of every worker read, and the sizes of its layers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.container import Sections, read_sections, section_of, write_sections
from gcnsim.core.errors import FileError
from gcnsim.core.fields import COUNT, check_values
from gcnsim.core.ids import AnyArray, ByteArray, Int32Array, IntArray, frozen
from gcnsim.trace.counts import BatchCounts, Store, batch_counts

KIND: Final = "batch-trace"
VERSION: Final = 1

MOST_PER_EPOCH: Final = 2**31 - 1

_ORIGIN: Final[dict[str, type]] = {"graph_name": str, "graph_hash": str, "method": str, "seed": int, "per_epoch": int}


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """The origin of the batches. method: their method. per_epoch: iterations of an epoch."""

    graph_name: str
    graph_hash: str
    method: str
    seed: int
    per_epoch: int


@dataclass(frozen=True, slots=True)
class BatchTrace:
    """T iterations of P workers on N nodes and L layers.

    levels, entries, looked: as in `BatchCounts`. inputs: per worker uint8[T, ceil(N / 8)]; bit k of row t
    (little-endian within a byte): batch t reads the input row of node k. held: per worker uint8[ceil(N / 8)], the rows
    in its cache. stored: int64[P], rows that a worker's batches may request. owner: int32[N], the worker that stores
    each node's row; None: every worker stores all.
    """

    origin: BatchOrigin
    nodes: int
    levels: IntArray
    entries: IntArray
    looked: IntArray
    inputs: tuple[ByteArray, ...]
    held: tuple[ByteArray, ...]
    stored: IntArray
    owner: Int32Array | None = None

    @property
    def iterations(self) -> int:
        """T."""
        return int(self.levels.shape[0])

    @property
    def workers(self) -> int:
        """P."""
        return len(self.inputs)

    def read_by(self, rank: int, t: int) -> IntArray:
        """The nodes whose input rows worker `rank` read in iteration t, int64, ascending."""
        return np.flatnonzero(np.unpackbits(self.inputs[rank][t], count=self.nodes, bitorder="little"))

    def counts(self) -> BatchCounts:
        """The counts of these batches for a simulation."""
        read = [[self.read_by(rank, t) for rank in range(self.workers)] for t in range(self.iterations)]
        masks = [np.unpackbits(held, count=self.nodes, bitorder="little").astype(np.bool_) for held in self.held]
        cached = tuple(masks) if any(mask.any() for mask in masks) else ()
        return batch_counts(
            read, self.levels, self.entries, self.looked, Store(self.owner, cached, self.stored), self.origin.per_epoch
        )


def write_batch_trace(path: str | Path, trace: BatchTrace) -> str:
    """Write `trace` to `path` atomically; return its content hash. Raises FileError if it cannot be written."""
    arrays: dict[str, AnyArray] = {
        "levels": trace.levels,
        "entries": trace.entries,
        "looked": trace.looked,
        "stored": trace.stored,
        **({} if trace.owner is None else {"owner": trace.owner}),
        **{f"worker{rank}.inputs": bits for rank, bits in enumerate(trace.inputs)},
        **{f"worker{rank}.held": bits for rank, bits in enumerate(trace.held)},
    }
    meta = {"origin": asdict(trace.origin), "workers": trace.workers, "nodes": trace.nodes}
    return write_sections(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


def read_batch_trace(path: str | Path) -> BatchTrace:
    """Read the trace at `path`, memory-mapped, and check that its sections are consistent.

    Raises FileError if the file is missing, truncated, altered, of another kind, or inconsistent.
    """
    stored = read_sections(path, kind=KIND, version=VERSION)
    workers, nodes = (_number(path, stored, name) for name in ("workers", "nodes"))
    levels = _counted(path, stored, "levels", 3)
    iterations, _, deep = levels.shape
    if iterations < 1 or deep < 2 or levels.shape[1] != workers:
        raise FileError(f"{path}: section 'levels' has shape {levels.shape}, wanted (1 or more, {workers}, 2 or more)")
    entries = _counted(path, stored, "entries", 3, (iterations, workers, deep - 1))
    looked = _counted(path, stored, "looked", 2, (iterations, workers))
    own = _counted(path, stored, "stored", 1, (workers,))
    width = -(-nodes // 8)
    inputs = tuple(_bits(path, stored, f"worker{n}.inputs", nodes, (iterations, width)) for n in range(workers))
    held = tuple(_bits(path, stored, f"worker{n}.held", nodes, (width,)) for n in range(workers))
    for rank, bits in enumerate(inputs):
        if not np.array_equal(np.bitwise_count(bits).sum(axis=1, dtype=np.int64), levels[:, rank, 0]):
            raise FileError(f"{path}: section 'worker{rank}.inputs' has other numbers of rows than 'levels'")
    owner = None
    if "owner" in stored.arrays:
        owner = section_of(path, stored, "owner", "<i4", 1, (nodes,))
        if ((owner < 0) | (owner >= workers)).any():
            raise FileError(f"{path}: section 'owner' names workers other than 0 to {workers - 1}")
    return BatchTrace(
        _origin(path, stored.meta.get("origin")), nodes, levels, entries, looked, inputs, held, own, owner
    )


def packed(mask: AnyArray) -> ByteArray:
    """bool[..., N] as bits, little-endian within a byte."""
    return frozen(np.packbits(mask, axis=-1, bitorder="little"))


def _number(path: str | Path, stored: Sections, name: str) -> int:
    value = stored.meta.get(name)
    if type(value) is not int or value < 1:
        raise FileError(f"{path}: {name} is {value!r}; allowed: 1 or more")
    return value


def _counted(
    path: str | Path, stored: Sections, name: str, ndim: int, shape: tuple[int, ...] | None = None
) -> AnyArray:
    array = section_of(path, stored, name, "<i8", ndim, shape)
    check_values(array, COUNT, f"{path}: section {name!r}")
    return array


def _bits(path: str | Path, stored: Sections, name: str, nodes: int, shape: tuple[int, ...]) -> AnyArray:
    bits = section_of(path, stored, name, "|u1", len(shape), shape)
    if nodes % 8 and (bits[..., -1] >> (nodes % 8)).any():
        raise FileError(f"{path}: section {name!r} names nodes beyond the last, {nodes - 1}")
    return bits


def _origin(path: str | Path, stored: Any) -> BatchOrigin:
    if not isinstance(stored, dict) or stored.keys() != _ORIGIN.keys():
        raise FileError(f"{path}: origin is incomplete; wanted {', '.join(_ORIGIN)}")
    for name, kind in _ORIGIN.items():
        if type(stored[name]) is not kind:
            raise FileError(f"{path}: origin.{name} is {stored[name]!r}, wanted {kind.__name__}")
    if not 1 <= stored["per_epoch"] <= MOST_PER_EPOCH:
        raise FileError(f"{path}: origin.per_epoch is {stored['per_epoch']}; allowed: 1 to {MOST_PER_EPOCH:,}")
    return BatchOrigin(**stored)
