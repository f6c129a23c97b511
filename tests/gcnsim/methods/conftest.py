"""Facts of workers that train on CPU cores, from those of the small run, and what an iteration of them takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gcnsim.cluster import LinkSpec, build_cluster
from gcnsim.engine import simulate
from gcnsim.methods import Facts
from gcnsim.profile import Figure
from gcnsim.schedule import Schedule
from gcnsim.timeline import PS_PER_S

MESSAGE_S = 2e-5


def _figure(value: float) -> Figure:
    return Figure(value, "assumed", "chosen for a test", "2026", value, value)


@pytest.fixture(scope="session")
def on_cores(facts: Callable[..., Facts]) -> Callable[..., Facts]:
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
        tau: int = 0,
        sampled: bool = False,
        **more: float,
    ) -> Facts:
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
        return replace(given, cluster=cluster, device=device, host=host, overlap=overlap, norm=norm)

    return make


@pytest.fixture(scope="session")
def pace() -> Callable[..., float]:
    """Mean seconds of the later half of `iterations`, from the last worker's end to the last worker's end."""

    def seconds(schedule: Schedule, iterations: int = 8) -> float:
        ends = simulate(schedule, iterations).ends[:, list(schedule.ends)].max(axis=1)
        half = iterations // 2
        return float(ends[-1] - ends[half - 1]) / (iterations - half) / PS_PER_S

    return seconds
