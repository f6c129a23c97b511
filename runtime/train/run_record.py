"""The facts of a run for its `run.json`: known at its start, and more of them at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from gcnsim.ids import AnyArray, Iteration
from runtime.emulation import Emulation
from runtime.record import RunRecord, Summary, hardware, versions
from runtime.train.setup import backend_of, owner_hash

if TYPE_CHECKING:
    from runtime.train.session import Session

KINDS = ("rows", "gradients", "ids", "norms", "cache")
"""Payloads that are counted apart, per ordered pair of workers."""


@dataclass(frozen=True)
class Known:
    """What only the end knows. nbytes: int64[sender, receiver, KINDS]. memory: host and device bytes (-1: none).
    tensors: of every worker, bytes by component; None: not counted."""

    nbytes: AnyArray
    memory: tuple[tuple[int, int], ...]
    hit_rate: float | None
    norms: tuple[Iteration, ...]
    tensors: tuple[Mapping[str, int], ...] | None = None


def nothing_yet(workers: int) -> Known:
    """At the start of a run."""
    return Known(np.zeros((workers, workers, len(KINDS)), np.int64), ((0, -1),) * workers, None, ())


def run_record(session: Session, known: Known, summary: Summary | None) -> RunRecord:
    """The facts of `session` as it stands; it is finished when its last iteration is done."""
    ready, options = session.ready, session.options
    emulation = Emulation.here()
    return RunRecord(
        versions=versions(),
        hardware=hardware(ready.device.type == "cuda"),
        emulation=None if emulation is None else emulation.asdict(),
        backend=backend_of(options),
        options=options.asdict(),
        seed=options.seed,
        workers=ready.place.world,
        graph={"name": ready.partitioning.graph_name, "hash": ready.partitioning.graph_hash},
        partition={"method": ready.partitioning.method, "hash": owner_hash(ready.partitioning)},
        inner=session.inner,
        boundary=session.boundary,
        widths=tuple(ready.network.widths),
        parameters=sum(weight.numel() for weight in ready.network.parameters()),
        iterations=session.done,
        finished=session.done >= options.iterations,
        bytes={kind: _table(known.nbytes[:, :, k]) for k, kind in enumerate(KINDS)},
        hit_rate=known.hit_rate,
        peak_memory=tuple(
            {"host_bytes": host, "device_bytes": None if device < 0 else device} for host, device in known.memory
        ),
        accuracy={"train": session.best.train, "val": session.best.val, "test": session.best.test},
        norms=known.norms,
        summary=None if summary is None else summary.asdict(),
        tensors=known.tensors,
        threads=torch.get_num_threads(),
    )


def _table(matrix: AnyArray) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(value) for value in row) for row in matrix)
