"""Collectives against their closed forms and lower bounds."""

from __future__ import annotations

import pytest

from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import LinkSpec
from gcnsim.hardware.topology import Cluster, build_cluster
from gcnsim.schedule import Builder, Dependency, Schedule, ring_broadcast, ring_reduce_among
from gcnsim.schedule.collectives import CHUNK, ring_allreduce, tree_allreduce
from gcnsim.timeline import PS_PER_S, Direction, OpKind

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


def finished(builder: Builder, ends: list[int]) -> Schedule:
    return builder.close([builder.compute(OpKind.STEP, rank, 0.0, after=[end]) for rank, end in enumerate(ends)])


def begun(workers: int, per_server: int = 1, late: float = 0.0) -> tuple[Builder, list[Dependency]]:
    """A builder, and per worker the op before which it neither sends nor receives; the last is late."""
    builder = Builder("collective", cluster(workers, per_server), 1)
    return builder, [builder.compute(OpKind.LOSS, rank, late * (rank == workers - 1)) for rank in range(workers)]


ROUTE_ALPHA = 2 * PCIE_ALPHA + ALPHA
"""From GPU to GPU of another server."""


@pytest.mark.parametrize("workers", [2, 7])
@pytest.mark.parametrize("nbytes", [1e8])
@pytest.mark.parametrize("root", [0, 1])
def test_a_broadcast_takes_its_bytes_once_and_fills_the_ring(workers: int, nbytes: float, root: int) -> None:
    builder, ready = begun(workers)
    ends = ring_broadcast(builder, list(range(workers)), root, nbytes, [[op] for op in ready])
    found = seconds(finished(builder, ends))
    filling = min(CHUNK, nbytes) if workers > 2 else nbytes
    messages = workers if nbytes > filling else workers - 1
    closed = messages * ROUTE_ALPHA + (nbytes + (workers - 2) * filling) / BANDWIDTH
    assert found == pytest.approx(closed, abs=4 * workers / PS_PER_S)
    assert found >= ROUTE_ALPHA + nbytes / BANDWIDTH - 1e-11


def test_everyone_of_a_broadcast_waits_for_the_last_to_come() -> None:
    times = []
    for late in (0.0, 0.5):
        builder, ready = begun(3, late=late)
        times.append(seconds(finished(builder, ring_broadcast(builder, [0, 1, 2], 0, 1e7, [[op] for op in ready]))))
    assert 0.4 < times[1] - times[0] <= 0.5 + 1e-11


@pytest.mark.parametrize("workers", [2, 4, 8])
def test_a_tree_goes_up_and_down(workers: int) -> None:
    builder, ready = begun(workers)
    found = seconds(finished(builder, tree_allreduce(builder, 1e6, ready)))
    steps = 2 * (workers.bit_length() - 1)
    assert found == pytest.approx(steps * (ROUTE_ALPHA + 1e6 / BANDWIDTH), abs=1e-10)


@pytest.mark.parametrize("workers", [3, 5, 6])
def test_a_tree_of_any_number_reaches_everyone(workers: int) -> None:
    builder, ready = begun(workers, late=0.25)
    found = simulate(finished(builder, tree_allreduce(builder, 1e6, ready)), 1)
    assert (found.ends[0, list(found.schedule.ends)] > 0.25 * PS_PER_S).all()


@pytest.mark.parametrize("workers", [2, 4])
def test_replicas_add_up_around_their_own_ring(workers: int) -> None:
    builder, ready = begun(2 * workers)
    ring = list(range(0, 2 * workers, 2))
    ends = ring_reduce_among(builder, ring, 1e7, [ready[rank] for rank in ring], 0, Direction.FORWARD)
    every = [ends[rank // 2] if rank in ring else ready[rank] for rank in range(2 * workers)]
    found = seconds(finished(builder, [int(str(op)) for op in every]))
    assert found == pytest.approx(2 * (workers - 1) * (ROUTE_ALPHA + 1e7 / workers / BANDWIDTH), abs=1e-10)
