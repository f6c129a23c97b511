"""What an iteration of workers on CPU cores consists of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from gcnsim.core.ids import FloatArray
from gcnsim.cost import elementwise_seconds, gradient_bytes, row_bytes, rows_seconds, socket_core_seconds, spmm_seconds
from gcnsim.engine import simulate
from gcnsim.methods.families.cpu_ops import WOKEN_S
from gcnsim.schedule import COMPUTE_STREAM, Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import Direction, OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD


def ops(schedule: Schedule, kind: OpKind, **wanted: int) -> list[Op]:
    return [
        op for op in schedule.ops if op.kind is kind and all(getattr(op, key) == value for key, value in wanted.items())
    ]


def stream(schedule: Schedule, op: Op) -> str:
    return schedule.streams[op.stream].name


def on_stream(schedule: Schedule, worker: int, name: str) -> list[Op]:
    return [op for op in schedule.ops if op.worker == worker and stream(schedule, op) == name]


def words(schedule: Schedule, facts: Case, worker: int) -> list[str]:
    """The compute stream of one worker; a sum is `inner` or `boundary` by its work, a read waits for a transfer."""
    nodes = int(facts.counts.inner_nodes[worker])
    entries = int(facts.counts.inner_edges[0, worker]) + nodes
    found = []
    for op in on_stream(schedule, worker, COMPUTE_STREAM):
        work = float(schedule.demand[0, op.index])
        name = str(op.kind)
        if op.kind is OpKind.AGGREGATE:
            inner = spmm_seconds(facts.device, entries, nodes, facts.shapes[op.layer].d_in)
            name = "inner" if work == float(inner) else "boundary"
        if op.kind is OpKind.SCATTER:
            name = "+".join(word for word, holds in (("read", bool(op.after)), ("add", work > WOKEN_S)) if holds)
        if op.kind is OpKind.STEP and work == WOKEN_S:
            name = "hand over"
        layer = "" if op.layer < 0 else f" {op.layer}"
        found.append(f"{name}{layer}{' back' if op.direction is BACKWARD else ''}")
    return found


def wires(schedule: Schedule, layer: int, direction: Direction) -> dict[tuple[int, int], Op]:
    """The messages of rows, by sender and receiver."""
    return {
        (op.worker, op.peer): op for op in ops(schedule, OpKind.WIRE, layer=layer, direction=direction) if ahead(op)
    }


def ahead(op: Op) -> bool:
    """Whether an op carries bytes to a peer; what that costs the cores has no peer."""
    return op.peer >= 0


def test_synchronous_without_overlap_everything_waits_for_the_rows(on_cores: MakeFacts) -> None:
    facts = on_cores(layers=2)
    assert words(method("full-graph")(facts), facts, 1) == [
        "read 0", "inner 0", "boundary 0", "update 0", "hand over", "read 1", "inner 1", "boundary 1", "update 1",
        "loss", "hand over", "update 1 back", "boundary 1 back", "read 1 back", "inner 1 back", "add 1 back",
        "hand over", "update 0 back", "step", "hand over",
    ]  # fmt: skip


def test_central_sums_inner_columns_beneath_the_transfer(on_cores: MakeFacts) -> None:
    facts = on_cores(layers=2, overlap=True)
    assert words(method("full-graph")(facts), facts, 1) == [
        "inner 0", "read 0", "boundary 0", "update 0", "hand over", "inner 1", "read 1", "boundary 1", "update 1",
        "loss", "hand over", "update 1 back", "boundary 1 back", "inner 1 back", "read+add 1 back", "hand over",
        "update 0 back", "step", "hand over",
    ]  # fmt: skip


@pytest.mark.parametrize("overlap", [False, True])
def test_stale_boundary_columns_come_first(on_cores: MakeFacts, overlap: bool) -> None:
    facts = on_cores(layers=2, tau=1, overlap=overlap)
    assert words(method("pipegcn")(facts), facts, 1) == [
        "read 0", "boundary 0", "inner 0", "update 0", "hand over", "read 1", "boundary 1", "inner 1", "update 1",
        "loss", "hand over", "update 1 back", "boundary 1 back", "inner 1 back", "read+add 1 back", "hand over",
        "update 0 back", "step", "hand over",
    ]  # fmt: skip


def test_whatever_a_worker_does_is_one_thread_on_its_servers_cores(on_cores: MakeFacts) -> None:
    facts = on_cores(sampled=True, tau=1, hits=0.25)
    schedule = method("psc-gcn")(facts)
    for op in schedule.ops:
        if op.route is not None and not ahead(op):
            assert (op.route, op.cap) == (facts.cluster.cores(op.worker), 1.0)
    links = {schedule.link_kinds[link] for op in schedule.ops for link in op.route or ()}
    assert links == {"cpu", "nic", "memory"}, "nothing is copied to a device"


@pytest.mark.parametrize("tau", [0, 1, 3])
def test_bytes_are_rows_by_width_and_both_ends_pay_for_them(on_cores: MakeFacts, tau: int) -> None:
    facts = on_cores(iterations=4, spread=0.5, slope=0.2, sampled=True, tau=tau, hits=0.25, widths=(48, 64, 16))
    schedule, counts = method("psc-gcn")(facts), facts.counts
    for layer, width in enumerate((48, 64, 64)):
        for direction in (FORWARD, BACKWARD) if layer else (FORWARD,):
            found = wires(schedule, layer, direction)
            assert set(found) == set(permutations(range(4), 2))
            for (sender, receiver), op in found.items():
                if direction is FORWARD:
                    rows = counts.rows[:, receiver, sender] - (0 if layer else counts.hits[:, receiver, sender])
                    rows = np.roll(rows, -tau)
                else:
                    rows = counts.rows[:, sender, receiver]
                nbytes = row_bytes(rows, width)
                assert schedule.demand[:, op.index].tolist() == nbytes.tolist()
                assert op.route == facts.cluster.between(sender, receiver)
                check_ends(schedule, facts, op, nbytes)


def check_ends(schedule: Schedule, facts: Case, wire: Op, nbytes: FloatArray) -> None:
    """Sender and receiver spend the socket law's core-seconds, from when the message leaves, beside the bytes."""
    name = stream(schedule, wire)
    moved, call = socket_core_seconds(facts.host, nbytes), np.where(nbytes > 0, facts.host.message_s.value, 0.0)
    (sent,) = on_stream(schedule, wire.worker, f"{name}.out{wire.peer}")
    (received,) = on_stream(schedule, wire.peer, f"{name}.in{wire.worker}")
    (got,) = on_stream(schedule, wire.peer, f"{name}.got{wire.worker}")
    assert schedule.demand[:, sent.index].tolist() == (moved + call).tolist()
    assert schedule.demand[:, received.index].tolist() == (moved + call / 2).tolist()
    assert schedule.demand[:, got.index].tolist() == (call / 2).tolist()
    assert sent.after == received.after == wire.after
    assert {dep for dep, _ in got.after} == {wire.index, sent.index, received.index}


