"""Blocks of ops are what the same ops are when written one by one; structures that were met before are found again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcnsim.hardware.link_specs import Link, LinkSpec, Sockets
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, Dependency, Schedule, Waits, host_messages, message_sizes, with_op
from gcnsim.schedule.builder import waits_of
from gcnsim.schedule.collectives import SEGMENT, host_message
from gcnsim.schedule.columns import Columns
from gcnsim.timeline import OpKind

Builders = Callable[..., Builder]


def same(one: Schedule, other: Schedule) -> None:
    """Both have the same ops, streams, waits, delays and amounts."""
    assert one.ops == other.ops
    assert one.streams == other.streams
    assert np.array_equal(one.demand, other.demand)
    assert one.ends == other.ends


def one_by_one(b: Builder, seconds: np.ndarray, units: np.ndarray) -> Schedule:
    """Per worker a kernel and a message to every other; then each reads what it got, and refills it."""
    made, sent = [], {}
    for rank in range(3):
        made.append(b.compute(OpKind.UPDATE, rank, seconds[:, rank], layer=1))
        for peer in range(3):
            if peer != rank:
                sent[rank, peer] = b.flow(
                    OpKind.WIRE, rank, units[:, rank, peer], (rank, 3 + peer), stream=f"tx{peer}", after=[made[rank]],
                    peer=peer, connection="rows", cap=2.0,
                )  # fmt: skip
    reads = [b.compute(OpKind.SCATTER, rank, 0.5, stream="in") for rank in range(3)]
    for rank, peer in permutations(range(3), 2):
        b.wait_for(reads[peer], (sent[rank, peer], 1))
        b.reuse(sent[rank, peer], reads[peer])
    return b.close(reads)


def in_blocks(b: Builder, seconds: np.ndarray, units: np.ndarray) -> Schedule:
    """The same by blocks: a worker's messages stand behind its kernel, the numbers of which are set aside before."""
    ranks = np.arange(3)
    at = b.numbers(np.array([[1, 2]] * 3))
    made = b.block(OpKind.UPDATE, ranks, seconds, at=at[:, 0], layer=1)
    own, peers = np.array(list(permutations(range(3), 2))).T.reshape(2, 3, 2)
    sent = b.block(
        OpKind.WIRE,
        own,
        units[:, own, peers],
        at=at[:, 1:] + np.arange(2),
        after=[made[:, None]],
        stream=b.names(f"tx{peer}" for peer in range(3))[peers],
        ways=b.ways((rank, 3 + peer) for rank, peer in permutations(range(3), 2)).reshape(3, 2),
        peers=peers,
        connection="rows",
        cap=2.0,
    )
    reads = b.block(OpKind.SCATTER, ranks, 0.5, stream="in")
    b.wait_for(reads[peers], (sent, 1))
    b.reuse(sent, reads[peers])
    return b.close(reads)


def test_a_block_is_its_ops_one_by_one(builder: Builders) -> None:
    seconds, units = np.arange(6.0).reshape(2, 3), np.arange(18.0).reshape(2, 3, 3)
    capacity = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    alone = one_by_one(builder(*capacity, workers=3, iterations=2), seconds, units)
    together = in_blocks(builder(*capacity, workers=3, iterations=2), seconds, units)
    same(alone, together)
    assert [stream.name for stream in together.streams[:4]] == ["gpu", "tx1", "tx2", "gpu"]
    assert together.ops[1].after == ((0, 0),)
    assert together.ops[1].reuses == (10,)
    assert together.ops[10].after == ((1, 1), (8, 1))


def test_what_is_not_there_is_not_waited_for(builder: Builders) -> None:
    b = builder(1.0, workers=2)
    first = b.block(OpKind.UPDATE, np.arange(2), 1.0)
    after: list[Waits] = [np.array([[-1, first[0]], [first[1], first[0]]])]
    last = b.block(OpKind.STEP, np.arange(2), 1.0, after=after)
    ops = b.close(last).ops
    assert [op.after for op in ops[2:]] == [((0, 0),), ((1, 0), (0, 0))]


def test_waits_of_single_ops_as_a_block_takes_them(builder: Builders) -> None:
    after: list[list[Dependency]] = [[3, (2, 1)], [(1, 2)], []]
    b = builder(1.0, workers=3)
    b.block(OpKind.UPDATE, np.arange(4) % 3, 1.0, stream="x")
    last = b.block(OpKind.STEP, np.arange(3), 1.0, after=waits_of(after))
    found = [op.after for op in b.close(last).ops[4:]]
    assert found == [((3, 0), (2, 1)), ((1, 2),), ()]


