"""The access trace of a run on mini-batches: which input rows they read, in the format of `gcnsim.trace`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gcnsim.ids import AnyArray, frozen
from gcnsim.trace import BatchOrigin, BatchTrace, packed, write_batch_trace
from runtime.exchange import LoadedBatch
from runtime.methods.batches.worker import BatchWorker
from runtime.train.setup import WorkerState


class BatchTraceRecord:
    """The batches of one worker, iteration by iteration. sizes: levels, entries and entries looked at of each."""

    def __init__(self, worker: WorkerState, method: BatchWorker) -> None:
        """Nothing recorded yet."""
        self._worker, self._method = worker, method
        self._bits: list[AnyArray] = []
        self._sizes: list[AnyArray] = []

    def add(self, batch: object) -> None:
        """Record the batch that an iteration trained."""
        assert isinstance(batch, LoadedBatch)
        read = np.zeros(self._worker.graph.nodes, np.bool_)
        read[batch.graph.nodes] = True
        self._bits.append(packed(read))
        drawn = batch.graph.drawn
        self._sizes.append(np.array([*(level.size for level in drawn.levels), *drawn.entries, drawn.looked], np.int64))

    def state(self) -> dict[str, AnyArray]:
        """What a checkpoint keeps: bits uint8[T, ceil(N / 8)] of the rows read, and sizes int64[T, 2 L + 2]."""
        layers, width = len(self._worker.network.widths) - 1, -(-self._worker.graph.nodes // 8)
        bits = np.stack(self._bits) if self._bits else np.zeros((0, width), np.uint8)
        return {"bits": bits, "edges": np.array(self._sizes, np.int64).reshape(-1, 2 * layers + 2)}

    def restore(self, bits: AnyArray, edges: AnyArray, reuse: AnyArray | None) -> None:
        """Go on after what `state` gave."""
        self._bits, self._sizes = list(bits), list(edges)

    def gathered(self) -> list[dict[str, AnyArray]]:
        """What all workers recorded, by rank; all workers together."""
        worker, kept, state = self._worker, self._method.kept(), self.state()
        found = {
            "bits": worker.by_rank(state["bits"]),
            "sizes": worker.by_rank(state["edges"]),
            "held": worker.by_rank(packed(kept.held)),
            "stored": worker.by_rank(np.array([kept.stored], np.int64)),
        }
        return [{name: arrays[rank] for name, arrays in found.items()} for rank in range(worker.place.world)]

    def write(self, path: str | Path, workers: list[dict[str, AnyArray]], norms: AnyArray | None) -> None:
        """Write the trace of all workers; there are no norms."""
        worker, layers = self._worker, len(self._worker.network.widths) - 1
        partitioning = worker.partitioning
        sizes = np.stack([each["sizes"] for each in workers], axis=1)
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
            tuple(frozen(each["bits"]) for each in workers),
            tuple(frozen(each["held"]) for each in workers),
            frozen(np.concatenate([each["stored"] for each in workers])),
            self._method.kept().owner,
        )
        write_batch_trace(path, trace)
