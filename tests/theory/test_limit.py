"""What is named as the limit is the resource whose removal shortens the iteration most, by the reference engine.

A resource is removed here op by op, and the reference engine simulates more iterations than the answer does, so that
neither its pruning nor its windows are taken for granted. What is proven to bring nothing brings nothing, and no step
that is said to have no effect shortens the iteration by more than 1 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, seed, settings

from gcnsim.engine import simulate
from gcnsim.engine.reference import simulate as simulate_by_reference
from gcnsim.hardware.link_specs import LinkName
from gcnsim.planning.recommend import Rule
from gcnsim.planning.steps import _changes, next_steps
from gcnsim.planning.study import Studies
from gcnsim.scenario import SCHEMA, Scenario, from_mapping, load_scenario
from gcnsim.schedule import Schedule, bounds
from gcnsim.schedule.schedule import Op
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.limit import Limit, find_limit, gain_at_most
from gcnsim.simulation.metrics import at_least, measure
from gcnsim.simulation.steady import Steady
from gcnsim.timeline import PHASE, PS_PER_S, OpKind, Phase
from tests.theory.test_random_scenarios import METHODS, MakeFacts, RowScenario, besides, few, written

SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("*.yaml"))

CERTAIN = 0.01
"""Of the iteration: what a simulation of a few iterations cannot tell from nothing."""

LIKE = 0.05
"""Of the iteration: how far a share of few measured graphs may be from that of all, which differ up to threefold."""

Simulate = Callable[..., Any]


def resources(schedule: Schedule) -> dict[str, list[Op] | str]:
    """By kind of limit, its ops, or for links their kind."""
    found: dict[str, list[Op] | str] = {kind: kind for kind in schedule.link_kinds if kind != "cpu"}
    for op in schedule.ops:
        found.setdefault(_kind(schedule, op), []).append(op)  # type: ignore[union-attr]
        if op.kind is OpKind.ALLREDUCE and not _on_cores(schedule, op):
            found.setdefault("all-reduce", []).append(op)  # type: ignore[union-attr]
    del found["flow"]
    return found | {"latency": "latency"}


def _on_cores(schedule: Schedule, op: Op) -> bool:
    return bool(op.route) and all(schedule.link_kinds[link] == "cpu" for link in op.route or ())


def _kind(schedule: Schedule, op: Op) -> str:
    """What an op's own work is the work of."""
    if op.route is not None:
        return "cpu" if _on_cores(schedule, op) else "flow"
    apart = schedule.streams[op.stream].name != "gpu"
    return {
        Phase.COMPUTE: "compute",
        Phase.SAMPLING: "cpu" if apart else "sampling",
        Phase.TRANSFER: "packing",
        Phase.OPTIMIZER: "other",
        Phase.WAIT: "pause",
        Phase.REDUCE: "compute",
    }[PHASE[op.kind]]


def without(schedule: Schedule, what: list[Op] | str, owner: str = "") -> Schedule:
    """The schedule without a resource; owner: of this worker's ops or these links alone."""
    if what == "latency":
        columns = schedule.columns
        return replace(
            schedule, columns=columns.with_delays(0 * columns.latency_s, 0 * columns.startup_s, columns.queue)
        )
    if isinstance(what, str):
        fast = [
            capacity * (1e7 if kind == what and owner in ("", _owner(name)) else 1.0)
            for name, kind, capacity in zip(schedule.link_names, schedule.link_kinds, schedule.capacity, strict=True)
        ]
        return replace(schedule, capacity=tuple(fast))
    demand = schedule.demand.copy()
    for op in what:
        cores = _owner(schedule.link_names[op.route[0]]) if op.route else ""
        if not owner or owner in (cores, str(op.worker)):
            demand[:, op.index] = 0.0
    return replace(schedule, demand=demand)


def _owner(name: str) -> str:
    found = LinkName.of(name)
    return name if found is None else found.text


