"""The end of a run: what every worker knows is brought together, written by worker 0, and said in one object."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from gcnsim.ids import AnyArray
from gcnsim.timeline import Timeline
from runtime.facts import KINDS, Known, run_record
from runtime.record import Summary, from_arrays, merge, peak_memory, summarise, to_arrays
from runtime.session import Session, by_rank
from runtime.traces import TraceRecord


class Ending:
    """Everything gathered; every rank must make one at the same time."""

    def __init__(self, session: Session, origin_ns: int, offset_ns: int) -> None:
        """Gather spans, bytes, memory, norms and accesses of all workers. origin_ns: start of the run."""
        ready, self._session = session.ready, session
        self._ready = ready
        self._timeline: Timeline | None = None
        if session.options.record:
            arrays = to_arrays(ready.recorder.timeline(origin_ns, offset_ns))
            columns = {name: by_rank(ready, array) for name, array in arrays.items()}
            self._timeline = merge(
                [from_arrays({name: found[n] for name, found in columns.items()}) for n in range(ready.place.world)]
            )
        self._bytes = np.stack([table.reshape(-1, len(KINDS)) for table in by_rank(ready, self._sent())])
        memory = peak_memory(ready.device.type == "cuda")
        pair = np.array([memory["host_bytes"] or 0, memory["device_bytes"] or -1], np.int64)
        self._memory = [found.tolist() for found in by_rank(ready, pair)]
        self._hits = [found.tolist() for found in by_rank(ready, np.array(session.drawn, np.int64))]
        self._inner = by_rank(ready, ready.share.part.inner)
        self._norms = {t: self._whole(norms) for t, norms in sorted(session.norms.items())}
        self._trace: list[dict[str, AnyArray]] | None = None
        if session.trace is not None:
            self._trace = self._accesses(session.trace)

    def summary(self) -> Summary | None:
        """Where the time of this process's iterations went; None without a record or without any iteration."""
        rows = [row for row in self._session.rows if row.iteration >= self._session.begun]
        if self._timeline is None or not rows:
            return None
        return summarise(
            self._timeline,
            [row.seconds for row in rows],
            workers=self._ready.place.world,
            warmup=self._session.options.warmup,
            first=self._session.begun,
        )

    def write(self, summary: Summary | None) -> None:
        """Write the run folder and the trace; worker 0 alone."""
        session = self._session
        if session.trace is not None and self._trace is not None and session.options.save_trace is not None:
            last = self._norms[max(self._norms)] if self._norms else None
            session.trace.write(session.options.save_trace, self._trace, last)
        if session.folder is None:
            return
        for t, norms in self._norms.items():
            session.folder.write_norms(t, norms, self._ready.partitioning.graph_hash)
        if self._timeline is not None:
            about = {"method": session.options.method, "seed": str(session.options.seed), "measured": "yes"}
            session.folder.write_timeline(self._timeline, about)
        session.folder.write_iterations(session.rows)
        known = Known(self._bytes, tuple(self._memory), self._hit_rate(), tuple(self._norms))
        session.folder.write_record(run_record(session, known, summary))

    def final(self, summary: Summary | None, started: float) -> dict[str, Any]:
        """The final object (docs/cli.md). started: when the run began, by `time.perf_counter`."""
        session, rows = self._session, self._session.rows
        shares = None if summary is None else summary.shares
        seconds = [row.seconds for row in rows]
        return {
            "method": session.options.method,
            "workers": self._ready.place.world,
            "iterations": len(rows),
            "test_accuracy": session.best.test,
            "val_accuracy": session.best.val,
            "final_loss": rows[-1].loss if rows else None,
            "iteration_s": float(np.median(seconds)) if summary is None and rows else summary and summary.iteration_s,
            "compute_s": shares and shares.compute_s,
            "wait_s": shares and shares.wait_s,
            "transfer_s": shares and shares.transfer_s,
            "sampling_s": shares and shares.sampling_s,
            "reduce_s": shares and shares.reduce_s,
            "optimizer_s": shares and shares.optimizer_s,
            "pack_s": shares and shares.pack_s + shares.unpack_s,
            "bytes_sent": int(self._bytes.sum()),
            "cache_hit_rate": self._hit_rate(),
            "evaluation_s": session.evaluation_s,
            "seconds": time.perf_counter() - started,
        }

    def _hit_rate(self) -> float | None:
        asked = sum(int(rows) for _, rows in self._hits)
        if not self._session.cached or not asked:
            return None
        return sum(int(hits) for hits, _ in self._hits) / asked

    def _sent(self) -> AnyArray:
        """Bytes this worker sent, int64[world, kinds]."""
        table = np.zeros((self._ready.place.world, len(KINDS)), np.int64)
        for (peer, kind), nbytes in self._ready.method.bytes_sent().items():
            table[peer, KINDS.index(kind)] += nbytes
        return table

    def _whole(self, inner: AnyArray) -> AnyArray:
        """Values of every node, float32[N], from everyone's values of inner nodes."""
        whole = np.empty(self._ready.graph.nodes, np.float32)
        for nodes, values in zip(self._inner, by_rank(self._ready, inner.astype(np.float32)), strict=True):
            whole[nodes] = values
        return whole

    def _accesses(self, trace: TraceRecord) -> list[dict[str, AnyArray]]:
        mine = trace.arrays()
        width = mine["bits"].shape[1]
        widths = [int(found[0]) for found in by_rank(self._ready, np.array([width]))]
        found = {name: by_rank(self._ready, array.ravel()) for name, array in mine.items()}
        return [
            {
                "bits": found["bits"][n].reshape(-1, widths[n]),
                "edges": found["edges"][n].reshape(-1, 2),
                **{name: found[name][n] for name in ("boundary_ptr", "inclusion", "boundary_degree", "sizes")},
            }
            for n in range(self._ready.place.world)
        ]
