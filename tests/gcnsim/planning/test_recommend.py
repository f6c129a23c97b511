"""What may be recommended, what is, and on which of several machines: one rule, and never slower than the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import networkx as nx
import pytest

import gcnsim
from gcnsim.core.errors import ScenarioError
from gcnsim.methods import COMPARED, create_method
from gcnsim.methods.psc_gcn import PscGcn
from gcnsim.planning.candidate import canonical
from gcnsim.planning.recommend import (
    MAX_STALENESS,
    MIN_SAMPLING_RATE,
    NEAR,
    SAME,
    Rule,
    approximation_key,
    choose,
    rate_of,
    search,
)
from gcnsim.planning.shortlist import candidates, shortlist
from gcnsim.planning.study import Studies
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.simulation.open_assumptions import mean_counts
from gcnsim.simulation.source import RangeEnd
from gcnsim.workload.caching import CacheSize


def with_knobs(scenario: Scenario, tau: int, epsilon: float, cache: CacheSize) -> Scenario:
    """The scenario with these knobs of psc-gcn, under the simplest method that has them."""
    general = PscGcn.as_this_method(scenario.method)
    assert general is not None
    return canonical(replace(scenario, method=general.with_knobs(tau=tau, epsilon=epsilon, cache=cache)))


def scenario(**cluster: object) -> Scenario:
    mapping = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 4, "bandwidth": "15Gbps"} | cluster}
    return from_mapping(mapping, "test")


def answer_of(**question: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"gpus": 2, "gpus_per_server": 1, "iterations": 2, "processes": 1}
    return dict(gcnsim.what_if(**given | question).payload)


@pytest.fixture(scope="module")
def usual() -> dict[str, Any]:
    return answer_of()


WIDTHS = ["workload.features=64", "workload.classes=10"]

QUESTIONS: dict[str, dict[str, Any]] = {
    "an H100 cluster": {"gpus": 4, "gpus_per_server": 2, "device": "h100", "bandwidth": "25Gbps"},
    "a lower least rate": {"rate": [0.05, 0.2], "min_sampling_rate": 0.05},
    "staler than is recommended": {"method": ["psc-gcn"], "tau": [1, 3, 5]},
}


def test_all_boundary_nodes_are_asked_as_full_graph_training() -> None:
    base = scenario()
    names = [
        canonical(replace(base, method=create_method("bns-gcn", rate=rate))).method.name for rate in (0.0, 0.5, 1.0)
    ]
    assert names == ["bns-gcn", "bns-gcn", "full-graph"]


def test_one_least_rate_for_edges_and_nodes() -> None:
    base = scenario()
    for rate, allowed in ((0.09, False), (MIN_SAMPLING_RATE, True), (0.5, True)):
        edges = replace(base, method=create_method("psc-gcn", epsilon=rate))
        nodes = replace(base, method=create_method("bns-gcn", rate=rate))
        assert rate_of(edges.method) == rate_of(nodes.method) == rate
        assert [Rule().excludes(item) is None for item in (edges, nodes)] == [allowed, allowed]
        assert Rule(min_sampling_rate=rate).excludes(edges) is Rule(min_sampling_rate=rate).excludes(nodes) is None
    edges = replace(base, method=create_method("psc-gcn", epsilon=0.05))
    assert Rule().excludes(edges) == "sampling rate 0.05 is below 0.1 (--min-sampling-rate 0.05 allows it)"


def test_one_limit_of_staleness_for_all_methods() -> None:
    base = scenario()
    for tau, allowed in ((0, True), (MAX_STALENESS, True), (MAX_STALENESS + 1, False)):
        assert (Rule().excludes(replace(base, method=create_method("psc-gcn", tau=tau))) is None) is allowed
    stale = replace(base, method=create_method("pipegcn"))
    assert Rule(max_staleness=0).excludes(stale) == "tau 1 is above 0 (--max-staleness 1 allows it)"
    assert max(candidate.method.tau for candidate in candidates(base, Rule(max_staleness=1))) == 1
    assert max(candidate.method.tau for candidate in candidates(base, Rule(max_staleness=3))) == 3


def test_a_method_is_allowed_where_it_is_named_or_compared() -> None:
    drawn = replace(scenario(), method=create_method("bns-gcn", rate=0.5))
    assert Rule().excludes(drawn) is None
    named = Rule(("pipegcn",), named=True)
    assert named.excludes(drawn) == "bns-gcn was not asked for (--allow bns-gcn allows it)"
    other = replace(scenario(), method=create_method("dgl"))
    assert Rule().excludes(other) == "dgl is shown for comparison only (--allow dgl allows it)"
    assert named.report().text == (
        "pipegcn, with a sampling rate of at least 0.1 and tau at most 2 "
        "(change: --allow, --min-sampling-rate, --max-staleness)"
    )
    assert Rule().report().text.startswith("full-graph, pipegcn, bns-gcn, psc-gcn, with a sampling rate")


def test_candidates_are_distinct_allowed_and_the_mildest_come_first() -> None:
    rule = Rule()
    found = candidates(scenario(), rule)
    # 36 settings of psc-gcn, of which the two without sampling go by simpler names; bns-gcn at 0.5, 0.2 and 0.1.
    assert len(found) == len(set(found)) == 39
    assert found[0].method.name == "full-graph"
    assert [approximation_key(item) for item in found] == sorted(approximation_key(item) for item in found)
    assert all(rule.excludes(item) is None for item in found)


@pytest.mark.parametrize("methods", [("psc-gcn",), ("bns-gcn",), ("full-graph", "pipegcn"), ("dgl", "psc-gcn")])
def test_candidates_are_of_the_allowed_methods_alone(methods: tuple[str, ...]) -> None:
    rule = Rule(methods, named=True, min_sampling_rate=0.3)
    found = candidates(scenario(), rule)
    assert {item.method.name for item in found} == set(methods)
    assert min(rate_of(item.method) for item in found) >= 0.3
    assert ("psc-gcn" in methods or "bns-gcn" in methods) == any(rate_of(item.method) == 0.3 for item in found)


def test_what_a_method_does_not_allow_is_no_candidate() -> None:
    # Sums over neighbours that are made beforehand cannot be of edges drawn anew.
    base = replace(scenario(), workload=replace(scenario().workload, preaggregate=True))
    scenarios = shortlist(Studies(base), base, Rule(("full-graph", "psc-gcn"), named=True))
    assert {item.method.epsilon for item in scenarios} == {1.0}
    assert shortlist(Studies(base), base, Rule(("dgl",), named=True)) == [], "four GPUs are in two servers"


def test_of_equally_fast_settings_the_mildest_is_chosen_unless_an_asked_one_is_faster() -> None:
    base = scenario()
    shop = Studies(base)
    settings = shortlist(shop, base, Rule())
    pool = [shop.candidate(item) for item in settings]
    fastest = min(pool, key=lambda candidate: candidate.epoch_s)
    chosen = choose(shop, settings, [], Rule())
    near = [candidate for candidate in pool if candidate.epoch_s <= (1 + NEAR) * fastest.epoch_s]
    assert approximation_key(chosen.estimate.scenario) == min(
        approximation_key(candidate.scenario) for candidate in near
    )
    assert choose(shop, settings, [fastest.scenario], Rule()).estimate.epoch_s <= (1 + SAME) * fastest.epoch_s
    assert choose(shop, [fastest.scenario], [], Rule()).share == 1.0


def test_a_search_finds_the_same_without_simulating_what_cannot_win() -> None:
    base = scenario()
    fresh, shop = Studies(base), Studies(base)
    settings = [replace(base, method=create_method("full-graph")), *shortlist(shop, base, Rule())]
    assert search(fresh, settings, ()) == choose(shop, settings, [], Rule()).estimate.scenario
    assert shop.known(settings[0])
    assert not fresh.known(settings[0]), "its bound is above the fastest"


def test_what_fits_is_considered_before_what_does_not() -> None:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 4, "bandwidth": "400Gbps"},
        "workload": {"dataset": "reddit", "hidden": 1024},
    }
    base = from_mapping(mapping, "test")
    shop = Studies(base)
    assert {shop.fits(candidate) for candidate in candidates(base, Rule())} == {False, True}
    assert shop.fits(shortlist(shop, base, Rule())[0])


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_answer_is_slower_than_an_allowed_row_of_its_own_table(name: str) -> None:
    consistent(answer_of(**QUESTIONS[name]))


@pytest.mark.slow
def test_nor_is_that_of_ones_own_graph() -> None:
    payload = answer_of(graph=nx.barabasi_albert_graph(600, 6, seed=1), gpus=4, bandwidth="1Gbps", overrides=WIDTHS)
    consistent(payload)
    assert payload["recommendation"]["dataset"] == payload["results"][0]["dataset"] == "networkx"


def consistent(payload: Mapping[str, Any]) -> None:
    """What holds of every answer: its recommendation against its own table and its own rule."""
    best, rows = payload["recommendation"], payload["results"]
    rule = best["rule"]
    for row in rows:
        below = min(row["epsilon"], row["rate"]) < rule["min_sampling_rate"]
        stale = row["tau"] > rule["max_staleness"]
        excluded = row["method"] not in rule["methods"] or below or stale or row["fits"] is False
        assert row["may_be_recommended"] == (not excluded)
        assert (row["excluded_because"] is None) == row["may_be_recommended"]
        if row["may_be_recommended"]:
            assert best["row"]["epoch_s"] <= row["epoch_s"]
    assert best["method"] in rule["methods"]
    assert min(best["epsilon"], best["rate"]) >= rule["min_sampling_rate"]
    assert best["tau"] <= rule["max_staleness"]
    marked = [index for index, row in enumerate(rows) if row["recommended"]]
    assert marked == ([] if best["in_results"] is None else [best["in_results"]])
    assert best["row"]["recommended"]
    assert best["row"]["vs_recommended"] is None
    if marked:
        assert rows[marked[0]] == best["row"]
    content = {entry["why"] for entry in best["excluded"]}
    assert content == {row["excluded_because"] for row in rows} - {None}
    assert best["iteration_s"] == best["row"]["iteration_s"]
    assert f"Use {best['method']}" in best["verdict"]


def test_what_was_excluded_is_told_with_the_option_that_allows_it() -> None:
    payload = answer_of(method=["pipegcn", "bns-gcn"], rate=[0.05, 0.5], allow="bns-gcn")
    assert payload["recommendation"]["rule"]["methods"] == ["bns-gcn"]
    assert payload["recommendation"]["excluded"] == [
        {"what": "pipegcn", "why": "pipegcn was not asked for (--allow pipegcn allows it)"},
        {
            "what": "bns-gcn with rate 0.05",
            "why": "sampling rate 0.05 is below 0.1 (--min-sampling-rate 0.05 allows it)",
        },
    ]
    assert payload["recommendation"]["method"] == "bns-gcn"


def test_only_methods_asked_for_are_recommended_when_methods_are_named(usual: Mapping[str, Any]) -> None:
    consistent(usual)
    assert usual["recommendation"]["rule"]["methods"] == list(COMPARED)
    assert usual["recommendation"]["method"] == "psc-gcn"
    assert answer_of(method="pipegcn")["recommendation"]["method"] == "pipegcn"
    # A method that may be recommended need not be one of the rows.
    allowed = answer_of(method="pipegcn", allow=["bns-gcn", "pipegcn"])["recommendation"]
    assert (allowed["method"], allowed["in_results"]) == ("bns-gcn", None)


@pytest.mark.parametrize("rate", [0, float("nan"), "0.1"])
def test_a_least_rate_out_of_range_is_one_clear_line(rate: Any) -> None:
    with pytest.raises(ScenarioError) as refused:
        answer_of(min_sampling_rate=rate)
    assert str(refused.value) == f"--min-sampling-rate: {rate!r} is not allowed; a number above 0 and at most 1"


def test_an_unknown_method_may_not_be_allowed() -> None:
    with pytest.raises(ScenarioError, match=r"^--allow: .*'pipegnn'; did you mean 'pipegcn'"):
        answer_of(allow="pipegnn")


@pytest.fixture(scope="module")
def several() -> dict[str, Any]:
    return answer_of(
        gpus=[2, 4], bandwidth=["2Gbps", "50Gbps"], device=["t4", "a100-40"], method=["full-graph", "pipegcn"]
    )


def test_over_several_machines_the_fastest_is_recommended(several: Mapping[str, Any]) -> None:
    rows, best = several["results"], several["recommendation"]
    machines = [(row["device"], row["gpus"], row["bandwidth"]) for row in rows]
    assert len(set(machines)) == 8
    assert len(rows) == 16
    assert {row["dataset"] for row in rows} == {"reddit"} == {best["dataset"]}
    consistent(several)
    assert best["row"]["epoch_s"] == min(row["epoch_s"] for row in rows)
    assert (best["device"], best["gpus"], best["bandwidth"]) == ("a100-40", 4, "50Gbps")
    assert "on 4 x a100-40 at 50Gbps" in best["verdict"]
    # Steps start from the recommended machine.
    starts = {step["knob"]: step["from"] for step in several["next_steps"]}
    of_machine = {"gpus": 4, "bandwidth": "50Gbps", "device": "a100-40"}
    known = starts.keys() & of_machine.keys()
    assert known
    assert {knob: starts[knob] for knob in known} == {knob: of_machine[knob] for knob in known}


def test_nothing_is_the_cheapest_where_no_price_is_known() -> None:
    found = answer_of(gpus=[2, 3], device="rtx-2080-ti", method="full-graph", dataset="reddit")
    assert ["cost" in row for row in found["results"]] == [False, False]
    assert "cheapest" not in {alternative["role"] for alternative in found["recommendation"]["alternatives"]}


def test_the_fewest_gpus_and_the_cheapest_are_told_beside_it(several: Mapping[str, Any]) -> None:
    best, rows = several["recommendation"], several["results"]
    others = {alternative["role"]: alternative for alternative in best["alternatives"]}
    assert set(others) == {"fewest GPUs", "cheapest"}
    # The fewest GPUs among the machines whose best setting is within the interval of the fastest.
    by_machine: dict[tuple[Any, ...], float] = {}
    for row in rows:
        machine = (row["gpus"], row["bandwidth"], row["device"])
        by_machine[machine] = min(by_machine.get(machine, row["epoch_s"]), row["epoch_s"])
    high = best["iteration_s_high"] * best["row"]["iterations_per_epoch"]
    fewest = min(gpus for (gpus, _, _), seconds in by_machine.items() if seconds <= high)
    assert others["fewest GPUs"]["row"]["gpus"] == fewest
    assert others["fewest GPUs"]["why"].startswith(f"{fewest} GPU")
    cheapest = others["cheapest"]["row"]
    prices = [row["cost"]["per_1000_iterations"] for row in rows if "cost" in row]
    assert cheapest["cost"]["per_1000_iterations"] == pytest.approx(min(prices))


def test_the_share_of_draws_is_a_recount_of_them() -> None:
    base = scenario()
    shop = Studies(base)
    settings = shortlist(shop, base, Rule())
    pool = [shop.candidate(item) for item in settings]
    chosen = choose(shop, settings, [], Rule())
    mine = (chosen.estimate.times * chosen.estimate.result.per_epoch).tolist()
    wins = 0
    for draw, seconds in enumerate(mine):
        wins += seconds <= (1 + NEAR) * min(
            float(candidate.times[draw]) * candidate.result.per_epoch for candidate in pool
        )
    assert chosen.share == wins / len(mine)
    assert 0.0 < chosen.share <= 1.0


def test_mean_counts_keep_totals() -> None:
    base = scenario()
    shop = Studies(base)
    counts = shop.accesses.counts(base, 602, RangeEnd.LIKELY)
    mean = mean_counts(counts)
    assert mean.iterations == 1
    assert int(mean.rows.sum()) == pytest.approx(float(counts.rows.mean(axis=0).sum()), rel=1e-4)
