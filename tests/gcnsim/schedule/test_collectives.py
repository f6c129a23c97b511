"""The ring all-reduce: 2 (P - 1) (alpha + w / P / bandwidth), plus the copies from and to the GPU."""

from __future__ import annotations

import pytest

from gcnsim.cluster import Cluster, LinkSpec, build_cluster
from gcnsim.engine import simulate
from gcnsim.schedule import Builder, Schedule, ring_allreduce
from gcnsim.timeline import PS_PER_S, OpKind

ALPHA, BANDWIDTH, PCIE_ALPHA, PCIE = 5e-5, 1e9, 1e-5, 8e9


def cluster(workers: int, per_server: int = 1) -> Cluster:
    return build_cluster(
        gpus=workers,
        gpus_per_server=per_server,
        pcie=LinkSpec(PCIE, PCIE_ALPHA),
        nic=LinkSpec(BANDWIDTH, ALPHA),
        memory=LinkSpec(10e9, 1e-6),
        cores=LinkSpec(4.0),
    )


def schedule(workers: int, nbytes: float, per_server: int = 1, late: float = 0.0) -> Schedule:
    builder = Builder("ring", cluster(workers, per_server), 1)
    ready = [builder.compute(OpKind.LOSS, rank, late * (rank == 0)) for rank in range(workers)]
    reduced = ring_allreduce(builder, nbytes, ready)
    return builder.close([builder.compute(OpKind.STEP, rank, 0.0, after=[reduced[rank]]) for rank in range(workers)])


def seconds(found: Schedule) -> float:
    return float(simulate(found, 1).ends.max()) / PS_PER_S


@pytest.mark.parametrize("workers", [2, 3, 4, 7])
@pytest.mark.parametrize("nbytes", [4e3, 1e8])
def test_closed_form_on_equal_servers(workers: int, nbytes: float) -> None:
    ring = 2 * (workers - 1) * (ALPHA + nbytes / workers / BANDWIDTH)
    copies = 2 * (PCIE_ALPHA + nbytes / PCIE)
    assert seconds(schedule(workers, nbytes)) == pytest.approx(ring + copies, abs=2 * workers / PS_PER_S)


def test_everyone_waits_for_the_last_contribution() -> None:
    assert seconds(schedule(3, 1e6, late=0.5)) == pytest.approx(seconds(schedule(3, 1e6)) + 0.5, abs=1e-11)


def test_one_worker_has_nothing_to_send() -> None:
    found = schedule(1, 1e8)
    assert not found.is_flow.any()
    assert [op.kind for op in found.ops] == [OpKind.LOSS, OpKind.STEP]


@pytest.mark.parametrize(("workers", "per_server"), [(2, 1), (6, 2), (5, 2), (4, 4)])
def test_every_worker_sends_its_chunk_in_every_step(workers: int, per_server: int) -> None:
    found = schedule(workers, 1e6, per_server)
    for rank in range(workers):
        route = cluster(workers, per_server).between(rank, (rank + 1) % workers)
        sent = [found.demand[0, op.index] for op in found.ops if op.worker == rank and op.route == route]
        assert sent == pytest.approx([1e6 / workers] * (2 * (workers - 1)))


def test_workers_of_one_server_pass_their_chunks_in_host_memory() -> None:
    found = schedule(4, 1e6, per_server=4)
    used = {found.link_kinds[link] for op in found.ops for link in op.route or ()}
    assert used == {"pcie", "memory"}
