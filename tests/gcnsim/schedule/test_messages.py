"""Messages between hosts, and what they take of cores."""

from __future__ import annotations

import pytest

from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import LinkSpec, Paths, Sockets
from gcnsim.hardware.topology import Cluster, build_cluster
from gcnsim.schedule import Builder, Schedule, allreduce
from gcnsim.schedule.collectives import SEGMENT, host_message
from gcnsim.timeline import PS_PER_S, OpKind

SOCKETS = Sockets(bandwidth=2e9, message_s=1e-3)
ALPHA = 5e-5


def cluster(sockets: Sockets | None = SOCKETS, *, nic: float = 40e9, cores: float = 4.0, tree: bool = False) -> Cluster:
    return build_cluster(
        gpus=2,
        gpus_per_server=1,
        pcie=LinkSpec(1e12),
        nic=LinkSpec(nic, ALPHA),
        memory=LinkSpec(10e9),
        cores=LinkSpec(cores),
        paths=Paths(sockets=sockets, allreduce="tree" if tree else "ring"),
    )


def seconds(schedule: Schedule) -> float:
    return float(simulate(schedule, 1).ends.max()) / PS_PER_S


def alone(nbytes: float) -> float:
    """Core-seconds that a message takes at one end by itself, before it travels or after: its call and one segment."""
    return SOCKETS.message_s + min(nbytes, SEGMENT) / SOCKETS.bandwidth


def messages(where: Cluster, nbytes: float, *, count: int = 1, sampling: float = 0.0) -> float:
    """Seconds until so many messages from worker 0 to 1 are there, and what worker 0 draws beside them is drawn."""
    builder = Builder("test", where, 1)
    ready = builder.compute(OpKind.LOSS, 0, 0.0)
    ends = []
    for index in range(count):
        ends.append(host_message(builder, OpKind.WIRE, 0, 1, nbytes, [ready], stream=f"tx{index}")[-1])
    drawn = builder.flow(OpKind.SAMPLE, 0, sampling, where.cores(0), stream="sampler", cap=1.0)
    steps = [builder.compute(OpKind.STEP, rank, 0.0, after=[*ends, drawn]) for rank in range(2)]
    return seconds(builder.close(steps))


def test_a_message_is_no_faster_than_the_core_that_moves_it() -> None:
    between = (1e9 - SEGMENT) / SOCKETS.bandwidth
    assert messages(cluster(), 1e9) == pytest.approx(2 * alone(1e9) + between)
    assert messages(cluster(None), 1e9) == pytest.approx(ALPHA + 1e9 / 40e9)


def test_a_slower_network_hides_the_cores_work_but_for_its_two_ends() -> None:
    free = messages(cluster(None, nic=1e9), 1e9)
    assert free == pytest.approx(ALPHA + 1.0)
    assert messages(cluster(nic=1e9), 1e9) == pytest.approx(free + 2 * alone(1e9))


@pytest.mark.parametrize("nbytes", [1.0, 4096.0, SEGMENT])
def test_the_hosts_work_on_a_small_message_lies_before_and_after_it(nbytes: float) -> None:
    """Not beside it: a message that costs its hosts something is never sooner there than one that does not."""
    free = messages(cluster(None), nbytes)
    assert messages(cluster(), nbytes) == pytest.approx(free + 2 * alone(nbytes))
    builder = Builder("test", cluster(), 1)
    ops = host_message(builder, OpKind.WIRE, 0, 1, nbytes, [], stream="tx")
    run = simulate(builder.close([ops[-1]]), 1)
    given, sent, taken = ops
    assert (run.ends[0, given], run.ends[0, sent]) == (run.starts[0, sent], run.starts[0, taken])
    assert [run.schedule.ops[op].worker for op in ops] == [0, 0, 1]


def test_each_message_has_a_thread_and_all_threads_share_the_cores() -> None:
    each = (1e9 - SEGMENT) / SOCKETS.bandwidth + 2 * alone(1e9)
    assert messages(cluster(cores=4.0), 1e9, count=4) == pytest.approx(each, rel=1e-3)
    assert messages(cluster(cores=2.0), 1e9, count=4) == pytest.approx(2 * each, rel=1e-3)


def test_messages_and_samplers_take_cores_from_each_other() -> None:
    each = 1e9 / SOCKETS.bandwidth + SOCKETS.message_s
    assert messages(cluster(cores=1.0), 1e9, sampling=each) == pytest.approx(2 * each, rel=0.01)
    assert messages(cluster(cores=2.0), 1e9, sampling=each) == pytest.approx(each, rel=0.01)


def test_a_message_of_nothing_takes_no_core() -> None:
    builder = Builder("test", cluster(), 1)
    ends = host_message(builder, OpKind.WIRE, 0, 1, 0.0, [], stream="tx")
    schedule = builder.close([builder.compute(OpKind.STEP, rank, 0.0, after=ends) for rank in range(2)])
    assert seconds(schedule) == 0.0


@pytest.mark.parametrize("tree", [False, True])
def test_an_all_reduce_moves_its_chunks_through_sockets_too(tree: bool) -> None:
    where = cluster(tree=tree)
    builder = Builder("test", where, 1)
    ends = allreduce(builder, 1e9, [builder.compute(OpKind.LOSS, rank, 0.0) for rank in range(2)])
    found = seconds(builder.close([builder.compute(OpKind.STEP, rank, 0.0, after=[ends[rank]]) for rank in range(2)]))
    # Two workers: half of the bytes each way in two steps, or all of them up and down again. PCIe passes in no time.
    step = (1e9 if tree else 0.5e9) / SOCKETS.bandwidth + 2 * SOCKETS.message_s
    assert found == pytest.approx(2 * step, rel=0.01)