@pytest.mark.parametrize("tau", [0, 1, 2])
def test_reads_wait_for_the_transfers_of_t_minus_tau(on_cores: MakeFacts, tau: int) -> None:
    schedule = method("psc-gcn")(on_cores(tau=tau))
    for direction in (FORWARD, BACKWARD):
        for layer in (1, 2):
            sent = wires(schedule, layer, direction)
            for rank in range(4):
                read = next(op for op in ops(schedule, OpKind.SCATTER, layer=layer, direction=direction, worker=rank))
                ((awaited, lag),) = read.after
                assert lag == tau
                through = {dep for dep, _ in schedule.ops[awaited].after}
                left = {op.index for (sender, _), op in sent.items() if sender == rank}
                comes = {op.index for (_, receiver), op in sent.items() if receiver == rank}
                assert left <= through, "what a worker sends is awaited as well"
                assert comes <= {dep for op in through for dep, _ in schedule.ops[op].after}
                assert len(through) == 3 * 2 + 3, "bytes and work of what leaves, the last of what comes"


def test_a_message_starts_once_both_ends_have_posted(on_cores: MakeFacts) -> None:
    facts = on_cores(slope=0.5, overlap=True)
    schedule = method("full-graph")(facts)
    run = simulate(schedule, 3)
    for layer, direction in ((0, FORWARD), (1, FORWARD), (2, BACKWARD)):
        posted = {op.worker: op.index for op in ops(schedule, OpKind.PACK, layer=layer, direction=direction)}
        for (sender, receiver), op in wires(schedule, layer, direction).items():
            assert set(op.after) == {(posted[sender], 0), (posted[receiver], 0)}
            both = run.ends[:, [posted[sender], posted[receiver]]].max(axis=1)
            assert (run.starts[:, op.index] >= both).all()
            if layer == 0:
                assert run.starts[:, op.index].tolist() == both.tolist()


def test_rows_leave_when_they_are_made(on_cores: MakeFacts) -> None:
    schedule = method("full-graph")(on_cores(overlap=True))
    for rank in range(4):
        first, second, _ = ops(schedule, OpKind.PACK, worker=rank, direction=FORWARD)
        assert first.after == ((schedule.ends[rank], 1),), "features are there when the iteration starts"
        (made,) = ops(schedule, OpKind.UPDATE, worker=rank, layer=0, direction=FORWARD)
        assert second.after == ((made.index, 0),)
        (back,) = ops(schedule, OpKind.PACK, worker=rank, direction=BACKWARD, layer=1)
        boundary = ops(schedule, OpKind.AGGREGATE, worker=rank, direction=BACKWARD, layer=1)[0]
        assert back.after == ((boundary.index, 0),)
        assert float(schedule.demand[0, back.index]) == 0.0, "gradients are made where they leave from"


