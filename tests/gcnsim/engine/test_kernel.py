"""The kernel, as it stands and compiled, gives the reference engine's own picoseconds: every start and every end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import IntArray
from gcnsim.engine import compile_now
from gcnsim.engine.kernel import driver, store
from gcnsim.engine.kernel.driver import Kernel, blocks, layout, simulate_by
from gcnsim.engine.kernel.memory import RATES, WORDS, Known, packed, real, whole
from gcnsim.engine.kernel.run import run as uncompiled
from gcnsim.engine.kernel.store import LoadedKernel
from gcnsim.engine.kernel.trial import sample
from gcnsim.engine.reference import simulate
from gcnsim.engine.run import Run
from gcnsim.engine.stopping import StopCondition
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.topology import Cluster
from gcnsim.methods import every_method
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.schedule import Builder, Schedule
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.faults import apply_transient_faults
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.run import write_schedule
from gcnsim.simulation.source import RangeEnd
from gcnsim.timeline import OpKind
from tests.measured_files import measured_file, write_graph


@pytest.fixture(scope="session")
def kernel() -> Kernel:
    """The compiled kernel; where there is none it is compiled first."""
    problem = compile_now()
    assert problem is None, problem
    return LoadedKernel(*store.read(store.path()))


def same(found: Run, expected: Run) -> None:
    """Fails where the two differ in a picosecond, or in how many iterations there are."""
    assert found.ends.shape == expected.ends.shape
    np.testing.assert_array_equal(found.starts, expected.starts)
    np.testing.assert_array_equal(found.ends, expected.ends)


def compare(
    schedule: Schedule, iterations: int, kernels: Sequence[Kernel], enough: StopCondition | None = None
) -> None:
    """Run `schedule` by the reference engine and by each of `kernels`, each of which may be asked differently often."""
    expected = simulate(schedule, iterations, enough)
    for kernel in kernels:
        same(simulate_by(kernel, schedule, iterations, enough), expected)


def at(count: int) -> StopCondition:
    """Enough at `count` iterations."""
    return lambda ends: ends.shape[0] >= count


@pytest.mark.parametrize(("name", "gpus"), [("psc-gcn", 3), ("full-graph", 8)])
def test_what_is_laid_out_once_for_a_structure_is_right_for_other_figures(name: str, gpus: int) -> None:
    # Eight GPUs on servers of their own share their links as a matrix.
    cluster = {"gpus": gpus, "gpus_per_server": 1, "bandwidth": "10Gbps"}
    base = from_mapping({"schema": SCHEMA, "cluster": cluster, "method": {"name": name}}, "test")
    accesses = open_source(base)
    features = resolve_model(base.workload, accesses.declared).features
    first = write_schedule(base, accesses.counts(base, features, RangeEnd.LIKELY), accesses)
    kept_of = [len(first.columns._found) for most in (3, 4, 2) if blocks(first, most)]
    assert kept_of == kept_of[:1] * 3, "the last layout alone is kept"
    columns = first.columns.with_delays(
        2.0 * first.columns.latency_s, 0.5 * first.columns.latency_s, 1.0 + first.columns.queue
    )
    moved = replace(
        first,
        columns=columns,
        demand=1.5 * first.demand,
        capacity=tuple(value * (1.0 + index / 8.0) for index, value in enumerate(first.capacity)),
    )
    again = replace(moved, columns=replace(columns))
    assert again.columns._found == {}
    kept, fresh, new = (
        [*(whole(ints, place) for place in range(WORDS)), *(real(ints, floats, place) for place in range(RATES))]
        for ints, floats in (blocks(moved, 2), blocks(again, 2), packed(layout(again, 2)))
    )
    for one, other, third in zip(kept, fresh, new, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)
    same(simulate_by(uncompiled, moved, 2), simulate(again, 2))


# ---- random networks


def cluster(draw: Callable[..., Any]) -> Cluster:
    """A few links, some with queues, and a machine on whose cores threads take turns."""
    some = st.sampled_from([0.0, 0.0, 0.25, 1.0, 3.0])
    links = []
    for index in range(draw(st.integers(1, 5))):
        capacity = draw(st.sampled_from([1.0, 10.0, 0.3, 7.7]) | st.floats(0.1, 50.0))
        latency = draw(some)
        spec = LinkSpec(capacity, latency, latency * draw(st.sampled_from([0.0, 0.5, 1.0])), draw(some))
        links.append(Link(f"wire{index}", "nic", "a", "b", spec))
    count = draw(st.integers(1, 3))
    together = draw(st.sampled_from([1.0, 0.9])) * count
    slice_s, wakes = draw(st.sampled_from([0.1, 1.0])), draw(st.sampled_from([None, 0.0, 0.1, 1.0]))
    cores = LinkSpec(together, cores=count, slice_s=slice_s, wake_s=None if wakes is None else wakes * slice_s)
    return Cluster((0,), (*links, Link("cpu", "cpu", "a", "b", cores)))


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """Ops of every kind on few streams, amounts that recur and that do not, waits of several iterations, buffers."""
    where = cluster(draw)
    wires, graphs = len(where.links) - 1, draw(st.integers(1, 3))
    builder = Builder("random", where, graphs)
    amount = st.sampled_from([0.0, 1.0, 1.0, 2.0]) | st.floats(1e-3, 9.0)
    for op in range(draw(st.integers(1, 16))):
        work = np.array(draw(st.lists(amount, min_size=graphs, max_size=graphs)))
        after = draw(st.lists(st.tuples(st.integers(0, max(0, op - 1)), st.integers(0, 3)), max_size=3 if op else 0))
        stream = f"s{draw(st.integers(0, 7))}"
        kind = draw(st.sampled_from(["delay", "flow", "flow", "flow", "task"]))
        if kind == "delay":
            builder.compute(OpKind.LOSS, 0, work, after=after, stream=stream)
        elif kind == "task":
            builder.flow(OpKind.LOSS, 0, work, (wires,), stream=stream, after=after, cap=1.0,
                         thread=f"t{draw(st.integers(0, 4))}")  # fmt: skip
        else:
            way = st.lists(st.integers(0, wires - 1), min_size=1, max_size=3, unique=True).map(tuple)
            cap = draw(st.sampled_from([None, None, 0.7, 5.0]))
            connection = draw(st.sampled_from([None, None, "c0", "c1"]))
            builder.flow(OpKind.WIRE, 0, work, draw(way), stream=stream, after=after, cap=cap, connection=connection)
    last = builder.compute(OpKind.STEP, 0, 0.125, after=[(op, draw(st.integers(0, 2))) for op in range(2)][: op + 1])
    if draw(st.booleans()):
        builder.wait_for(0, (last, draw(st.integers(1, 3))))
    return builder.close([last])


many = settings(suppress_health_check=list(HealthCheck), derandomize=True, phases=[Phase.generate])


@settings(many, max_examples=30)
@given(schedules(), st.integers(1, 9), st.integers(1, 9))
def test_random_networks(kernel: Kernel, schedule: Schedule, iterations: int, asked: int) -> None:
    compare(schedule, iterations, [uncompiled, kernel], at(asked))


@pytest.mark.slow
@settings(many, max_examples=1500)
@given(schedules(), st.integers(1, 12), st.integers(1, 12))
def test_many_random_networks(kernel: Kernel, schedule: Schedule, iterations: int, asked: int) -> None:
    compare(schedule, iterations, [uncompiled, kernel], at(asked))


def pairs(draw: Callable[..., Any], servers: int) -> Schedule:
    """Flows between all pairs of servers, so many that links are shared as a matrix; some pairs have none."""
    some = st.sampled_from([1.0, 2.0, 3.0]) | st.floats(0.1, 9.0)
    capacity = draw(st.lists(some, min_size=2 * servers, max_size=2 * servers))
    links = tuple(Link(f"l{index}", "nic", "a", "b", LinkSpec(item, 0.1)) for index, item in enumerate(capacity))
    builder = Builder("pairs", Cluster((0,), links), 1)
    flows: list[int] = []
    for one, other in permutations(range(servers), 2):
        for copy in range(draw(st.sampled_from([0, 1, 1, 1, 2]))):
            after = flows[-1:] if draw(st.integers(0, 4)) == 0 else []
            route, units = (one, servers + other), draw(some)
            flows.append(builder.flow(OpKind.WIRE, 0, units, route, stream=f"{one}>{other}.{copy}", after=after))
    return builder.close(
        [builder.compute(OpKind.STEP, 0, 0.5, after=[(flow, index % 2) for index, flow in enumerate(flows)])]
    )


@settings(many, max_examples=8)
@given(st.data())
def test_all_pairs(kernel: Kernel, data: st.DataObject) -> None:
    schedule = pairs(data.draw, data.draw(st.integers(6, 9)))
    compare(schedule, 3, [uncompiled, kernel])


@pytest.mark.slow
@settings(many, max_examples=150)
@given(st.data())
def test_many_all_pairs(kernel: Kernel, data: st.DataObject) -> None:
    schedule = pairs(data.draw, data.draw(st.integers(6, 18)))
    compare(schedule, 4, [kernel])


# ---- methods and machines


def scenario(name: str, **sections: Any) -> Scenario:
    return from_mapping({"schema": SCHEMA, "method": {"name": name}, **sections}, "test")


def written(given: Scenario) -> Schedule:
    accesses = open_source(given)
    counts = accesses.counts(given, resolve_model(given.workload, accesses.declared).features, RangeEnd.LIKELY)
    return write_schedule(given, counts, accesses)


def unequal(schedule: Schedule) -> Schedule:
    """`schedule` with the work of each op times a number of its own."""
    factors = 0.5 + (np.arange(schedule.demand.size) * 0.6180339887) % 1.0
    return replace(schedule, demand=schedule.demand * factors.reshape(schedule.demand.shape))


def test_every_method(kernel: Kernel) -> None:
    compared = []
    for name in every_method():
        try:
            schedule = written(scenario(name, cluster={"gpus": 4}))
        except ScenarioError:  # asks for a graph, or a number of workers of its own
            continue
        compare(schedule, 4, [kernel])
        compare(unequal(schedule), 4, [kernel])
        compared.append(name)
    assert len(compared) >= 8
    assert {"full-graph", "pipegcn", "psc-gcn", "bns-gcn"} <= set(compared)


MACHINES: Sequence[dict[str, Any]] = (
    {"gpus": 8, "servers_per_rack": 2, "oversubscription": 3.0},
    {"gpus": 8, "sockets": "cores"},
    {"gpus": 6, "allreduce": "tree"},
    {"gpus": 6, "transfers": "serial"},
)


@pytest.mark.parametrize("place", range(len(MACHINES)), ids=lambda place: " ".join(MACHINES[place]))
def test_machines(kernel: Kernel, place: int) -> None:
    try:
        schedule = written(scenario("psc-gcn", cluster=MACHINES[place]))
    except ScenarioError as error:
        pytest.fail(str(error))
    compare(schedule, 5, [kernel])
    compare(unequal(schedule), 5, [kernel], at(3))


def test_cores(kernel: Kernel, tmp_path: Path) -> None:
    graph, core = write_graph(tmp_path), {"kind": "cpu", "name": "a core"}
    path = measured_file(tmp_path, graph, 4, [("psc-gcn", {"epsilon": 0.5})], device=core)
    cluster = {"gpus_per_server": 1, "measured_compute": str(path)}
    knobs = {"name": "psc-gcn", "epsilon": 0.5}
    mapping = {"schema": "gcnsim.scenario/1", "cluster": cluster, "workload": {"graph": str(graph)}, "method": knobs}
    schedule = written(from_mapping(mapping, "test"))
    compare(schedule, 5, [kernel])
    compare(unequal(schedule), 5, [kernel], at(3))


@pytest.mark.parametrize(
    ("name", "gpus", "iterations"),
    [
        ("full-graph", 6, 30),
        ("pipegcn", 6, 30),
        ("psc-gcn", 6, 30),
        pytest.param("pipegcn", 16, 5, marks=pytest.mark.slow),
        pytest.param("psc-gcn", 16, 5, marks=pytest.mark.slow),
    ],
)
def test_pipelines_for_many_iterations(kernel: Kernel, name: str, gpus: int, iterations: int) -> None:
    schedule = written(scenario(name, cluster={"gpus": gpus}))
    compare(schedule, iterations, [kernel])
    compare(unequal(schedule), iterations, [kernel])


def test_faults(kernel: Kernel) -> None:
    faults = [
        {"kind": "slow-gpu", "worker": 1, "factor": 2.0, "first": 1, "last": 2},
        {"kind": "pause", "worker": 0, "iteration": 1, "seconds": "50ms"},
        {"kind": "jitter", "on": "compute", "cv": 0.5},
    ]
    given = scenario("psc-gcn", cluster={"gpus": 4}, faults=faults)
    hit = apply_transient_faults(written(given), given.faults, 4, 4, 7)
    compare(hit, 8, [uncompiled, kernel])


def test_a_study_is_the_same_whoever_simulates(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    given = scenario("psc-gcn", cluster={"gpus": 4})
    runs = []
    for name in ("reference", "compiled"):
        monkeypatch.setenv("GCNSIM_ENGINE", name)
        runs.append(simulate_scenario(given).run)
    same(*runs)


# ---- details


def test_what_every_new_kernel_is_tried_on(kernel: Kernel) -> None:
    compare(sample(), 9, [uncompiled, kernel])


def test_a_run_asks_after_every_iteration_what_the_reference_asks(kernel: Kernel) -> None:
    schedule = written(scenario("pipegcn", cluster={"gpus": 4}))
    heard: list[list[IntArray]] = []
    for one in (simulate, partial(simulate_by, kernel)):
        requested: list[IntArray] = []

        def enough(ends: IntArray, requested: list[IntArray] = requested) -> bool:
            requested.append(ends.copy())
            return len(requested) == 4

        assert one(schedule, 20, enough).iterations == 4
        heard.append(requested)
    assert len(heard[0]) == len(heard[1]) == 4
    for mine, theirs in zip(*heard, strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("copies", [15, 16])
def test_more_flows_of_a_kind_than_are_remembered(kernel: Kernel, copies: int) -> None:
    links = tuple(Link(f"l{index}", "nic", "a", "b", LinkSpec(1.0 + index, 0.1)) for index in range(3))
    builder = Builder("many", Cluster((0,), links), 1)
    flows = [
        builder.flow(OpKind.WIRE, 0, 1.0 + index % 3, route, stream=f"{route} {index}", cap=cap)
        for route, cap in (((0, 1), None), ((1, 2), None), ((1,), 0.5))
        for index in range(copies)
    ]
    schedule = builder.close([builder.compute(OpKind.STEP, 0, 0.5, after=flows[::2])])
    compare(schedule, 6, [uncompiled, kernel])


@pytest.mark.parametrize("gpus", [3, 8])
def test_rates_are_those_remembered_where_the_same_flows_meet_again(
    kernel: Kernel, gpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedule = written(scenario("psc-gcn", cluster={"gpus": gpus, "gpus_per_server": 1, "bandwidth": "10Gbps"}))
    expected = simulate(schedule, 3)
    for one in (uncompiled, kernel):
        ran, wrong = blocks(schedule, 3), blocks(schedule, 3)
        real(*ran, RATES)[:] = 0.0
        with monkeypatch.context() as patched:
            patched.setattr(driver, "blocks", lambda *_, ran=ran: ran)
            same(simulate_by(one, schedule, 3), expected)
            words, rates = whole(ran[0], WORDS), real(*ran, RATES)
            assert words.any()
            whole(wrong[0], WORDS)[:], real(*wrong, RATES)[:] = words, 0.5 * rates
            patched.setattr(driver, "blocks", lambda *_, wrong=wrong: wrong)
            assert simulate_by(one, schedule, 3).ends[-1].max() > expected.ends[-1].max()


def test_room_of_one_figure_is_room_for_zeros_alone() -> None:
    builder = Builder("one", Cluster((0,), (Link("l", "nic", "a", "b", LinkSpec(1.0)),)), 1)
    state = layout(builder.close([builder.compute(OpKind.LOSS, 0, 1.0)]), 1)
    filled = Known(np.broadcast_to(np.int64(-1), 3), np.broadcast_to(0.5, 3))
    ints, floats = packed(state._replace(known=filled))
    assert whole(ints, WORDS).tolist() == [-1] * 3
    assert real(ints, floats, RATES).tolist() == [0.5] * 3


def test_groups_that_are_shared_once_per_grain_remember_nothing() -> None:
    schedule = written(scenario("psc-gcn", cluster={"gpus": 8, "gpus_per_server": 1, "bandwidth": "10Gbps"}))
    exact, coarse = layout(schedule, 1), layout(replace(schedule, grain_s=1e-4), 1, large=1)
    assert exact.links.slots.any()
    assert coarse.grains.grouped.any()
    assert not coarse.links.slots[coarse.grains.grouped > 0].any()
    assert coarse.known.rates.size < exact.known.rates.size
    assert (np.diff(coarse.links.word_at) > 0).all()


def test_iterations_of_no_work_are_all_complete_at_once(kernel: Kernel) -> None:
    builder = Builder("nothing", Cluster((0,), (Link("l", "nic", "a", "b", LinkSpec(1.0)),)), 1)
    last = builder.compute(OpKind.LOSS, 0, 0.0)
    schedule = builder.close([last])
    for requested in (None, at(1), at(3)):
        compare(schedule, 5, [uncompiled, kernel], requested)
