"""The facts of a run for its `run.json`: known at its start, and more of them at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from gcnsim.ids import AnyArray, Iteration
from runtime.record import RunRecord, Summary, hardware, versions
from runtime.train.run_state import KINDS, RunState
from runtime.train.setup import backend_of


@dataclass(frozen=True)
class Outcome:
    """What only the end knows. nbytes: int64[sender, receiver, KINDS]. memory: host and device bytes (-1: none).
    tensors: of every worker, bytes by component; None: not counted."""

    nbytes: AnyArray
    memory: tuple[tuple[int, int], ...]
    hit_rate: float | None
    norms: tuple[Iteration, ...]
    tensors: tuple[Mapping[str, int], ...] | None = None


def no_outcome(workers: int) -> Outcome:
    """At the start of a run."""
    return Outcome(np.zeros((workers, workers, len(KINDS)), np.int64), ((0, -1),) * workers, None, ())


def run_record(run: RunState, outcome: Outcome, summary: Summary | None) -> RunRecord:
    """The facts of `run` as it stands; it is finished when its last iteration is done."""
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
