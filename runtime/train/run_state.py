"""The state of one worker's run: saved by checkpoints, recorded in `run.json`, and advanced by a session.

The access trace contains the rows that the trained graphs really requested, or the input rows that the mini-batches
read. It has the format of `gcnsim.trace`, which replays it.

`run_record` builds the contents of `run.json`, at the start and at the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

import numpy as np
import torch

from gcnsim.core.ids import AnyArray, IntArray, Iteration, frozen
from gcnsim.trace import (
    AccessTrace,
    BatchOrigin,
    BatchTrace,
    TraceOrigin,
    WorkerAccess,
    packed,
    write_batch_trace,
    write_trace,
)
from runtime.exchange import LoadedBatch, SampledGraph
from runtime.methods.batches.worker import BatchWorker
from runtime.record import IterationRow, RunFolder, RunRecord, Summary, hardware, versions
from runtime.train.evaluate import Scores
from runtime.train.preflight import out_folder
from runtime.train.setup import WorkerState, backend_of


class TraceRecord:
    """The accesses of one worker, graph by graph."""

    def __init__(self, worker: WorkerState) -> None:
        """An empty record."""
        self._worker = worker
        self._bits: list[AnyArray] = []
        self._edges: list[tuple[int, int]] = []

    def add(self, graph: object) -> None:
        """Record the graph that an iteration trained."""
        assert isinstance(graph, SampledGraph)
        needed = np.zeros(self._worker.share.part.boundary_nodes, np.bool_)
        needed[graph.needed] = True
        self._bits.append(np.packbits(needed, bitorder="little"))
        self._edges.append(graph.edges)

    def state(self) -> dict[str, AnyArray]:
        """What a checkpoint keeps: bits uint8[T, ceil(B / 8)] and edges int64[T, 2] of the graphs so far."""
        width = -(-self._worker.share.part.boundary_nodes // 8)
        bits = np.stack(self._bits) if self._bits else np.zeros((0, width), np.uint8)
        return {"bits": bits, "edges": np.array(self._edges, np.int64).reshape(-1, 2)}

    def restore(self, bits: AnyArray, edges: AnyArray) -> None:
        """Go on after what `state` gave."""
        self._bits = list(bits)
        self._edges = [(int(inner), int(cross)) for inner, cross in edges]

    def arrays(self) -> dict[str, AnyArray]:
        """This worker's sections of the trace: see `WorkerAccess`; and its edges, nodes and entries."""
        part = self._worker.share.part
        state = self.state()
        return {
            **state,
            "boundary_ptr": part.boundary_ptr,
            "inclusion": self._worker.method.inclusion(),
            "boundary_degree": part.boundary_degree.astype(np.uint32),
            "sizes": np.array([part.inner_nodes, part.entries, self._worker.method.floored()], np.int64),
        }

    def gathered(self) -> list[dict[str, AnyArray]]:
        """The records of all workers, by rank; all workers call it together."""
        mine, worker = self.arrays(), self._worker
        width = mine["bits"].shape[1]
        widths = [int(found[0]) for found in worker.by_rank(np.array([width]))]
        found = {name: worker.by_rank(array.ravel()) for name, array in mine.items()}
        return [
            {
                # The number of graphs comes from its edges: a worker without boundary has empty rows.
                "bits": found["bits"][n].reshape(found["edges"][n].size // 2, widths[n]),
                "edges": found["edges"][n].reshape(-1, 2),
                **{name: found[name][n] for name in ("boundary_ptr", "inclusion", "boundary_degree", "sizes")},
            }
            for n in range(worker.place.world)
        ]

    def write(self, path: str | Path, workers: list[dict[str, AnyArray]], norms: AnyArray | None) -> None:
        """Write the trace of all workers. norms: s_j of every node behind the last graphs."""
        method, partitioning = self._worker.method, self._worker.partitioning
        sizes = np.stack([worker["sizes"] for worker in workers])
        digest = None if norms is None else hashlib.sha256(np.ascontiguousarray(norms, "<f4").tobytes()).hexdigest()
        origin = TraceOrigin(
            graph_name=partitioning.graph_name,
            graph_hash=partitioning.graph_hash,
            partition_method=partitioning.method,
            partition_seed=partitioning.seed,
            sampler=method.sampler(),
            epsilon=method.rate(),
            seed=self._worker.options.seed,
            norms_hash=digest,
            floored=int(sizes[:, 2].sum()),
        )
        names = [field.name for field in fields(WorkerAccess)]
        accesses = tuple(WorkerAccess(**{name: frozen(worker[name]) for name in names}) for worker in workers)
        edges = np.stack([worker["edges"] for worker in workers], axis=1)
        write_trace(path, AccessTrace(origin, accesses, frozen(edges), frozen(sizes[:, 0]), frozen(sizes[:, 1])))


class BatchTraceRecord:
    """The batches of one worker, iteration by iteration. sizes: levels, entries and entries read of each."""

    def __init__(self, worker: WorkerState, method: BatchWorker) -> None:
        """An empty record."""
        self._worker, self._method = worker, method
        self._bits: list[AnyArray] = []
        self._sizes: list[AnyArray] = []

    def add(self, batch: object) -> None:
        """Record the batch that an iteration trained."""
        assert isinstance(batch, LoadedBatch)
        read = np.zeros(self._worker.graph.nodes, np.bool_)
        read[batch.graph.nodes] = True
        self._bits.append(packed(read))
        sampled = batch.graph.drawn
        self._sizes.append(
            np.array([*(level.size for level in sampled.levels), *sampled.entries, sampled.looked], np.int64)
        )

    def state(self) -> dict[str, AnyArray]:
        """The record for a checkpoint: bits uint8[T, ceil(N / 8)] of the rows read, and sizes int64[T, 2 L + 2]."""
        layers, width = len(self._worker.network.widths) - 1, -(-self._worker.graph.nodes // 8)
        bits = np.stack(self._bits) if self._bits else np.zeros((0, width), np.uint8)
        return {"bits": bits, "edges": np.array(self._sizes, np.int64).reshape(-1, 2 * layers + 2)}

    def restore(self, bits: AnyArray, edges: AnyArray) -> None:
        """Continue after the result of `state`."""
        self._bits, self._sizes = list(bits), list(edges)

    def gathered(self) -> list[dict[str, AnyArray]]:
        """The records of all workers, by rank; all workers call it together."""
        worker, counts, state = self._worker, self._method.kept(), self.state()
        found = {
            "bits": worker.by_rank(state["bits"]),
            "sizes": worker.by_rank(state["edges"]),
            "held": worker.by_rank(packed(counts.held)),
            "stored": worker.by_rank(np.array([counts.stored], np.int64)),
        }
        return [{name: arrays[rank] for name, arrays in found.items()} for rank in range(worker.place.world)]

    def write(self, path: str | Path, workers: list[dict[str, AnyArray]], norms: AnyArray | None) -> None:
        """Write the trace of all workers; there are no norms."""
        worker, layers = self._worker, len(self._worker.network.widths) - 1
        partitioning = worker.partitioning
        sizes = np.stack([entry["sizes"] for entry in workers], axis=1)
        origin = BatchOrigin(
            graph_name=partitioning.graph_name,
            graph_hash=partitioning.graph_hash,
            method=worker.options.method,
            seed=worker.options.seed,
            per_epoch=self._method.source.draws.epoch,
        )
        trace = BatchTrace(
            origin,
            worker.graph.nodes,
            frozen(sizes[:, :, : layers + 1]),
            frozen(sizes[:, :, layers + 1 : 2 * layers + 1]),
            frozen(sizes[:, :, -1]),
            tuple(frozen(entry["bits"]) for entry in workers),
            tuple(frozen(entry["held"]) for entry in workers),
            frozen(np.concatenate([entry["stored"] for entry in workers])),
            self._method.kept().owner,
        )
        write_batch_trace(path, trace)


KINDS: Final = ("rows", "gradients", "ids", "norms", "cache")
"""Kinds of traffic that are counted separately, per ordered pair of workers."""

NONE: Final = Scores(None, None, None)


class RunState:
    """The state of one worker's run; only worker 0 (`first`) has a `folder` to write to.

    begun: the first iteration of this process; done: finished iterations, including earlier processes. start: the
    checkpoint it continues from. rows: of all iterations, as far as known. drawn: cached rows and requested rows.
    normed, saved: iterations with written norms and written checkpoints.
    """

    def __init__(self, worker: WorkerState) -> None:
        """The state before the first iteration; all workers call it together."""
        self.worker, self.options = worker, worker.options
        self.first = worker.place.rank == 0
        self.out = out_folder(self.options)
        self.start: Path | None = None
        self.folder: RunFolder | None = None
        self.begun: Iteration = 0
        self.done: Iteration = 0
        self.rows: list[IterationRow] = []
        self.best = self.scores = NONE
        self.evaluation_s = 0.0
        self.normed: list[Iteration] = []
        self.saved: list[Iteration] = []
        self.stopped = False
        self.cached = worker.method.caches
        self.drawn: tuple[int, int] = (0, 0)
        self.sent_before: AnyArray = np.zeros((worker.place.world, len(KINDS)), np.int64)
        self.trace = trace_of(worker) if self.options.record or self.options.save_trace is not None else None
        self.names = {weight: name for name, weight in worker.network.named_parameters()}
        self._norms: dict[Iteration, AnyArray] = {}
        part = worker.share.part
        sizes = worker.by_rank(np.array([part.inner_nodes, part.boundary_nodes], np.int64))
        self.inner = tuple(int(found[0]) for found in sizes)
        self.boundary = tuple(int(found[1]) for found in sizes)

    def sent(self) -> IntArray:
        """Bytes this worker sent in the whole run, int64[world, KINDS]."""
        table: IntArray = self.sent_before.copy()
        for (peer, kind), nbytes in self.worker.method.bytes_sent().items():
            table[peer, KINDS.index(kind)] += nbytes
        return table

    def keep_norms(self) -> None:
        """Write the norms measured since the last call; all workers call it together."""
        for t, inner in sorted(self._norms.items()):
            whole = self.worker.whole(inner)
            if self.folder is not None:
                self.folder.write_norms(t, whole, self.worker.partitioning.graph_hash)
            self.normed.append(t)
        self._norms.clear()


def trace_of(worker: WorkerState) -> TraceRecord | BatchTraceRecord:
    """The recorder for the accesses of the worker's method."""
    method = worker.method
    return BatchTraceRecord(worker, method) if isinstance(method, BatchWorker) else TraceRecord(worker)


@dataclass(frozen=True)
class Outcome:
    """The results known only at the end. nbytes: int64[sender, receiver, KINDS]. memory: host and device bytes (-1:
    none). tensors: of every worker, bytes by component; None: not counted.
    """

    nbytes: AnyArray
    memory: tuple[tuple[int, int], ...]
    hit_rate: float | None
    norms: tuple[Iteration, ...]
    tensors: tuple[Mapping[str, int], ...] | None = None


def no_outcome(workers: int) -> Outcome:
    """The results at the start of a run."""
    return Outcome(np.zeros((workers, workers, len(KINDS)), np.int64), ((0, -1),) * workers, None, ())


def run_record(run: RunState, outcome: Outcome, summary: Summary | None) -> RunRecord:
    """The facts of `run` so far; it is finished after its last iteration."""
    worker, options = run.worker, run.options
    return RunRecord(
        versions=versions(),
        hardware=hardware(worker.device.type == "cuda"),
        emulation=worker.emulation,
        backend=backend_of(options),
        options=options.asdict(),
        seed=options.seed,
        workers=worker.place.world,
        graph={"name": worker.partitioning.graph_name, "hash": worker.partitioning.graph_hash},
        partition={"method": worker.partitioning.method, "hash": worker.partitioning.owner_hash},
        inner=run.inner,
        boundary=run.boundary,
        widths=tuple(worker.network.widths),
        parameters=sum(weight.numel() for weight in worker.network.parameters()),
        iterations=run.done,
        finished=run.done >= options.iterations,
        bytes={kind: _table(outcome.nbytes[:, :, k]) for k, kind in enumerate(KINDS)},
        hit_rate=outcome.hit_rate,
        peak_memory=tuple(
            {"host_bytes": host, "device_bytes": None if device < 0 else device} for host, device in outcome.memory
        ),
        accuracy={"train": run.best.train, "val": run.best.val, "test": run.best.test},
        norms=outcome.norms,
        summary=None if summary is None else summary.asdict(),
        tensors=outcome.tensors,
        threads=torch.get_num_threads(),
    )


def _table(matrix: AnyArray) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(value) for value in row) for row in matrix)
