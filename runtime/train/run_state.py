"""How far one worker's run is: what a checkpoint saves, what `run.json` tells, and what a session moves on."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from gcnsim.ids import AnyArray, IntArray, Iteration
from runtime.methods.batches.worker import BatchWorker
from runtime.record import IterationRow, RunFolder
from runtime.train.access_trace import TraceRecord
from runtime.train.batch_trace import BatchTraceRecord
from runtime.train.evaluate import Scores
from runtime.train.preflight import out_folder
from runtime.train.setup import WorkerState

KINDS: Final = ("rows", "gradients", "ids", "norms", "cache")
"""Payloads that are counted apart, per ordered pair of workers."""

NONE: Final = Scores(None, None, None)


class RunState:
    """One worker's run as it stands; only worker 0 (`first`) has a `folder` to write to.

    begun: the iteration this process starts with; done: iterations done, those before it included. start: the
    checkpoint it goes on from. rows: of all iterations, as far as they are known. drawn: rows that caches held, and
    rows asked for. normed, saved: iterations whose norms, whose checkpoints are written.
    """

    def __init__(self, worker: WorkerState) -> None:
        """Before the first iteration; all workers together."""
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
        """Write the norms measured since this was called last; all workers together."""
        for t, inner in sorted(self._norms.items()):
            whole = self.worker.whole(inner)
            if self.folder is not None:
                self.folder.write_norms(t, whole, self.worker.partitioning.graph_hash)
            self.normed.append(t)
        self._norms.clear()


def trace_of(worker: WorkerState) -> TraceRecord | BatchTraceRecord:
    """What records the accesses of the worker's method."""
    method = worker.method
    return BatchTraceRecord(worker, method) if isinstance(method, BatchWorker) else TraceRecord(worker)