def test_a_slot_is_filled_again_once_it_has_been_read(on_cores: MakeFacts) -> None:
    stale, fresh = (method("psc-gcn")(on_cores(tau=tau)) for tau in (2, 0))
    for rank in range(4):
        for layer in (1, 2):
            (forward,) = ops(stale, OpKind.PACK, worker=rank, layer=layer, direction=FORWARD)
            boundary = ops(stale, OpKind.AGGREGATE, worker=rank, layer=layer, direction=FORWARD)[0]
            assert forward.reuses == (boundary.index,)
            (backward,) = ops(stale, OpKind.PACK, worker=rank, layer=layer, direction=BACKWARD)
            (added,) = ops(stale, OpKind.SCATTER, worker=rank, layer=layer, direction=BACKWARD)
            assert backward.reuses == (added.index,)
    assert all(op.reuses == () for op in fresh.ops)


def test_gradients_are_reduced_layer_by_layer_during_the_backward_pass(on_cores: MakeFacts) -> None:
    facts = on_cores(layers=3)
    schedule = method("full-graph")(facts)
    for layer in range(3):
        chunk = gradient_bytes((facts.shapes[layer],)) / 4
        moved = [op for op in ops(schedule, OpKind.ALLREDUCE, layer=layer) if ahead(op)]
        assert Counter((op.worker, op.peer) for op in moved) == {(rank, (rank + 1) % 4): 6 for rank in range(4)}
        assert schedule.demand[0, [op.index for op in moved]].tolist() == [chunk] * 24
        begun = [schedule.ops[dep] for op in moved[:4] for dep, _ in op.after]
        assert {dep for op in begun for dep, _ in op.after} == {
            op.index for op in ops(schedule, OpKind.UPDATE, layer=layer, direction=BACKWARD)
        }
    added = [op.index for op in schedule.ops if stream(schedule, op) == "reduce.add"]
    largest = float(elementwise_seconds(facts.device, gradient_bytes((facts.shapes[0],)) / 16, 3))
    assert len(added) == 3 * 3 * 4
    assert float(schedule.demand[0, added].max()) == pytest.approx(largest)
    run = simulate(schedule, 2)
    reducing = min(int(run.starts[1, op.index]) for op in ops(schedule, OpKind.ALLREDUCE, layer=2))
    (last,) = ops(schedule, OpKind.UPDATE, layer=0, direction=BACKWARD, worker=0)
    assert reducing < run.starts[1, last.index]


def test_a_step_waits_for_the_last_chunk_of_every_layer(on_cores: MakeFacts) -> None:
    run = simulate(method("full-graph")(on_cores(nic=1e7)), 3)
    schedule = run.schedule
    for rank in range(4):
        # The optimizer's kernel, then the last hand-over.
        op = ops(schedule, OpKind.STEP, worker=rank)[-2]
        left = [item.index for item in on_stream(schedule, (rank - 1) % 4, "reduce.ring")]
        assert len(left) == 3 * 6
        assert (run.starts[:, op.index] >= run.ends[:, left].max(axis=1)).all()


def test_a_sampler_draws_builds_and_asks(on_cores: MakeFacts) -> None:
    facts = on_cores(iterations=5, spread=0.5, sampled=True, tau=2, weighted=True)
    schedule = method("psc-gcn")(facts)
    drawing = [op for op in ops(schedule, OpKind.SAMPLE) if stream(schedule, op) != COMPUTE_STREAM]
    assert len(drawing) == 4
    for op in drawing:
        kept = facts.counts.inner_edges[:, op.worker] + facts.counts.boundary_edges[:, op.worker]
        built = (np.roll(kept, -2) + facts.counts.inner_nodes[op.worker]) / 2e7
        assert schedule.demand[:, op.index] == pytest.approx(0.01 + 0.1 / 20 + built)
    requested = [op for op in ops(schedule, OpKind.INDEX) if ahead(op)]
    for sender, receiver in permutations(range(4), 2):
        content, ids = (op for op in requested if (op.worker, op.peer) == (sender, receiver))
        assert set(schedule.demand[:, content.index]) == {8.0}
        assert (
            schedule.demand[:, ids.index].tolist() == (4 * np.roll(facts.counts.rows[:, sender, receiver], -2)).tolist()
        )
    for rank in range(4):
        trains = on_stream(schedule, rank, COMPUTE_STREAM)[0]
        assert trains.kind is OpKind.INDEX
        assert [lag for _, lag in trains.after] == [2], "what was drawn two iterations ago is trained now"


def test_cached_rows_are_put_beside_those_received(on_cores: MakeFacts) -> None:
    facts = on_cores(iterations=3, spread=0.5, sampled=True, tau=1, hits=0.25)
    schedule = method("psc-gcn")(facts)
    assert not ops(method("psc-gcn")(on_cores(sampled=True, tau=1)), OpKind.LOOKUP)
    for op in ops(schedule, OpKind.LOOKUP):
        held = np.roll(facts.counts.hits[:, op.worker].sum(axis=1), -1)
        assert schedule.demand[:, op.index].tolist() == rows_seconds(facts.device, held, 64).tolist()
        (read,) = ops(schedule, OpKind.SCATTER, worker=op.worker, layer=0)
        ((awaited, lag),) = read.after
        assert lag == 1
        assert (op.index, 0) in schedule.ops[awaited].after
