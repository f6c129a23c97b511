"""Recommendation and next steps: mild settings first, every candidate counted once, steps really simulated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gcnsim.planning import Workshop, next_steps, recommend
from gcnsim.planning.recommend import NEAR, candidates, mildness, ranked, recommendable
from gcnsim.planning.workshop import canonical, mean_counts, with_knobs
from gcnsim.scenario import CacheSize, MethodSpec, Scenario, from_mapping
from gcnsim.study import Corner


def scenario(**cluster: object) -> Scenario:
    mapping = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 4, "bandwidth": "15Gbps"} | cluster}
    return from_mapping(mapping, "test")


def test_psc_gcn_without_sampling_is_asked_under_its_simpler_name() -> None:
    base = scenario()
    names = [
        canonical(replace(base, method=MethodSpec.of("psc-gcn", tau=tau, epsilon=1.0))).method.name for tau in (0, 1, 2)
    ]
    assert names == ["full-graph", "pipegcn", "psc-gcn"]
    cached = MethodSpec.of("psc-gcn", tau=1, epsilon=1.0, cache=CacheSize(fraction=0.1))
    assert canonical(replace(base, method=cached)).method == cached


def test_all_boundary_nodes_are_asked_as_full_graph_training() -> None:
    base = scenario()
    names = [
        canonical(replace(base, method=MethodSpec.of("bns-gcn", rate=rate))).method.name for rate in (0.0, 0.5, 1.0)
    ]
    assert names == ["bns-gcn", "bns-gcn", "full-graph"]


def test_drawn_nodes_are_shown_but_not_recommended() -> None:
    base = scenario()
    assert recommendable(replace(base, method=MethodSpec.of("psc-gcn", epsilon=0.1)))
    assert not recommendable(replace(base, method=MethodSpec.of("bns-gcn", rate=0.5)))


def test_candidates_are_distinct_and_the_mildest_come_first() -> None:
    found = candidates(scenario())
    assert len(found) == len(set(found)) == 48
    assert found[0].method.name == "full-graph"
    assert [mildness(each) for each in found] == sorted(mildness(each) for each in found)


def test_ranking_puts_those_near_the_best_estimate_first() -> None:
    base = scenario()
    shop = Workshop(base)
    order = ranked(shop, base)
    assert sorted(map(mildness, order)) == sorted(map(mildness, candidates(base)))
    distinct = [each for each in order if each.method.tau <= 1]
    times = shop.guesses(distinct)
    assert times[0] <= min(times) * (1 + NEAR)


def test_with_abundant_bandwidth_sampling_and_staleness_are_judged_by_time_alone() -> None:
    base = scenario(bandwidth="400Gbps")
    shop = Workshop(base)
    chosen, why = recommend(shop, ranked(shop, base)[:3])
    assert chosen.scenario.method.tau <= 1, "more staleness buys nothing when nothing is waited for"
    assert "bottleneck" in why


def test_steps_are_simulated_from_the_given_setting_and_sorted_by_gain() -> None:
    base = with_knobs(scenario(), 1, 0.1, CacheSize(fraction=0.1))
    shop = Workshop(base)
    now = shop.result(base).metrics.iteration_s
    steps = next_steps(shop, base)
    assert {step.knob for step in steps} == {"tau", "epsilon", "cache", "bandwidth", "gpus"}
    assert [step.gain for step in steps] == sorted((step.gain for step in steps), reverse=True)
    for step in steps:
        assert step.gain == pytest.approx(1 - step.iteration_s / now)
    by_knob = {step.knob: (step.start, step.end) for step in steps}
    assert by_knob["bandwidth"] == ("15Gbps", "30Gbps")
    assert by_knob["cache"] == ("10%", "30%")
    assert by_knob["gpus"] == (4, 6)


def test_an_interval_covers_both_ends_of_the_assumptions() -> None:
    base = scenario()
    shop = Workshop(base)
    estimate = shop.estimate(base)
    for corner in Corner:
        result = shop.result(base, corner)
        assert estimate.low_s <= result.metrics.iteration_s <= estimate.high_s


def test_mean_counts_keep_totals() -> None:
    base = scenario()
    shop = Workshop(base)
    counts = shop.accesses.counts(base, 602, Corner.LIKELY)
    mean = mean_counts(counts)
    assert mean.iterations == 1
    assert int(mean.rows.sum()) == pytest.approx(float(counts.rows.mean(axis=0).sum()), rel=1e-4)