def pace(schedule: Schedule, run: Simulate, first: int, measured: int) -> float:
    """Mean seconds of iterations, at least the analytic bound."""
    found = run(schedule, first + measured, endless=True)
    closing = found.ends[:, list(schedule.ends)].max(axis=1)
    mean = float(closing[-1] - closing[first - 1]) / measured / PS_PER_S
    return max(mean, bounds(schedule).lower_s)


class Truth:
    """What removing each resource of a schedule brings, by an engine, over iterations of its own."""

    def __init__(self, schedule: Schedule, run: Simulate, first: int, measured: int) -> None:
        self.schedule, self.run, self.first, self.measured = schedule, run, first, measured
        self.every = resources(schedule)
        self.now = pace(schedule, run, first, measured)
        self.saved = {kind: self.without(what) for kind, what in self.every.items()}

    def without(self, what: list[Op] | str, owner: str = "") -> float:
        left = without(self.schedule, what, owner)
        return 1.0 - pace(left, self.run, self.first, self.measured) / self.now

    def kind_of(self, text: str, limit: Limit) -> str:
        """The kind that one of the names of a limit is of."""
        if text.startswith("all-reduce"):
            return "all-reduce"
        return "latency" if text.startswith("latency") else limit.kind

    def check(self, limit: Limit) -> None:
        """The limit is the resource without which the iteration is shortest, and its shares are right."""
        most = max(self.saved.values())
        text = f"{limit}: {self.saved}"
        if limit.share <= CERTAIN:
            assert most <= 2 * CERTAIN, text
            return
        assert limit.kind_share == pytest.approx(most, abs=LIKE), text
        if " or " in limit.text:
            return
        kind = self.kind_of(limit.text, limit)
        assert self.saved[kind] >= most - CERTAIN, text
        assert self.saved[kind] == pytest.approx(limit.kind_share, abs=LIKE), text
        if limit.text == limit.most:
            owner = limit.text.partition(" (")[0] if limit.link else str(limit.worker)
            alone = self.without(self.every[kind], owner)
            assert alone == pytest.approx(limit.share, abs=LIKE), text
            assert alone >= max(saved for other, saved in self.saved.items() if other != kind) - CERTAIN, text


def found_limit(schedule: Schedule) -> tuple[Limit, Callable[[tuple[str, ...]], float]]:
    """The limit as an answer has it, and what kinds of resources are proven to bring no more than."""
    judge = Steady(schedule, 10)
    run = simulate(schedule, judge.most, judge.enough, endless=True)
    first = judge.window(run.ends).first
    seconds = at_least(measure(run, first), bounds(schedule).lower_s).iteration_s
    return find_limit(run, first, seconds, 10), lambda kinds: gain_at_most(run, first, seconds, kinds)


def check_random(facts: MakeFacts, row_scenario: RowScenario) -> None:
    schedule = written(facts, row_scenario)
    limit, at_most = found_limit(schedule)
    first = 20 + 10 * schedule.depth
    truth = Truth(schedule, simulate_by_reference, first, 20)
    truth.check(limit)
    for field, kind in (("nic", "nic"), ("pcie", "pcie"), ("cores", "cpu")):
        proven = at_most((kind, "rack"))
        if proven <= CERTAIN:
            faster = pace(
                written(facts, row_scenario, **{field: 2.0 * row_scenario[field]}), simulate_by_reference, first, 20
            )
            assert 1.0 - faster / truth.now <= 2 * CERTAIN, (field, proven, row_scenario)


@given(asked=besides(METHODS))
@settings(few, max_examples=10)
@seed(42)
def test_the_limit_of_random_clusters(facts: MakeFacts, asked: RowScenario) -> None:
    check_random(facts, asked)


@pytest.mark.slow
@given(asked=besides(METHODS))
@settings(few, max_examples=500)
@seed(42)
def test_the_limit_of_many_random_clusters(facts: MakeFacts, asked: RowScenario) -> None:
    check_random(facts, asked)


