"""Exact and coarse runs: which is chosen, what is said of it, what it is wrong by and what it costs the interval."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import gcnsim
from gcnsim.core.errors import ScenarioError
from gcnsim.core.schemas import schema_of
from gcnsim.engine import compile_now
from gcnsim.scenario import SCHEMA, Scenario, from_mapping, scenario_hash, to_mapping
from gcnsim.schedule import bounds
from gcnsim.simulation import GRAIN, simulate_scenario, wrong_by
from gcnsim.simulation.time_limit import fidelity

WRONG = 0.0035
"""What docs/design.md says of coarse runs."""


@pytest.fixture(autouse=True, scope="module")
def _compiled() -> None:
    """Simulated by the compiled engine."""
    assert compile_now() is None


def make_scenario(method: str = "psc-gcn", *, gpus: int = 16, **run: Any) -> Scenario:
    mapping = {"schema": SCHEMA, "method": {"name": method}, "cluster": {"gpus": gpus}, "run": run}
    return from_mapping(mapping, "test")


@pytest.mark.parametrize(
    ("gpus", "given", "expected"),
    [
        (191, None, "exact"),
        (192, None, "coarse"),
        (1024, "auto", "coarse"),
        (1024, "exact", "exact"),
        (2, "coarse", "coarse"),
    ],
)
def test_it_is_exact_below_192_gpus_unless_asked(gpus: int, given: str | None, expected: str) -> None:
    run = {} if given is None else {"fidelity": given}
    assert fidelity(make_scenario(gpus=gpus, **run)) == expected


def test_scenarios_that_say_nothing_of_it_are_as_before() -> None:
    assert "fidelity" not in to_mapping(make_scenario())["run"]
    assert scenario_hash(make_scenario(fidelity="auto")) == scenario_hash(make_scenario())
    coarse = make_scenario(fidelity="coarse")
    assert scenario_hash(coarse) != scenario_hash(make_scenario())
    assert from_mapping(to_mapping(coarse), "test") == coarse
    with pytest.raises(ScenarioError, match=r"run\.fidelity: unknown fidelity 'fine'; known: auto, coarse, exact"):
        make_scenario(fidelity="fine")


@pytest.mark.parametrize("method", ["full-graph", "pipegcn", "psc-gcn"])
def test_a_coarse_answer_is_the_exact_one_but_for_what_it_says(method: str) -> None:
    exact, coarse = (simulate_scenario(make_scenario(method, fidelity=text)) for text in ("exact", "coarse"))
    assert (exact.fidelity, coarse.fidelity) == ("exact", "coarse")
    assert (wrong_by(exact.run.schedule), wrong_by(coarse.run.schedule)) == (0.0, WRONG)
    lower_s = bounds(replace(coarse.run.schedule, grain_s=0.0)).lower_s
    assert coarse.run.schedule.grain_s == pytest.approx(GRAIN * lower_s)
    now, before = coarse.metrics.iteration_s, exact.metrics.iteration_s
    assert now != before
    assert coarse.low_s <= before <= coarse.high_s
    if method == "full-graph":
        assert now == pytest.approx(before, rel=2e-3)
        assert coarse.high_s / now == pytest.approx(exact.high_s / before + WRONG)


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCNSIM_ENGINE", "reference")


@pytest.mark.usefixtures("reference")
def test_without_the_compiled_engine_it_is_refused() -> None:
    why = r"needs the compiled engine \(GCNSIM_ENGINE is reference\); allowed: exact"
    with pytest.raises(ScenarioError, match=rf"^run\.fidelity: coarse, which {why}$"):
        simulate_scenario(make_scenario(gpus=4, fidelity="coarse"))
    with pytest.raises(ScenarioError, match=rf"^run\.fidelity: auto is coarse from 192 GPUs, which {why}$"):
        simulate_scenario(make_scenario("full-graph", gpus=192))
    assert simulate_scenario(make_scenario(gpus=4)).fidelity == "exact"


def test_a_simulated_scenario_says_how_closely() -> None:
    given = to_mapping(make_scenario("full-graph"))
    exact = gcnsim.simulate(given)
    assert exact.payload["run"]["fidelity"] == "exact"
    assert "grain_s" not in exact.payload["run"]
    assert "coarse" not in str(exact)
    coarse = gcnsim.simulate(given, ["run.fidelity=coarse"])
    schema = dict(schema_of("result"))
    Draft202012Validator(schema).validate(json.loads(json.dumps(coarse.payload)))
    content = coarse.payload["run"]
    assert (content["fidelity"], content["grain_s"], content["error"]) == (
        "coarse",
        coarse.result.run.schedule.grain_s,
        WRONG,
    )
    assert "iterations simulated coarsely (busy links shared every " in str(coarse)
    assert any("run.fidelity" in text for text in coarse.payload["provenance"]["warnings"])


def test_a_what_if_says_which_rows_are_coarse() -> None:
    answer = gcnsim.what_if(gpus=8, method="full-graph", fidelity="coarse", processes=1)
    (warning,) = [text for text in answer.payload["provenance"]["warnings"] if "coarsely" in text]
    assert warning == (
        "simulated coarsely: busy links are shared 10,000 times in an iteration, not at every instant; intervals are "
        "0.35 % wider either way (run.fidelity: exact takes longer)"
    )
    exact = gcnsim.what_if(gpus=8, method="full-graph", fidelity="exact", processes=1)
    assert not [text for text in exact.payload["provenance"]["warnings"] if "coarsely" in text]
