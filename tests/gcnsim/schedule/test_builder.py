"""Builders: order of ops, messages, streams."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import LinkSpec, Paths, Sockets
from gcnsim.hardware.topology import Cluster, build_cluster
from gcnsim.schedule import Builder, Schedule, allreduce
from gcnsim.schedule.collectives import SEGMENT, host_message
from gcnsim.schedule.schedule import Stream, levels, predecessors
from gcnsim.timeline import PS_PER_S, Direction, OpKind
from tests.cases import Case, method

Builders = Callable[..., Builder]


def test_streams_appear_on_first_use(builder: Builders) -> None:
    b = builder(1.0)
    b.compute(OpKind.LOSS, 0, 1.0)
    b.flow(OpKind.WIRE, 0, 1.0, (0,), stream="tx")
    end = b.compute(OpKind.STEP, 0, 1.0)
    schedule = b.close([end])
    assert schedule.streams == (Stream(0, "gpu"), Stream(0, "tx"))
    assert schedule.order == ((0, 2), (1,))
    assert schedule.workers == 1


def test_an_op_keeps_what_it_is_about(builder: Builders) -> None:
    b = builder(2.0, 1.0, latency=0.25, startup=0.125)
    first = b.compute(OpKind.LOSS, 0, 1.0)
    op = b.flow(
        OpKind.WIRE, 0, 3.0, (1, 0), stream="tx", after=[first, (first, 2)], cap=0.5, layer=4,
        direction=Direction.BACKWARD, peer=0,
    )  # fmt: skip
    schedule = b.close([first])
    found = schedule.ops[op]
    assert (found.kind, found.worker, found.layer, found.direction, found.peer) == (OpKind.WIRE, 0, 4, 2, 0)
    assert (found.route, found.cap, found.latency_s, found.startup_s) == ((1, 0), 0.5, 0.375, 0.125)
    assert found.waits == ((first, 0), (first, 2))
    assert schedule.is_flow.tolist() == [False, True]
    assert schedule.demand.tolist() == [[1.0, 3.0]]


def test_late_dependencies_and_reuse_join_the_others(builder: Builders) -> None:
    b = builder(1.0)
    pack = b.compute(OpKind.PACK, 0, 1.0, stream="pack")
    read = b.compute(OpKind.SCATTER, 0, 1.0)
    b.wait_for(pack, (read, 1))
    b.wait_for(read, (pack, 3))
    b.reuse(pack, read)
    schedule = b.close([read])
    assert schedule.ops[pack].after == ((read, 1),)
    assert schedule.ops[pack].reuses == (read,)
    assert schedule.ops[pack].waits == ((read, 1), (read, 0))
    assert schedule.ops[read].waits == ((pack, 3),)
    assert schedule.depth == 3


def test_work_is_the_same_every_iteration_or_one_number_each(builder: Builders) -> None:
    b = builder(1.0, iterations=3)
    b.compute(OpKind.LOSS, 0, 2.0)
    end = b.compute(OpKind.STEP, 0, np.array([1.0, 0.0, 4.0]))
    assert b.close([end]).demand.tolist() == [[2.0, 1.0], [2.0, 0.0], [2.0, 4.0]]


@pytest.mark.parametrize("work", [-1e-9, float("nan"), float("inf")])
def test_negative_and_endless_work_is_refused(builder: Builders, work: float) -> None:
    b = builder(1.0)
    end = b.compute(OpKind.LOSS, 0, work)
    with pytest.raises(ValueError, match="test: an op has negative or non-finite work"):
        b.close([end])


def test_a_cycle_within_an_iteration_is_refused(builder: Builders) -> None:
    b = builder(1.0)
    one = b.compute(OpKind.LOSS, 0, 1.0, stream="a")
    two = b.compute(OpKind.STEP, 0, 1.0, stream="b", after=[one])
    b.wait_for(one, two)
    with pytest.raises(ValueError, match=r"test: op \d \(\w+, worker 0\) waits for itself"):
        b.close([two])


def test_a_stream_that_waits_for_its_own_later_op_is_refused(builder: Builders) -> None:
    b = builder(1.0)
    one = b.compute(OpKind.LOSS, 0, 1.0)
    two = b.compute(OpKind.STEP, 0, 1.0)
    b.wait_for(one, two)
    with pytest.raises(ValueError, match="waits for itself"):
        b.close([two])


def test_a_buffer_read_before_it_is_filled_again_cannot_be_its_own_reader(builder: Builders) -> None:
    b = builder(1.0)
    fill = b.compute(OpKind.PACK, 0, 1.0, stream="pack")
    read = b.compute(OpKind.SCATTER, 0, 1.0, after=[fill])
    b.reuse(fill, read)
    with pytest.raises(ValueError, match="waits for itself"):
        b.close([read])


def test_the_same_cycle_through_an_earlier_iteration_is_fine(builder: Builders) -> None:
    b = builder(1.0)
    one = b.compute(OpKind.LOSS, 0, 1.0, stream="a")
    two = b.compute(OpKind.STEP, 0, 1.0, stream="b", after=[one])
    b.wait_for(one, (two, 1))
    assert b.close([two]).depth == 1


@pytest.fixture
def pipelined(builder: Callable[..., Builder]) -> Schedule:
    """read waits for the transfer of the iteration before; pack refills the buffer that read has read."""
    b = builder(1.0)
    make = b.compute(OpKind.UPDATE, 0, 1.0)
    read = b.compute(OpKind.SCATTER, 0, 1.0)
    step = b.compute(OpKind.STEP, 0, 1.0)
    pack = b.compute(OpKind.PACK, 0, 1.0, stream="pack", after=[make, (step, 1)])
    b.wait_for(read, (pack, 1))
    b.reuse(pack, read)
    return b.close([step])


def pairs(schedule: Schedule, *, collapse: bool) -> set[tuple[int, int]]:
    """Each op with each that it must follow."""
    ops, before = predecessors(schedule, collapse=collapse)
    return set(zip(ops.tolist(), before.tolist(), strict=True))


def places(schedule: Schedule, *, collapse: bool) -> dict[int, int]:
    """By op its level; all are there once, and nothing that it follows is of its own level or a later one."""
    found = levels(schedule, collapse=collapse)
    by_op = {
        op: number for number, level in enumerate(found.levels) for op in found.order[level.first : level.end].tolist()
    }
    assert sorted(by_op) == list(range(len(schedule.ops)))
    for op, before in pairs(schedule, collapse=collapse):
        assert by_op[before] < by_op[op]
    return by_op


def test_pipelined_reading(pipelined: Schedule) -> None:
    assert pairs(pipelined, collapse=False) == {(1, 0), (2, 1), (3, 0), (3, 1)}
    assert places(pipelined, collapse=False) == {0: 0, 1: 1, 2: 2, 3: 2}


def test_synchronous_reading_waits_for_this_iteration_and_refills_nothing(pipelined: Schedule) -> None:
    assert pairs(pipelined, collapse=True) == {(1, 0), (1, 3), (2, 1), (3, 0)}
    assert places(pipelined, collapse=True) == {0: 0, 3: 1, 1: 2, 2: 3}


def test_longest_chains_of_many_variants(pipelined: Schedule) -> None:
    seconds = np.array([[1.0, 4.0], [2.0, 1.0], [3.0, 1.0], [5.0, 1.0]])
    assert levels(pipelined).longest(seconds).tolist() == [[1.0, 4.0], [3.0, 5.0], [6.0, 6.0], [8.0, 6.0]]
    begin = np.array([-np.inf, 10.0, -np.inf, -np.inf])
    assert levels(pipelined).longest(seconds[:, 0], begin).tolist() == [-np.inf, 12.0, 15.0, 17.0]


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn"])
@pytest.mark.parametrize("tau", [0, 1, 3])
def test_both_readings_of_every_method_can_run(facts: Callable[..., Case], name: str, tau: int) -> None:
    schedule = method(name)(facts(tau=tau, sampled=True, hits=0.5))
    for collapse in (False, True):
        places(schedule, collapse=collapse)


def test_levels_are_found_once_and_kept_for_fewer_graphs(pipelined: Schedule) -> None:
    found = levels(pipelined, collapse=True)
    assert levels(pipelined, collapse=True) is found
    first = pipelined.of_graphs(np.array([0]))
    assert first.demand.shape == (1, pipelined.demand.shape[1])
    assert np.array_equal(first.demand[0], pipelined.demand[0])
    assert levels(first, collapse=True) is found


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
