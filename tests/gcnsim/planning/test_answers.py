"""What an answer says: outline, verdict, machines, overlap, what to measure first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim import hardware
from gcnsim.api import simulate, what_if
from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import FloatArray
from gcnsim.methods import create_method
from gcnsim.methods.psc_gcn import PscGcn
from gcnsim.planning import alternatives
from gcnsim.planning.alternatives import least_gpus
from gcnsim.planning.answer import confidence_text, times_as_fast
from gcnsim.planning.candidate import canonical
from gcnsim.planning.certainty import how_to_measure, measure_first
from gcnsim.planning.recommend import Choice
from gcnsim.planning.study import Studies
from gcnsim.results import AssumptionEffect
from gcnsim.scenario import MOST_GPUS, SCHEMA, Scenario, from_mapping
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import Source
from gcnsim.workload.caching import CacheSize


@pytest.fixture
def base() -> Scenario:
    return from_mapping({"schema": SCHEMA, "method": {"name": "full-graph"}}, "test")


@pytest.mark.parametrize(
    ("least", "looked_at"),
    [(3, 3), (129, 45), (MOST_GPUS, 50), (MOST_GPUS + 1, 36)],
)
def test_it_is_found_with_few_looks(
    base: Scenario, least: int, looked_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def holds(scenario: Scenario, _: Source) -> bool:
        looks.append(scenario.cluster.gpus)
        return scenario.cluster.gpus >= least

    monkeypatch.setattr(alternatives, "holds", holds)
    found = least_gpus(base, open_source(base))
    assert found == (least if least <= MOST_GPUS else None)
    assert len(looks) <= looked_at
    assert max(looks) <= max(128, 2 * least)


def make_scenario(**cluster: object) -> Scenario:
    return from_mapping({"schema": "gcnsim.scenario/1", "cluster": {"gpus": 4, **cluster}}, "test")


def effect(name: str, low: float, high: float, share: float) -> AssumptionEffect:
    return AssumptionEffect(name, "1", "0", "2", "assumed", low, high, share)


def test_the_figure_that_moves_the_time_most_is_named_with_its_command() -> None:
    effects = [effect("t4.spmm_efficiency", 0.3, 0.2, 0.3), effect("ethernet.efficiency", 0.8, 0.5, 0.7)]
    text = measure_first(make_scenario(bandwidth="15Gbps"), effects)
    assert text.startswith(
        "ethernet.efficiency (500 ms to 800 ms, 70 % of the uncertainty): run iperf3 between two servers"
    )
    staged = measure_first(make_scenario(bandwidth="15Gbps", transport="staged"), effects)
    assert (
        "python -m runtime.survey --device cuda on two servers (torchrun --nnodes 2), then gcnsim calibrate" in staged
    )


@pytest.mark.parametrize("effects", [[], [effect("t4.launch_s", 0.500, 0.501, 0.9)], [effect("a.b", 0.4, 0.6, 0.1)]])
def test_nothing_is_named_where_nothing_stands_out(effects: list[AssumptionEffect]) -> None:
    assert measure_first(make_scenario(), effects) == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("t4.spmm_efficiency", "runtime.measure --device cuda on one t4, then --measured-compute"),
        ("pcie3-x16.latency_s", "on one server, then gcnsim calibrate"),
        ("ethernet.efficiency", "--set cluster.figures=ethernet.efficiency=SHARE"),
        ("ethernet.latency_s", "--set cluster.figures=ethernet.latency_s=VALUE"),
        ("workload", "partition your own graph (--graph)"),
        ("partition", "partition your own graph (--graph)"),
    ],
)
def test_each_kind_of_assumption_has_a_way_to_measure_it(name: str, words: str) -> None:
    assert words in how_to_measure(make_scenario(bandwidth="15Gbps"), name)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Times under four draws."""

    times: FloatArray

    def epochs_over(self, other: Drawn) -> FloatArray:
        """Times of an epoch over those of the other."""
        return self.times / other.times


