"""`method.overlap` in a what-if: of every row that waits for rows, as `simulate` answers for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gcnsim.api import simulate, what_if
from gcnsim.core.errors import ScenarioError
from gcnsim.methods import create_method
from gcnsim.methods.psc_gcn import PscGcn
from gcnsim.planning.candidate import canonical
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.workload.caching import CacheSize

CENTRAL = "method.overlap=central"


def with_knobs(scenario: Scenario, tau: int, epsilon: float, cache: CacheSize) -> Scenario:
    """The scenario with these knobs of psc-gcn, under the simplest method that has them."""
    general = PscGcn.as_this_method(scenario.method)
    assert general is not None
    return canonical(replace(scenario, method=general.with_knobs(tau=tau, epsilon=epsilon, cache=cache)))


def answer_of(**question: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"gpus": 2, "iterations": 3, "overrides": [CENTRAL], "processes": 1}
    return dict(what_if(**given | question).payload)


def simulated(**method: Any) -> dict[str, Any]:
    mapping = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2}, "method": method, "run": {"iterations": 3}}
    return dict(simulate(mapping).payload["result"])


def test_what_if_answers_as_simulate_does() -> None:
    payload = answer_of(method=["full-graph", "pipegcn", "psc-gcn"], tau=[0, 1], epsilon=[1.0, 0.1])
    for row in payload["results"]:
        knobs = {name: row[name] for name in ("tau", "epsilon")} if row["method"] == "psc-gcn" else {}
        overlap = "none" if row["tau"] else "central"
        assert row["setting"] == ("" if row["tau"] else "overlap central")
        assert row["iteration_s"] == simulated(name=row["method"], overlap=overlap, **knobs)["iteration_s"]
    (full,) = (row for row in payload["results"] if row["method"] == "full-graph")
    assert full["speedup_vs_full_graph"] == 1.0
    assert full["iteration_s"] < simulated(name="full-graph")["iteration_s"]


def test_simpler_equals_keep_it() -> None:
    scenario = from_mapping({"schema": "gcnsim.scenario/1", "method": {"tau": 0, "overlap": "central"}}, "test")
    whole = with_knobs(scenario, 0, 1.0, CacheSize.none())
    assert whole.method == create_method("full-graph", overlap="central")
    assert with_knobs(whole, 0, 0.5, CacheSize.none()).method.overlap == "central"
    assert with_knobs(scenario, 1, 1.0, CacheSize.none()).method == create_method("pipegcn")
    bns = from_mapping(
        {"schema": "gcnsim.scenario/1", "method": {"name": "bns-gcn", "rate": 1.0, "overlap": "central"}}, "test"
    )
    assert canonical(bns).method == whole.method


def test_where_no_row_has_one_it_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"method.overlap: central is not allowed; psc-gcn at tau 2 does not wait"):
        answer_of(method=["psc-gcn", "pipegcn"])
