"""Case of workers that train on CPU cores, from those of the small run, and what an iteration of them takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.engine import simulate
from gcnsim.hardware import Figure
from gcnsim.hardware.link_specs import LinkSpec
from gcnsim.hardware.topology import build_cluster
from gcnsim.schedule import Schedule
from gcnsim.timeline import PS_PER_S
from gcnsim.trace.counts import BatchCounts
from gcnsim.workload import NO_DROPOUT
from tests.cases import Case

MESSAGE_S = 2e-5


def _figure(value: float) -> Figure:
    return Figure(value, "assumed", "chosen for a test", "2026", value, value)


@pytest.fixture(scope="session")
def on_cores(facts: Callable[..., Case]) -> Callable[..., Case]:
    """The small run on CPU cores: a message takes 20 us of a core at either end, a byte 1 ns."""

    def make(
        *,
        workers: int = 4,
        per_server: int = 2,
        nic: float = 1e9,
        cores: float = 4.0,
        shared: bool = False,
        overlap: bool = False,
        norm: bool = True,
        dropout: str = NO_DROPOUT,
        tau: int = 0,
        sampled: bool = False,
        **more: float,
    ) -> Case:
        given = facts(workers=workers, per_server=per_server, tau=tau, sampled=sampled, **more)
        cluster = build_cluster(
            gpus=workers,
            gpus_per_server=per_server,
            pcie=LinkSpec(10e9),
            nic=LinkSpec(nic, 5e-5),
            memory=LinkSpec(10e9, 1e-6),
            cores=LinkSpec(cores),
            shared_cores=shared,
        )
        device = replace(given.device, kind="cpu")
        host = replace(given.host, message_s=_figure(MESSAGE_S))
        return replace(given, cluster=cluster, device=device, host=host, overlap=overlap, norm=norm, dropout=dropout)

    return make


@pytest.fixture(scope="session")
def pace() -> Callable[..., float]:
    """Mean seconds of the later half of `iterations`, from the last worker's end to the last worker's end."""

    def seconds(schedule: Schedule, iterations: int = 8) -> float:
        ends = simulate(schedule, iterations).ends[:, list(schedule.ends)].max(axis=1)
        half = iterations // 2
        return float(ends[-1] - ends[half - 1]) / (iterations - half) / PS_PER_S

    return seconds


@pytest.fixture(scope="session")
def batched(facts: Callable[..., Case]) -> Callable[..., Case]:
    """Case of mini-batches: of 100 nodes, 1,000 one layer down, and so on, 4 entries a node; `hits` of the input rows
    are cached. far: share of the input rows that belong to each other worker.
    """

    def make(*, iterations: int = 1, hits: float = 0.0, far: float = 0.0, queue: int = 1, **more: float) -> Case:
        given = facts(**more)
        workers, layers = given.cluster.gpus, len(given.shapes)
        step = np.arange(iterations)[:, None, None]
        levels = np.array([100 * 10 ** (layers - level) for level in range(layers + 1)])
        rows = np.broadcast_to(levels, (iterations, workers, layers + 1)) * (1 + step % 2)
        inputs = rows[:, :, 0, None] * (np.full((workers, workers), far) + np.eye(workers) * (1.0 - workers * far))
        wanted = np.rint(inputs).astype(np.int64)
        batches = BatchCounts(
            levels=rows,
            entries=4 * rows[:, :, 1:],
            looked=4 * rows[:, :, 1:].sum(axis=2),
            wanted=wanted,
            hits=np.rint(hits * wanted).astype(np.int64),
            cached=np.full(workers, round(hits * 1e6)),
            stored=np.full(workers, 1_000_000),
            per_epoch=7,
        )
        return replace(given, counts=replace(given.counts, batches=batches), queue=queue)

    return make


@pytest.fixture(scope="module")
def cases(on_cores: Callable[..., Case], batched: Callable[..., Case]) -> Callable[..., Case]:
    """Two workers on two servers; `far` of their input rows are the other's, `hits` are cached."""

    def make(*, far: float = 0.0, hits: float = 0.0, iterations: int = 1, queue: int = 1) -> Case:
        cores = on_cores(workers=2, per_server=1)
        given = batched(workers=2, per_server=1, far=far, hits=hits, iterations=iterations)
        return replace(cores, counts=given.counts, queue=queue)

    return make
