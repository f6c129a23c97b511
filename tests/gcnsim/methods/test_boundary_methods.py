"""Methods that exchange boundary rows, each by a closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from gcnsim.cost import average_seconds, boundary_core_seconds, boundary_seconds
from gcnsim.engine import simulate
from gcnsim.schedule import COMPUTE_STREAM, Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import Direction, OpKind
from tests.cases import Case, method


@pytest.mark.parametrize(("name", "fixed"), [("full-graph", 0), ("pipegcn", 1)])
def test_a_method_without_the_knobs_takes_its_own_tau_and_every_edge(
    name: str, fixed: int, facts: Callable[..., Case]
) -> None:
    one, other = (method(name)(facts(tau=tau, sampled=sampled)) for tau, sampled in ((5, True), (fixed, False)))
    assert one.ops == other.ops
    np.testing.assert_array_equal(one.demand, other.demand)
    reads = [op for op in one.ops if op.kind is OpKind.SCATTER]
    assert {lag for op in reads for _, lag in op.after} == {fixed}
    assert not any(op.kind in (OpKind.SAMPLE, OpKind.INDEX, OpKind.LOOKUP) for op in one.ops)


@pytest.mark.parametrize("direct", [False, True])
def test_a_message_moves_once_its_receiver_has_come_to_the_layer(facts: Callable[..., Case], direct: bool) -> None:
    """A synchronous transfer needs both ends: what a late receiver gets, leaves late."""
    given = facts(workers=4, per_server=2)
    if direct:
        given = replace(given, cluster=replace(given.cluster, direct_server=True))
    schedule = method("full-graph")(given)
    messages = [op for op in schedule.ops if op.kind is OpKind.WIRE]
    assert len(messages) == 12 * (2 * len(given.shapes) - 1)
    run = simulate(schedule, 3)
    for op in messages:
        made = [
            (item, 0)
            for item in schedule.ops
            if item.worker == op.peer
            and (item.kind, item.direction, item.layer)
            == (
                (OpKind.UPDATE, Direction.FORWARD, op.layer - 1)
                if op.direction is Direction.FORWARD
                else (OpKind.AGGREGATE, Direction.BACKWARD, op.layer)
            )
        ] or [(schedule.ops[schedule.ends[op.peer]], 1)]
        [(reached, lag)] = made
        assert (reached.index, lag) in op.after
        begun = run.starts[lag:, op.index]
        assert (begun >= run.ends[: 3 - lag, reached.index]).all()


def test_a_stale_message_does_not_wait_for_its_receiver_to_come(facts: Callable[..., Case]) -> None:
    schedule = method("pipegcn")(facts(workers=4, per_server=2))
    for op in schedule.ops:
        if op.kind is OpKind.WIRE:
            assert {schedule.ops[item].worker for item, _ in op.after} == {op.worker}


@pytest.mark.parametrize("tau", [0, 1, 2, 5])
def test_every_read_is_tau_iterations_behind_its_transfer(facts: Callable[..., Case], tau: int) -> None:
    schedule = method("psc-gcn")(facts(tau=tau, sampled=True))
    lags = {lag for op in schedule.ops if op.kind is OpKind.SCATTER for _, lag in op.after}
    assert lags == {tau}


def test_without_sampling_there_is_no_sampler_and_no_id(facts: Callable[..., Case]) -> None:
    schedule = method("psc-gcn")(facts(tau=2, sampled=False))
    assert not any(op.kind in (OpKind.SAMPLE, OpKind.INDEX) for op in schedule.ops)


MakeFacts = Callable[..., Case]
VARIANTS = {
    "pipegcn-g": (Direction.BACKWARD,),
    "pipegcn-f": (Direction.FORWARD,),
    "pipegcn-gf": (Direction.FORWARD, Direction.BACKWARD),
}


def moved(schedule: Schedule) -> float:
    return float(sum(schedule.demand[0, op.index] for op in schedule.ops if op.kind is OpKind.WIRE))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_moving_average_of_what_arrives_in_its_directions(facts: MakeFacts, name: str) -> None:
    given = facts(slope=0.1)
    plain, smoothed = method("pipegcn")(given), method(name)(given)
    assert moved(smoothed) == moved(plain)
    rows = given.counts.rows[:, 2].sum(axis=1), given.counts.rows[:, :, 2].sum(axis=1)
    expected = sum(
        float(average_seconds(given.device, rows[0 if direction is Direction.FORWARD else 1], 64)[0])
        * (3 if direction is Direction.FORWARD else 2)
        for direction in VARIANTS[name]
    )
    seconds = [
        sum(schedule.demand[0, op.index] for op in schedule.ops if (op.kind, op.worker) == (OpKind.AGGREGATE, 2))
        for schedule in (plain, smoothed)
    ]
    assert seconds[1] - seconds[0] == pytest.approx(expected)


@pytest.mark.parametrize("name", VARIANTS)
def test_on_cores_the_thread_that_trains_averages(on_cores: MakeFacts, name: str) -> None:
    plain, smoothed = method("pipegcn")(on_cores()), method(name)(on_cores())
    chosen = [op.index for op in plain.ops if op.kind is OpKind.SCATTER]
    assert [op.index for op in smoothed.ops if op.kind is OpKind.SCATTER] == chosen
    assert smoothed.demand[:, chosen].sum() > plain.demand[:, chosen].sum()
    others = [op.index for op in plain.ops if op.kind is not OpKind.SCATTER]
    assert (smoothed.demand[:, others] == plain.demand[:, others]).all()


Label = Callable[[Schedule, Op], tuple[object, ...]]
Pace = Callable[..., float]
FORWARD = Direction.FORWARD


@pytest.fixture(params=["gpu", "cores"])
def make(request: pytest.FixtureRequest, facts: MakeFacts, on_cores: MakeFacts) -> MakeFacts:
    """Case of workers on GPUs, and of workers on CPU cores."""
    return facts if request.param == "gpu" else on_cores


def build(facts: Case) -> Schedule:
    return method("bns-gcn")(facts)


def carried(schedule: Schedule, kind: OpKind) -> float:
    """Bytes of one kind to peers, in all iterations."""
    chosen = [op.index for op in schedule.ops if op.kind is kind and op.peer >= 0]
    return float(schedule.demand[:, chosen].sum())


def ids(schedule: Schedule) -> list[Op]:
    """The messages that say which rows will come, two of each pair."""
    return [op for op in schedule.ops if op.peer >= 0 and schedule.streams[op.stream].name.startswith("ids.tx")]


def computing(schedule: Schedule, rank: int) -> list[Op]:
    return [op for op in schedule.ops if op.worker == rank and schedule.streams[op.stream].name == COMPUTE_STREAM]


@pytest.mark.parametrize("shape", [{"workers": 4}, {"workers": 3, "slope": 0.3}, {"workers": 1, "per_server": 1}])
def test_rate_1_is_full_graph_training(make: MakeFacts, label: Label, shape: dict[str, float]) -> None:
    given = make(rate=1.0, **shape)
    ends = []
    for name in ("bns-gcn", "full-graph"):
        run = simulate(method(name)(given), 4)
        ends.append({label(run.schedule, op): run.ends[:, op.index].tolist() for op in run.schedule.ops})
    assert ends[0] == ends[1]


def test_drawing_comes_on_top_of_full_graph_training(make: MakeFacts, pace: Pace) -> None:
    """With the rows of the whole boundary an iteration is longer by what comes before its first sum."""
    given = make(rate=0.999, per_server=1)
    full, schedule = method("full-graph")(given), build(given)
    assert carried(schedule, OpKind.WIRE) == carried(full, OpKind.WIRE) + 4 * given.counts.rows.sum() + 4 * 12
    run = simulate(schedule, 4)
    ready = [op.index for op in schedule.ops if op.kind is OpKind.INDEX and op in computing(schedule, op.worker)]
    before = run.ends[2, ready].max() - run.ends[1, list(schedule.ends)].max()
    assert pace(schedule) - pace(full) == pytest.approx(before * 1e-12, rel=1e-3)
    assert before > 0


def test_rate_0_exchanges_nothing_but_the_gradients_of_the_weights(make: MakeFacts) -> None:
    schedule = build(make(rate=0.0, rows=0.0))
    assert carried(schedule, OpKind.WIRE) == 0.0
    assert not ids(schedule)
    assert carried(schedule, OpKind.ALLREDUCE) > 0.0
    moving = {OpKind.WIRE, OpKind.PACK, OpKind.D2H, OpKind.H2D, OpKind.SAMPLE}
    assert not moving & {op.kind for op in schedule.ops}


def test_at_rate_0_no_worker_waits_for_another_before_the_reduction(make: MakeFacts) -> None:
    ends = []
    for slope in (0.0, 0.6):
        run = simulate(build(make(rate=0.0, rows=0.0, slope=slope, per_server=1)), 1)
        (loss,) = [op.index for op in run.schedule.ops if op.kind is OpKind.LOSS and op.worker == 0]
        ends.append(int(run.ends[0, loss]))
    assert ends[0] == ends[1], "worker 0 has as much to do in both"


def test_owners_tell_how_many_and_which(make: MakeFacts) -> None:
    given = make(iterations=3, spread=0.5, slope=0.2, rate=0.3)
    schedule = build(given)
    document: dict[tuple[int, int], list[list[float]]] = {}
    for op in ids(schedule):
        document.setdefault((op.worker, op.peer), []).append(schedule.demand[:, op.index].tolist())
        assert op.route == given.cluster.between(op.worker, op.peer)
    assert set(document) == set(permutations(range(4), 2))
    for (owner, receiver), sent in document.items():
        assert sent == [[4.0] * 3, (4.0 * given.counts.rows[:, receiver, owner]).tolist()]


def test_everything_waits_for_the_drawn_graph(make: MakeFacts) -> None:
    run = simulate(build(make(slope=0.4, rate=0.3)), 3)
    schedule = run.schedule
    for rank in range(4):
        first = next(op for op in computing(schedule, rank) if op.kind not in (OpKind.SAMPLE, OpKind.INDEX))
        (packed,) = [
            op.index
            for op in schedule.ops
            if op.kind is OpKind.PACK and op.worker == rank and (op.layer, op.direction) == (0, FORWARD)
        ]
        heard = [op.index for op in ids(schedule) if op.peer == rank]
        for later in (first.index, packed):
            assert (run.starts[:, later] >= run.ends[:, heard].max(axis=1)).all()


def test_workers_on_cores_draw_and_build_on_the_thread_that_trains(on_cores: MakeFacts) -> None:
    given = on_cores(iterations=3, spread=0.5, rate=0.25, overlap=True)
    schedule, counts = build(given), given.counts
    for rank in range(4):
        queue = computing(schedule, rank)
        kinds = [op.kind for op in queue[:5]]
        assert kinds == [OpKind.SAMPLE, OpKind.INDEX, OpKind.INDEX, OpKind.AGGREGATE, OpKind.SCATTER]
        sent = counts.rows[:, :, rank].sum(axis=1).mean()
        assert schedule.demand[:, queue[0].index] == pytest.approx(sent / 0.25 / 1e8)
        crossing = counts.entries[rank] - counts.inner_edges[:, rank]
        built = boundary_core_seconds(given.host, crossing, counts.boundary_edges[:, rank], 20_000)
        assert schedule.demand[:, queue[1].index].tolist() == [0.0] * 3
        assert schedule.demand[:, queue[2].index].tolist() == built.tolist()


def test_workers_on_gpus_draw_on_the_host_and_pick_entries_on_the_device(facts: MakeFacts) -> None:
    given = facts(iterations=3, spread=0.5, rate=0.25)
    schedule, counts = build(given), given.counts
    for op in [op for op in schedule.ops if op.kind is OpKind.SAMPLE]:
        assert (op.route, op.cap, op.after) == (given.cluster.cores(op.worker), 1.0, ((schedule.ends[op.worker], 1),))
    for rank in range(4):
        picked = computing(schedule, rank)[0]
        assert picked.kind is OpKind.INDEX
        crossing = counts.entries[rank] - counts.inner_edges[:, rank]
        seconds = boundary_seconds(given.device, crossing, counts.boundary_edges[:, rank], 20_000)
        assert schedule.demand[:, picked.index].tolist() == seconds.tolist()
        ((copied, _),) = picked.after
        rows = counts.rows[:, rank].sum(axis=1) + counts.rows[:, :, rank].sum(axis=1)
        assert schedule.demand[:, copied].tolist() == (4.0 * rows).tolist()
