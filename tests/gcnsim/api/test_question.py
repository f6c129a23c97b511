"""What a question is turned into before anything is simulated, and the two sides of a comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gcnsim
from gcnsim.api import question
from gcnsim.api.iterations import compare
from gcnsim.core.errors import FileError, GcnsimError, ScenarioError
from gcnsim.methods import COMPARED, methods
from gcnsim.planning.settings import Grid, scenarios
from gcnsim.scenario import SCHEMA, from_mapping
from gcnsim.scenario.what_if import WhatIf

MACHINES: dict[str, Any] = {"gpus": [6], "bandwidth": ["15Gbps"], "device": ["t4"]}
BASE = {"schema": SCHEMA, "cluster": {"gpus": 6, "bandwidth": "15Gbps"}}


def grid(*method: str, **knobs: list[Any]) -> Grid:
    return question._grid(from_mapping(BASE, "test"), list(method), MACHINES, knobs, {})


def test_all_methods_may_leave_out_those_that_nobody_named_or_compares() -> None:
    found = grid("all")
    assert set(found.methods) == set(methods())
    assert found.optional == set(methods()) - set(COMPARED)
    assert grid("all", "cagnet-1d").optional == found.optional - {"cagnet-1d"}
    assert grid("cagnet-1d").optional == frozenset(), "who is named must have a row"


def test_values_are_taken_once_and_in_their_order() -> None:
    found = grid("psc-gcn", tau=[2, 0], epsilon=[0.5, 0.1], cache=["30%"])
    assert (found.taus, found.epsilons) == ((2, 0), (0.5, 0.1))
    assert [cache.fraction for cache in found.caches] == [0.3]
    assert (found.gpus, found.devices, found.bandwidths) == ((6,), ("t4",), (15e9 / 8,))
    several = {"gpus": [1, 2, 2, 3, 2]}
    base = from_mapping(BASE, "test")
    assert question._distinct(several, "gpus", base) == (6, 2, 3), "the first as the scenario has it"


def test_a_knob_that_few_methods_have_takes_several_values_too() -> None:
    own, others = question._own_knobs(["method.batch=500,1000,500", "method.subgraph=5%,10%", "run.seed=3"])
    assert own == {"batch": (500, 1000), "subgraph": (0.05, 0.1)}
    assert others == ["run.seed=3"]
    assert question._own_knobs(["method.layer_sizes=400,200"])[0] == {"layer_sizes": ((400, 200),)}, (
        "one list, not two values"
    )
    with pytest.raises(ScenarioError, match=r"method\.batch: 'x' is not a whole number"):
        question._own_knobs(["method.batch=500,x"])
    found = question._grid(from_mapping(BASE, "test"), ["graphsage"], MACHINES, {}, {"batch": (500, 1000)})
    assert [row.method.values()["batch"] for row in scenarios(from_mapping(BASE, "test"), found)] == [500, 1000]


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"tau": [True]}, "method.tau: True is not a whole number"),
        ({"tau": [1.5]}, "method.tau: 1.5 is not a whole number"),
        ({"epsilon": ["x"]}, "method.epsilon: 'x' is not a number"),
        ({"cache": [30]}, r"method.cache: 30 has no unit; write 30% or 0.3"),
        ({"cache": [True]}, r"method.cache: True has no unit"),
    ],
)
def test_values_of_another_kind_are_refused(knobs: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(GcnsimError, match=message):
        grid("psc-gcn", **knobs)


@pytest.mark.parametrize("least", [0, -0.1, 1.01, True, "x"])
def test_a_least_rate_is_above_0_and_at_most_1(least: Any) -> None:
    with pytest.raises(ScenarioError, match="--min-sampling-rate"):
        question._rule(None, WhatIf(min_sampling_rate=least))
    assert question._rule(None, WhatIf(min_sampling_rate=1)).min_sampling_rate == 1.0


@pytest.mark.parametrize("most", [-1, 1.5, True, "2"])
def test_a_most_staleness_is_a_whole_number_of_iterations(most: Any) -> None:
    with pytest.raises(ScenarioError, match=f"--max-staleness: {most!r} is not allowed; a whole number"):
        question._rule(None, WhatIf(max_staleness=most))
    assert question._rule(None, WhatIf(max_staleness=0)).max_staleness == 0


def test_who_may_be_recommended() -> None:
    usual, named = question._rule(None, WhatIf()), question._rule(["all", "pipegcn"], WhatIf())
    assert (usual.methods, usual.named) == (COMPARED, False)
    assert (named.methods, named.named) == (("pipegcn",), True)
    assert set(question._rule(["pipegcn"], WhatIf(allow="all")).methods) == set(methods())


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"target_accuracy": 1.01}, "--target-accuracy: 1.01"),
        ({"target_accuracy": 0}, "--target-accuracy: 0"),
        ({"iterations_needed": {"psc-gcn": 0}}, "--iterations-needed: psc-gcn=0"),
        ({"iterations_needed": -1}, "--iterations-needed: -1"),
        ({"mtbf": "90d"}, "--mtbf: applies to a whole training; give --iterations-needed, or --target-accuracy"),
        ({"runs": ["a"]}, "--runs: only valid with --target-accuracy"),
        ({"gpus": []}, "an empty list of values"),
    ],
)
def test_what_a_question_cannot_ask(question: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        gcnsim.what_if(**question)


def test_names_are_of_a_profilers_trace(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="--names: neither A nor B is a profiler's trace"):
        compare(BASE, BASE, names=tmp_path / "names.yaml")
    (tmp_path / "result.json").write_text("{}")
    with pytest.raises(ScenarioError, match="--names: neither"):
        compare(tmp_path, BASE, names=tmp_path / "names.yaml")


@pytest.mark.parametrize(("source", "message"), [(" ", "is not a path"), ("no/such", "no/such: does not exist")])
def test_sides_that_are_not_there_are_refused(source: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        compare(source, BASE)