@pytest.mark.parametrize("sockets", [None, Sockets(bandwidth=1e9, message_s=1e-5)])
@given(sizes=st.lists(st.sampled_from([0.0, 10.0, SEGMENT, 3 * SEGMENT]), min_size=6, max_size=6))
def test_messages_at_once_are_messages_one_by_one(sockets: Sockets | None, sizes: list[float]) -> None:
    links = []
    for rank in range(3):
        links += [
            Link(f"nic{rank}.tx", "nic", f"host{rank}", "switch", LinkSpec(1e9, 1e-5)),
            Link(f"nic{rank}.rx", "nic", "switch", f"host{rank}", LinkSpec(1e9)),
            Link(f"memory{rank}", "memory", f"host{rank}", f"host{rank}", LinkSpec(1e10)),
            Link(f"cpu{rank}", "cpu", f"threads{rank}", f"cores{rank}", LinkSpec(8.0)),
        ]
    cluster = Cluster((0, 1, 2), tuple(links), sockets=sockets)
    pairs = list(permutations(range(3), 2))
    alone, together = Builder("alone", cluster, 1), Builder("together", cluster, 1)
    ready = [alone.compute(OpKind.PACK, rank, 1.0) for rank in range(3)]
    ends = [
        host_message(alone, OpKind.WIRE, rank, peer, size, [ready[rank]], stream=f"tx{peer}", layer=2)[-1]
        for (rank, peer), size in zip(pairs, sizes, strict=True)
    ]
    packed = together.block(OpKind.PACK, np.arange(3), 1.0)
    own, peers = np.array(pairs).T
    amounts = np.array(sizes)[None]
    counts = message_sizes(together, amounts)
    found = host_messages(
        together,
        OpKind.WIRE,
        own,
        peers,
        amounts,
        [packed[own]],
        at=together.numbers(counts),
        sizes=counts,
        stream=together.names(f"tx{peer}" for peer in peers.tolist()),
        layer=2,
    )
    assert found.tolist() == ends
    same(alone.close(ends[:3]), together.close(found[:3]))


def test_a_structure_met_before_is_found_again(builder: Builders) -> None:
    seconds, units = np.ones((1, 3)), np.ones((1, 3, 3))
    first = in_blocks(builder(*[1.0] * 6, workers=3), seconds, units)
    faster = in_blocks(builder(*[9.0] * 6, workers=3), 2 * seconds, 3 * units)
    assert faster.columns is first.columns
    later = in_blocks(builder(*[1.0] * 6, workers=3, latency=0.25), seconds, units)
    assert later.columns is not first.columns
    assert later.columns.wait is first.columns.wait
    assert later.ops[1].latency_s == 0.5
    assert first.ops[1].latency_s == 0.0
    other = one_by_one(builder(*[1.0] * 6, workers=3), seconds, units)
    assert other.columns is not first.columns, "written in another order"


def test_an_op_more_waits_and_is_waited_for(builder: Builders) -> None:
    schedule = in_blocks(builder(*[1.0] * 6, workers=3), np.ones((1, 3)), np.ones((1, 3, 3)))
    columns = with_op(schedule.columns, OpKind.WAIT, 2, "pause", (11, 1), [0, 1, 10])
    longer = Schedule(
        "longer", columns, np.ones((1, 13)), schedule.capacity, schedule.link_names, schedule.link_kinds, schedule.ends
    )
    before, after = schedule.ops, longer.ops
    assert after[0].after == (*before[0].after, (12, 0))
    assert after[1].after == (*before[1].after, (12, 0))
    assert after[1].reuses == before[1].reuses
    assert after[10].after == (*before[10].after, (12, 0))
    assert after[2:10] == before[2:10]
    assert (after[12].kind, after[12].worker, after[12].after) == (OpKind.WAIT, 2, ((11, 1),))
    assert longer.streams[after[12].stream].name == "pause"
    assert len(longer.streams) == len(schedule.streams) + 1


def test_columns_of_routes_and_workers(builder: Builders) -> None:
    columns = in_blocks(builder(*[1.0] * 6, workers=3), np.ones((1, 3)), np.ones((1, 3, 3))).columns
    assert columns.of_worker(1).tolist() == [3, 4, 5, 10]
    assert columns.near(1).tolist() == [1, 3, 4, 5, 8, 10]
    ops, links = columns.crossings
    assert links[ops == 2].tolist() == [0, 5]
    assert columns.first_link()[[0, 2, 8]].tolist() == [-1, 0, 2]
    assert {field.name for field in fields(Columns)} > {"kind", "way", "wait"}
