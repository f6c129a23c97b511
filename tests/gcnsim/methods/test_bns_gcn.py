"""`bns-gcn`: a share of the boundary nodes, drawn and announced before anything else of an iteration."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest

from gcnsim.cost import boundary_core_seconds, boundary_seconds
from gcnsim.engine import simulate
from gcnsim.schedule import COMPUTE_STREAM, Schedule
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import Direction, OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
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


def test_one_worker_draws_nothing(make: MakeFacts) -> None:
    schedule = build(make(workers=1, per_server=1, rate=0.1))
    assert not {OpKind.SAMPLE, OpKind.INDEX, OpKind.WIRE} & {op.kind for op in schedule.ops}


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


def test_fewer_nodes_are_never_slower(make: MakeFacts, pace: Pace) -> None:
    times = [pace(build(make(rate=rate, rows=4000 * rate, nic=2e8))) for rate in (0.0, 0.05, 0.2, 0.6, 0.99)]
    assert np.all(np.diff(times) > 0)