def choice(times: list[float], pool: int) -> Choice:
    own = Drawn(np.array(times))
    wins = np.array([True, True, True, False])
    return Choice(own, (own,) * pool, wins, "why")  # type: ignore[arg-type]


def test_of_one_machine_its_settings_are_compared() -> None:
    assert confidence_text(choice([1.0], 5)) == (
        "75 %: in 3 of 4 random draws of the assumptions, this setting is the fastest of 5 tried or within 3 % of it"
    )
    assert confidence_text(choice([1.0], 1)) == "no other allowed setting was simulated"


def test_of_several_machines_they_are_compared_under_the_same_draws() -> None:
    own, slow, even = (choice(times, 1) for times in ([1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 3.0], [1.0, 1.0, 4.0, 5.0]))
    text = confidence_text(own, [slow.estimate])
    assert text.startswith("no other allowed setting")
    message = "; 75 %: in 3 of 4 random draws, it is as fast as the other machine's best or within 3 % of it"
    assert text.endswith(message)
    assert confidence_text(own, [slow.estimate, even.estimate]).endswith(
        "50 %: in 2 of 4 random draws, it is as fast as the best of every other machine or within 3 % of it"
    )


def test_ratios_are_read_either_way() -> None:
    ratios = (1.01, 1.5, 3.31, 202.4, 0.4, 1 / 202.4)
    assert [times_as_fast(ratio).removesuffix(" as") for ratio in ratios] == [
        "as fast",
        "1.50 times as fast",
        "3.3 times as fast",
        "202 times as fast",
        "2.5 times as slow",
        "202 times as slow",
    ]


MOVED = ["workload.hidden=1024"]
"""A width with which one GPU of 11 GB does not hold Reddit, and two hold it in part."""


@pytest.fixture(scope="module")
def answer() -> gcnsim.Answer:
    return gcnsim.what_if(
        gpus=[1, 2], device="gtx-1080-ti", method=["bns-gcn", "psc-gcn"], overrides=MOVED, iterations=2, processes=1
    )


def test_what_does_not_fit_is_no_rival_of_what_does(answer: gcnsim.Answer) -> None:
    best = answer.recommendation
    assert best["fits"] is not False
    rows = [row for row in answer.results if row["gpus"] != best["gpus"]]
    assert any(row["fits"] is False for row in rows), "the question shows nothing"
    if all(row["fits"] is False for row in rows):
        assert "other machine" not in best["confidence"]["text"]


def test_the_fastest_is_of_the_settings_that_fit() -> None:
    payload = gcnsim.what_if(gpus=2, device="gtx-1080-ti", overrides=MOVED, iterations=2, processes=1).payload
    best = payload["recommendation"]
    unfit = [row for row in payload["results"] if row["fits"] is False]
    assert unfit, "the question shows nothing"
    assert all(row["may_be_recommended"] is False for row in unfit)
    assert ("that fit" in best["why"]) or ("only setting" in best["why"])


def test_an_answer_does_not_depend_on_how_a_file_is_called(tmp_path: Path) -> None:
    source = (hardware.catalogue.DATA / "devices" / "t4.yaml").read_text(encoding="utf-8")
    times: list[list[float]] = []
    for name in ("one.yaml", "another.yaml"):
        (tmp_path / name).write_text(source, encoding="utf-8")
        cluster = {"gpus": 2, "gpus_per_server": 1, "device": str(tmp_path / name)}
        scenario = from_mapping({"schema": SCHEMA, "cluster": cluster, "run": {"iterations": 3}}, "test")
        times.append(Studies(scenario).candidate(scenario).times.tolist())
    assert times[0] == times[1]


def test_a_run_keeps_the_name_it_was_asked_under() -> None:
    found = gcnsim.what_if(gpus=2, method="psc-gcn", tau=1, epsilon=1, iterations=2, processes=1)
    assert found.recommended.scenario.method.name == "psc-gcn"


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
