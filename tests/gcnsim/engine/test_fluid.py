"""Flows and spans of small runs, in both engines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from simpy.core import Environment

from gcnsim.cli import main
from gcnsim.engine import Run, compile_now, engine, simulate, timeline
from gcnsim.engine.fluid import Call, Fluid
from gcnsim.engine.run import Period, begun, link_rates
from gcnsim.schedule import Builder, Schedule
from gcnsim.timeline import KINDS, PS_PER_S, Direction, OpKind, Phase
from gcnsim.timeline.span import Span
from tests.cases import Case, method

S = PS_PER_S
Flow = tuple[tuple[int, ...], float | None]
Log = list[tuple[str, int]]


class Network:
    """Links of 10 units/s and a log of arrivals."""

    def __init__(self, links: int, flows: list[Flow]) -> None:
        self.env = Environment(initial_time=0)
        self.log: Log = []
        self.fluid = Fluid(self.env, [10.0] * links, flows, lambda token: self.log.append((token, int(self.env.now))))

    def send(self, flow: Flow, units: float, token: str, at: int = 0) -> None:
        group, bundle = self.fluid.place[flow]
        Call(self.env, lambda _: group.join(bundle, units, token), at)

    def run(self) -> Log:
        self.env.run()
        return self.log


def test_flows_of_equal_route_and_cap_are_one_bundle() -> None:
    place = Network(2, [((0,), None), ((0,), None), ((0,), 1.0), ((1,), None)]).fluid.place
    assert set(place) == {((0,), None), ((0,), 1.0), ((1,), None)}
    assert place[(0,), None][0] is place[(0,), 1.0][0]
    assert place[(0,), None][1] != place[(0,), 1.0][1]


def test_links_are_of_one_group_when_a_chain_of_routes_connects_them() -> None:
    place = Network(5, [((0, 1), None), ((1, 2), None), ((3,), None), ((4,), None)]).fluid.place
    groups = [id(place[route, None][0]) for route in ((0, 1), (1, 2), (3,), (4,))]
    assert groups[0] == groups[1]
    assert len(set(groups)) == 3


@pytest.mark.parametrize("others", [[], [((0,), 3.0)]])
def test_a_flow_may_join_and_leave_while_others_are_under_way(others: list[Flow]) -> None:
    flow: Flow = ((0,), None)
    net = Network(1, [flow, *others])
    net.send(flow, 100.0, "long")
    net.send(flow, 10.0, "short", at=2 * S)
    # 20 units alone, then halves until the short one has its 10 at 4 s, then 70 alone.
    assert net.run() == [("short", 4 * S), ("long", 11 * S)]


def test_a_flow_that_starts_when_another_ends_has_the_link_from_then_on() -> None:
    flow: Flow = ((0,), None)
    net = Network(1, [flow])
    net.send(flow, 10.0, "one")
    net.send(flow, 10.0, "two", at=S)
    assert net.run() == [("one", S), ("two", 2 * S)]


def test_equal_flows_arrive_in_the_order_they_joined() -> None:
    flow: Flow = ((0,), None)
    net = Network(1, [flow])
    for token in "cab":
        net.send(flow, 10.0, token)
    assert net.run() == [("c", 3 * S), ("a", 3 * S), ("b", 3 * S)]


def test_counts_return_to_zero() -> None:
    flow: Flow = ((0,), None)
    net = Network(1, [flow])
    for start in range(20):
        net.send(flow, 1.0 + start, f"{start}", at=start * S // 10)
    net.run()
    assert net.fluid.place[flow][0].counts == [0]
    assert len(net.log) == 20
    # A link that is never idle has carried everything when its bytes are through.
    assert net.log[-1][1] == pytest.approx(sum(range(1, 21)) / 10.0 * S, abs=20)


MakeBuilder = Callable[..., Builder]


def pairs(found: tuple[np.ndarray, np.ndarray]) -> list[tuple[float, float]]:
    """(second, bytes per second from then on)."""
    instants, rates = found
    return [(when / PS_PER_S, rate) for when, rate in zip(instants.tolist(), rates.tolist(), strict=True)]


def test_a_second_flow_takes_half_while_it_is_under_way(builder: MakeBuilder) -> None:
    # 30 B over both links from 0 s; 10 B over the second alone from 1 s: 10 B/s, then 5 and 5 until 3 s, then 10.
    b = builder(10.0, 10.0, 7.0)
    b.flow(OpKind.WIRE, 0, 30.0, (0, 1), stream="a")
    late = b.compute(OpKind.LOSS, 0, 1.0)
    other = b.flow(OpKind.WIRE, 0, 10.0, (1,), stream="b", after=(late,))
    run = simulate(b.close([other]), 1)
    found = link_rates(run)
    assert list(found) == ["wire0", "wire1"], "a link that carries nothing is left out"
    assert pairs(found["wire0"]) == [
        (0.0, pytest.approx(10)),
        (1.0, pytest.approx(5)),
        (3.0, pytest.approx(10)),
        (4.0, 0),
    ]
    assert pairs(found["wire1"]) == [(0.0, pytest.approx(10)), (4.0, 0)]
    assert (begun(run) == run.starts).all(), "nothing waits for a connection"


def test_links_without_a_common_flow_are_told_apart_and_caps_hold(builder: MakeBuilder) -> None:
    b = builder(10.0, 8.0)
    b.flow(OpKind.WIRE, 0, 12.0, (0,), stream="a", cap=4.0)
    last = b.flow(OpKind.WIRE, 0, 8.0, (1,), stream="b")
    found = link_rates(simulate(b.close([last]), 1))
    assert pairs(found["wire0"]) == [(0.0, pytest.approx(4)), (3.0, 0)]
    assert pairs(found["wire1"]) == [(0.0, pytest.approx(8)), (1.0, 0)]


def test_the_bytes_of_every_iteration_are_carried(builder: MakeBuilder) -> None:
    b = builder(10.0)
    b.flow(OpKind.WIRE, 0, 20.0, (0,), stream="a")
    last = b.compute(OpKind.LOSS, 0, 5.0)
    run = simulate(b.close([last]), 3)
    instants, rates = link_rates(run)["wire0"]
    carried = float((np.diff(instants) * rates[:-1]).sum()) / PS_PER_S
    assert carried == pytest.approx(3 * 20.0)
    assert rates[-1] == 0.0


def test_spans_of_a_run_by_hand(builder: Callable[..., Builder]) -> None:
    b = builder(10.0)
    one = b.compute(OpKind.UPDATE, 0, 1.0, layer=1, direction=Direction.FORWARD)
    sent = b.flow(OpKind.WIRE, 0, 20.0, (0,), stream="tx", after=[one], layer=1, direction=Direction.FORWARD, peer=0)
    b.flow(OpKind.WIRE, 0, 0.0, (0,), stream="none", after=[one])
    two = b.compute(OpKind.LOSS, 0, 1.0, after=[sent])
    spans = list(timeline(simulate(b.close([two]), 1)))
    assert spans == [
        Span(OpKind.UPDATE, 0, "gpu", 0, 1, Direction.FORWARD, -1, 0.0, 1.0, 0.0),
        Span(OpKind.WAIT, 0, "gpu", 0, -1, Direction.NONE, -1, 1.0, 3.0, 0.0),
        Span(OpKind.WIRE, 0, "tx", 0, 1, Direction.FORWARD, 0, 1.0, 3.0, 20.0),
        Span(OpKind.LOSS, 0, "gpu", 0, -1, Direction.NONE, -1, 3.0, 4.0, 0.0),
    ]


def test_the_compute_stream_has_no_gap_and_no_overlap(facts: Callable[..., Case]) -> None:
    run = simulate(method("psc-gcn")(facts(tau=2, sampled=True, iterations=5, spread=0.3, slope=0.1)), 12)
    spans = timeline(run)
    for stream in {int(s) for s in spans.stream[spans.kind == KINDS.index(OpKind.LOSS)]}:
        mine = spans.stream == stream
        assert spans.start_ps[mine][0] == 0
        assert (spans.start_ps[mine][1:] == spans.end_ps[mine][:-1]).all()


def test_bytes_of_spans_are_bytes_of_the_schedule(facts: Callable[..., Case]) -> None:
    schedule = method("psc-gcn")(facts(tau=1, sampled=True, iterations=3, spread=0.3))
    spans = timeline(simulate(schedule, 6))
    cpu = [op.route is not None and schedule.link_kinds[op.route[0]] == "cpu" for op in schedule.ops]
    flows = schedule.is_flow & ~np.array(cpu)
    assert spans.nbytes.sum() == 2 * schedule.demand[:, flows].sum()
    assert (spans.nbytes[spans.of_phase(Phase.COMPUTE, Phase.WAIT, Phase.OPTIMIZER)] == 0).all()


def test_spans_are_ordered_and_read_only(facts: Callable[..., Case]) -> None:
    spans = timeline(simulate(method("pipegcn")(facts()), 4))
    key = list(zip(spans.start_ps, spans.worker, spans.stream, strict=True))
    assert key == sorted(key)
    assert (spans.end_ps > spans.start_ps).all()
    assert not spans.start_ps.flags.writeable
    assert set(spans.iteration.tolist()) == {0, 1, 2, 3}


Builders = Callable[..., Builder]


@pytest.fixture
def schedule(builder: Builders) -> Schedule:
    b = builder(1.0)
    return b.close([b.compute(OpKind.STEP, 0, 1.0, after=[b.compute(OpKind.LOSS, 0, 1.0)])])


STARTS = np.array([[0, 5], [10, 16], [21, 25]])
ENDS = np.array([[5, 9], [16, 20], [25, 30]])


def test_the_last_iterations_are_repeated(schedule: Schedule) -> None:
    run = Run(schedule, STARTS, ENDS, 8, Period(2, 20))
    assert (run.iterations, run.simulated, run.by_period, run.finished_ops) == (8, 3, 5, 16)
    assert run.starts[3:].tolist() == [[30, 36], [41, 45], [50, 56], [61, 65], [70, 76]]
    assert run.ends[3:].tolist() == [[36, 40], [45, 50], [56, 60], [65, 70], [76, 80]]
    np.testing.assert_array_equal(run.ends[:3], ENDS)
    assert run.ends_of([1]).tolist() == run.ends[:, [1]].tolist()


def test_a_run_that_was_simulated_is_as_it_was(schedule: Schedule) -> None:
    run = Run(schedule, STARTS, ENDS, 3)
    assert (run.simulated, run.by_period) == (3, 0)
    assert run.starts is STARTS
    assert run.ends is ENDS


def test_what_nobody_asks_for_is_not_written_out(schedule: Schedule) -> None:
    run = Run(schedule, STARTS, ENDS, 10**15, Period(1, 10))
    assert run.by_period == 10**15 - 3
    assert run.finished_ops == 2 * 10**15


ROOT = Path(__file__).resolve().parents[3]
SCENARIOS = sorted((ROOT / "scenarios").glob("*.yaml"))
QUICK = ("pagraph-reddit.yaml", "reddit-6xt4.yaml", "reddit-6xt4-full-graph.yaml")
"""Scenarios that the reference engine answers in a moment."""


def answered(name: str, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints when the engine `name` simulates."""
    monkeypatch.setenv("GCNSIM_ENGINE", name)
    assert engine().name == name
    assert main(command) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(scenario, marks=() if scenario.name in QUICK else pytest.mark.slow, id=scenario.stem)
        for scenario in SCENARIOS
    ],
)
def test_both_engines_answer_alike(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compile_now() is None
    command = ["simulate", str(file), "--json"]
    both = [answered(name, command, monkeypatch, capsys) for name in ("reference", "compiled")]
    assert both[0] == both[1]
    assert json.loads(both[0])["result"]["iteration_s"] > 0


@pytest.mark.slow  # the reference engine takes most of a minute; test_choice.py has a smaller question
def test_both_engines_answer_the_default_question_alike(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compile_now() is None
    command = ["what-if", "--bandwidth", "15Gbps", "--gpus", "6", "--json"]
    both = [answered(name, command, monkeypatch, capsys) for name in ("reference", "compiled")]
    assert both[0] == both[1]
