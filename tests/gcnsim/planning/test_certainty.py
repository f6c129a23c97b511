"""How sure a choice is, and what decides it."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.core.units import format_seconds
from gcnsim.planning import certainty as module
from gcnsim.planning.candidate import Candidate, central
from gcnsim.planning.certainty import Difference, basis_words, decisive, label_of, sensitivity
from gcnsim.planning.recommend import NEAR, Choice
from gcnsim.planning.study import Studies
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation.assumed import DRAWS, assumptions_of, other_paths
from gcnsim.simulation.propagation import TimeFactors


def scenario(method: str = "psc-gcn", **cluster: object) -> Scenario:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 4, "bandwidth": "15Gbps"} | cluster,
        "method": {"name": method},
        "run": {"iterations": 4},
    }
    return from_mapping(mapping, "test")


@pytest.fixture(scope="module")
def shop() -> Studies:
    return Studies(scenario())


def test_labels_say_what_the_figures_are_fitted_to() -> None:
    assert label_of(scenario()) == "UNCALIBRATED"
    assert label_of(scenario(platform="psc-gcn-t4")) == "FITTED TO PUBLISHED RUNS"


@pytest.mark.parametrize("method", ["full-graph", "psc-gcn"])
def test_the_interval_is_that_of_the_draws_and_holds_the_stated_values(shop: Studies, method: str) -> None:
    base = scenario(method)
    estimate = shop.estimate(base)
    low, high = central(shop.times(base))
    assert estimate.low_s is not None
    assert estimate.high_s is not None
    assert estimate.lower_s <= estimate.low_s <= estimate.iteration_s <= estimate.high_s <= estimate.upper_s
    assert estimate.low_s == pytest.approx(min(max(low, estimate.lower_s), estimate.iteration_s))
    assert estimate.high_s == pytest.approx(max(high, estimate.iteration_s))
    # At least 90 % of the draws, and all of what lies below the bound, which no run can be.
    inside = (estimate.times <= estimate.high_s) & (
        (estimate.times >= estimate.low_s) | (estimate.times <= estimate.lower_s)
    )
    assert inside.mean() >= 0.89
    assert estimate.high_s > 1.05 * estimate.low_s, "datasheet figures leave more open than that"


def test_the_tornado_tells_every_assumption_those_that_matter_most_first(shop: Studies) -> None:
    chosen = shop.candidate(scenario())
    rows = sensitivity(shop, chosen)
    names = {assumption.name for assumption in assumptions_of(resolve_machine(chosen.scenario.cluster))}
    # The transport is said, not drawn.
    assert {row.name for row in rows} == names | {"workload", "partition", "placement"}
    shares = [row.share for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1.0)
    left_open = shop.factors(chosen.scenario)
    for row in rows:
        ends = left_open.scaled(chosen.iteration_s, np.array(left_open.alone[row.name]))
        assert (row.iteration_s_low, row.iteration_s_high) == pytest.approx(tuple(ends))
        assert row.basis
    spmm = next(row for row in rows if row.name == "t4.spmm_efficiency")
    assert (spmm.value, spmm.low, spmm.high) == ("65%", "45%", "95%")


def test_the_interval_is_of_the_transport_assumed_and_the_other_is_said_beside_it(shop: Studies) -> None:
    base = scenario(method="full-graph")
    assert not other_paths(base)
    staged = shop.result(replace(base, cluster=replace(base.cluster, transport="staged"))).metrics.iteration_s
    assert staged > shop.result(base).metrics.iteration_s
    words = basis_words(shop, base)
    assert words is not None
    assert f"{format_seconds(staged)} if staged through hosts, as gloo does" in words
    given = replace(base, cluster=replace(base.cluster, transport="direct"))
    assert "gloo" not in (basis_words(shop, given) or "")


def candidate(shop: Studies, times: np.ndarray) -> Candidate:
    base = scenario()
    return Candidate(base, shop.result(base), times)


def test_differences_are_paired(shop: Studies) -> None:
    base = shop.candidate(scenario())
    # Always 10 % longer, though each alone is anywhere within a factor of three.
    spread = base.iteration_s * np.geomspace(0.6, 1.8, DRAWS)
    one, other = candidate(shop, 1.1 * spread), candidate(shop, spread)
    found, same = Difference.of(one, other), Difference.of(other, other)
    full = Difference.of(shop.candidate(scenario("full-graph")), base)
    assert found is not None
    assert same is not None
    assert full is not None
    assert found.high == pytest.approx(0.1)
    assert found.low == pytest.approx(0.0), "the simulated times are alike"
    assert (same.low, same.high, same.distinguishable) == (0.0, 0.0, False)
    assert full.distinguishable


DECISIVE_DRAWS = 64
PLACES = {
    "network": np.linspace(-1, 1, DECISIVE_DRAWS),
    "compute": np.random.default_rng(1).permutation(np.linspace(-1, 1, DECISIVE_DRAWS)),
}


def decided(method: str) -> Scenario:
    return from_mapping({"schema": "gcnsim.scenario/1", "method": {"name": method}}, "test")


def setting(method: str, seconds: float, ends: dict[str, tuple[float, float]]) -> tuple[Candidate, TimeFactors]:
    """A setting whose time in a draw is its time at the stated values times the effect of each assumption."""
    times = np.full(DECISIVE_DRAWS, seconds)
    for name, (low, high) in ends.items():
        times *= np.where(PLACES[name] < 0, low, high) ** np.abs(PLACES[name])
    result: Any = SimpleNamespace(per_epoch=1, metrics=SimpleNamespace(iteration_s=seconds))
    return Candidate(decided(method), result, times), TimeFactors(
        times / seconds, ends, seconds, np.ones(DECISIVE_DRAWS)
    )


def shares(monkeypatch: pytest.MonkeyPatch, *settings: tuple[Candidate, TimeFactors]) -> dict[str, float]:
    monkeypatch.setattr(module, "draw_positions", lambda name, shared, seed, draws: PLACES[name])
    factors = {candidate.scenario: effects for candidate, effects in settings}
    studies: Any = SimpleNamespace(seed=0, factors=factors.__getitem__)
    pool = tuple(candidate for candidate, _ in settings)
    wins = np.all([pool[0].times / rival.times <= 1 + NEAR for rival in pool], axis=0)
    return {name: share for name, (share, _) in decisive(studies, Choice(pool[0], pool, wins, "")).items()}


def test_what_moves_one_setting_past_the_other_decides_and_what_moves_both_alike_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = {"compute": (0.5, 2.0)}
    chosen, rival = setting("pipegcn", 1.0, both | {"network": (0.8, 1.5)}), setting("full-graph", 1.2, both)
    found = shares(monkeypatch, chosen, rival)
    # 1.5^x = 1.03 * 1.2 at x = log(1.236) / log(1.5): in the draws beyond it, the network alone makes the rival win.
    beyond = np.log(1.236) / np.log(1.5)
    assert found == {"network": float((PLACES["network"] > beyond).mean())}


def test_an_assumption_of_the_rival_alone_decides_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shares(monkeypatch, setting("pipegcn", 1.0, {}), setting("full-graph", 1.2, {"network": (0.5, 1.5)}))
    beyond = np.log(1.2 * 1.03) / np.log(2.0)
    assert found == {"network": float((PLACES["network"] < -beyond).mean())}


def test_an_answer_says_what_to_measure_to_be_sure_of_its_setting() -> None:
    answer = gcnsim.what_if(gpus=4, bandwidth="25Gbps", processes=1)
    certainty = answer.payload["certainty"]
    by_name = {effect["name"]: effect.get("decides", 0.0) for effect in certainty["assumptions"]}
    first = max(by_name, key=lambda name: by_name[name])
    assert 0 < by_name[first] <= 1
    from gcnsim.report.answer.table import render_table

    text = " ".join(render_table(answer.told, explain=True).split())
    said = re.search(
        r"to be sure of the choice, measure (\S+): it (?:moves the time most and )?decides in (\d+)%", text
    )
    assert said is not None
    assert said.groups() == (first, f"{100 * by_name[first]:.0f}")