def checked(scenario: Scenario) -> None:
    """The limit of a scenario, over whole rounds of its graphs."""
    result = simulate_scenario(scenario)
    schedule = result.run.schedule
    rounds = 1 if (schedule.demand == schedule.demand[0]).all() else schedule.demand.shape[0]
    # Many workers that pipeline settle late, and their iterations vary.
    late = schedule.depth > 0 and scenario.cluster.gpus > 16
    first = 40 if late else 4 + 4 * schedule.depth
    engine = simulate_by_reference if schedule.columns.size * rounds <= FEW_OPS else simulate
    Truth(schedule, engine, first, max(rounds, 30 if late else 6)).check(result.limit)


FEW_OPS = 2000
"""Ops of all graphs that the reference engine simulates in a moment. The compiled one gives the same picoseconds."""


def each_scenario(*long: str) -> list[Any]:
    """The scenarios as parameters, `long` of them in the slow run alone."""
    assert {*long} <= {scenario.stem for scenario in SCENARIOS}
    return [
        pytest.param(scenario, id=scenario.stem, marks=[pytest.mark.slow] * (scenario.stem in long))
        for scenario in SCENARIOS
    ]


MANY_OPS = ("pipegcn-ogbn-papers100M", "pipegcn-ogbn-products", "bns_gcn-ogbn-papers100M", "bns_gcn-ogbn-products")
"""Scenarios whose resources take longest to remove: those of fewer GPUs have the same methods and machines."""


@pytest.mark.parametrize("path", each_scenario(*MANY_OPS, "bns_gcn-yelp-gat", "bns_gcn-reddit-inputs"))
def test_the_limit_of_the_scenarios(path: Path) -> None:
    checked(load_scenario(path))


def effects(base: Scenario) -> Iterator[tuple[str, float]]:
    """Of the steps that are said to have no effect, by what share they do shorten the iteration."""
    studies, rule = Studies(base), Rule((base.method.name,), named=True)
    _, idle = next_steps(studies, base, rule)
    now = studies.result(base).metrics.iteration_s
    knobs = {no_effect.knob: no_effect.why for no_effect in idle if " -> " in no_effect.why}
    for move in _changes(base, rule):
        if (why := knobs.get(move.knob)) and f"{move.start} -> {move.end} " in why:
            yield f"{move.knob}: {why}", 1.0 - studies.result(move.scenario, even=move.even).metrics.iteration_s / now


LONG = ("pipegcn-ogbn-papers100M", "bns_gcn-ogbn-papers100M", "sancus-1", "sancus-2", "v100-reddit")
"""Scenarios whose steps take some 10 seconds: many GPUs, or the draws of methods that broadcast blocks."""


@pytest.mark.parametrize("path", each_scenario(*LONG))
def test_what_has_no_effect_on_the_scenarios_shortens_nothing(path: Path) -> None:
    for why, gain in effects(load_scenario(path)):
        assert gain < CERTAIN, why


def drawn_scenario(draw: np.random.Generator) -> Scenario:
    """A machine and a setting at random."""
    name = str(draw.choice(METHODS))
    method: dict[str, Any] = {"name": name}
    if name == "psc-gcn":
        method |= {"tau": int(draw.integers(0, 3)), "epsilon": float(draw.choice([0.05, 0.2, 1.0])), "cache": "20%"}
    if name == "bns-gcn":
        method |= {"rate": float(draw.choice([0.05, 0.2]))}
    cluster = {
        "gpus": int(draw.choice([2, 4, 6])),
        "gpus_per_server": int(draw.choice([1, 2])),
        "bandwidth": str(draw.choice(["1Gbps", "10Gbps", "100Gbps"])),
        "device": str(draw.choice(["t4", "v100-16", "a100-40"])),
    }
    requested = {"schema": SCHEMA, "cluster": cluster, "method": method, "run": {"iterations": 6}}
    return from_mapping(requested | {"workload": {"dataset": str(draw.choice(["reddit", "yelp"]))}}, "test")


@pytest.mark.parametrize(
    "number", [*range(3), *(pytest.param(index, marks=pytest.mark.slow) for index in range(3, 60))]
)
def test_of_random_questions_too(number: int) -> None:
    scenario = drawn_scenario(np.random.default_rng(number))
    checked(scenario)
    for why, gain in effects(scenario):
        assert gain < CERTAIN, why
