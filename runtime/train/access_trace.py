"""The access trace of a run: what the graphs it trained really asked for, in the format that gcnsim replays."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from pathlib import Path

import numpy as np

from gcnsim.ids import AnyArray, Float32Array, frozen
from gcnsim.partition import Part, entries_reuse
from gcnsim.trace import AccessTrace, TraceOrigin, WorkerAccess, write_trace
from runtime.exchange import SampledGraph
from runtime.train.setup import WorkerState


class TraceRecord:
    """The accesses of one worker, graph by graph."""

    def __init__(self, worker: WorkerState) -> None:
        """Nothing recorded yet."""
        self._worker = worker
        self._bits: list[AnyArray] = []
        self._edges: list[tuple[int, int]] = []
        self._reuse: Float32Array | None = None

    def add(self, drawn: object) -> None:
        """Record the graph that an iteration trained."""
        assert isinstance(drawn, SampledGraph)
        needed = np.zeros(self._worker.share.part.boundary_nodes, np.bool_)
        needed[drawn.needed] = True
        self._bits.append(np.packbits(needed, bitorder="little"))
        self._edges.append(drawn.edges)
        if self._reuse is None:
            self._reuse = _reuse(self._worker.share.part, drawn)

    def state(self) -> dict[str, AnyArray]:
        """What a checkpoint keeps: bits uint8[T, ceil(B / 8)] and edges int64[T, 2] of the graphs so far; reuse
        float32[4, W] of the first, where there is one."""
        width = -(-self._worker.share.part.boundary_nodes // 8)
        bits = np.stack(self._bits) if self._bits else np.zeros((0, width), np.uint8)
        kept: dict[str, AnyArray] = {"bits": bits, "edges": np.array(self._edges, np.int64).reshape(-1, 2)}
        return kept if self._reuse is None else kept | {"reuse": self._reuse.copy()}

    def restore(self, bits: AnyArray, edges: AnyArray, reuse: AnyArray | None) -> None:
        """Go on after what `state` gave. reuse: None of an older checkpoint; then that of the next graph counts."""
        self._bits = list(bits)
        self._edges = [(int(inner), int(cross)) for inner, cross in edges]
        self._reuse = reuse

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
        """What all workers recorded, by rank; all workers together."""
        mine, worker = self.arrays(), self._worker
        width = mine["bits"].shape[1]
        widths = [int(found[0]) for found in worker.by_rank(np.array([width]))]
        found = {name: worker.by_rank(array.ravel()) for name, array in mine.items()}
        return [
            {
                # Its rows are counted by its edges: a worker without boundary has rows of no byte.
                "bits": found["bits"][n].reshape(found["edges"][n].size // 2, widths[n]),
                "edges": found["edges"][n].reshape(-1, 2),
                **{name: found[name][n] for name in ("boundary_ptr", "inclusion", "boundary_degree", "sizes")},
                **({"reuse": found["reuse"][n].reshape(mine["reuse"].shape)} if "reuse" in mine else {}),
            }
            for n in range(worker.place.world)
        ]

    def write(self, path: str | Path, workers: list[dict[str, AnyArray]], norms: AnyArray | None) -> None:
        """Write the trace of all workers. norms: s_j of every node that the last graphs were drawn with."""
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
        accesses = tuple(
            WorkerAccess(**{name: frozen(worker[name]) for name in names if name in worker}) for worker in workers
        )
        edges = np.stack([worker["edges"] for worker in workers], axis=1)
        write_trace(path, AccessTrace(origin, accesses, frozen(edges), frozen(sizes[:, 0]), frozen(sizes[:, 1])))


def _reuse(part: Part, drawn: SampledGraph) -> Float32Array:
    """How soon the sums of a graph read rows again, float32[4, W], whatever order its boundary rows came in."""
    rows, columns = drawn.inner.rows.places
    if drawn.boundary is not None:
        row, column = drawn.boundary.rows.places
        rows = np.concatenate([rows, row])
        columns = np.concatenate([columns, part.inner_nodes + drawn.needed[column]])
    order = np.argsort(rows, kind="stable")
    return entries_reuse(rows[order], columns[order], part.inner_nodes, part.inner_nodes, part.boundary_nodes)
