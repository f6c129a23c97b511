"""Which figures are assumed, and their joint draws: every stratum once, and none moves another."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import Figure
from gcnsim.scenario import ClusterSpec
from gcnsim.scenario.machine import resolve_machine
from gcnsim.simulation.assumed import (
    DRAWS,
    NORMAL_90,
    Assumption,
    assumptions_of,
    normal_position,
    position,
    refuse_unused_figures,
    used_figures,
)


def assumption(value: float, low: float, high: float) -> Assumption:
    return Assumption("t4.launch_s", Figure(value, "assumed", "made up", "2026", low, high), "device.launch_s")


def test_each_stratum_once() -> None:
    for name in ("device.spmm_efficiency", "workload", "graphs of a setting"):
        place = position(name, 0)
        strata = np.floor((place + 1.0) / 2.0 * DRAWS).astype(int)
        assert sorted(strata.tolist()) == list(range(DRAWS))
        assert place == pytest.approx((2 * strata + 1) / DRAWS - 1)
    assert not position("workload", 0).flags.writeable


def test_names_and_seeds_draw_independently() -> None:
    names = [f"device.figure{number}" for number in range(20)]
    places = np.array([position(name, 0) for name in names])
    apart = np.corrcoef(places)[~np.eye(len(names), dtype=bool)]
    assert np.abs(apart).max() < 4.0 / np.sqrt(DRAWS), "the most of 190 pairs, each with a deviation of 1 / sqrt(DRAWS)"
    assert (position(names[0], 1) != position(names[0], 0)).any()
    assert position(names[0], 0).tobytes() == position(names[0], 0).tobytes()


def test_an_assumption_more_moves_no_other() -> None:
    fewer, more = ClusterSpec(gpus=4), ClusterSpec(gpus=4, nvlink=3e11)
    named = {assumption.name: assumption for assumption in assumptions_of(resolve_machine(fewer))}
    also = {assumption.name: assumption for assumption in assumptions_of(resolve_machine(more))}
    assert named.keys() < also.keys()
    for name, value in named.items():
        own, other = value.at(position(value.shared, 0)), also[name].at(position(also[name].shared, 0))
        assert own.tobytes() == other.tobytes()


def test_the_same_bytes_in_another_process() -> None:
    code = (
        "from gcnsim.simulation.assumed import position; print(position('device.spmm_efficiency', 7).tobytes().hex())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert bytes.fromhex(done.stdout.strip()) == position("device.spmm_efficiency", 7).tobytes()


def test_ends_and_value_are_reached_geometrically() -> None:
    each = assumption(10.0, 5.0, 40.0)
    assert each.at(np.array([-1.0, -0.5, 0.0, 0.5, 1.0])) == pytest.approx([5.0, 50**0.5, 10.0, 20.0, 40.0])
    # Where an end is nothing there is no ratio to it.
    assert assumption(0.0, 0.0, 8.0).at(np.array([-1.0, -0.5, 0.0, 0.5])) == pytest.approx([0.0, 0.0, 0.0, 4.0])


def test_kinds_of_figures_share_their_positions_over_machines() -> None:
    shared = [
        {assumption.shared for assumption in assumptions_of(resolve_machine(ClusterSpec(device=name)))}
        for name in ("t4", "v100-32")
    ]
    assert "device.spmm_efficiency" in shared[0] & shared[1]
    unequal = assumptions_of(resolve_machine(ClusterSpec(gpus=4, devices=("t4", "a100-40"))))
    spmm = {item.name: item.shared for item in unequal if item.name.endswith("spmm_efficiency")}
    assert len(spmm) == 2
    assert set(spmm.values()) == {"device.spmm_efficiency"}


def test_what_a_question_gives_is_no_assumption() -> None:
    assert "t4.spmm_efficiency" in {assumption.name for assumption in assumptions_of(resolve_machine(ClusterSpec()))}
    cluster = ClusterSpec(figures=(("t4.spmm_efficiency", 0.5),))
    assert "t4.spmm_efficiency" not in {assumption.name for assumption in assumptions_of(resolve_machine(cluster))}


def test_a_link_that_is_given_is_no_figure_of_the_catalogue() -> None:
    plain, given = (resolve_machine(ClusterSpec(latency=latency)) for latency in (None, 2e-5))
    latency, bandwidth = (f"{plain.network.name}.{figure}" for figure in ("latency_s", "bandwidth"))
    assert latency in used_figures(plain)
    assert latency not in used_figures(given)
    assert bandwidth not in used_figures(plain)
    with pytest.raises(ScenarioError, match=f"{latency} would change nothing"):
        refuse_unused_figures([replace(given, spec=replace(given.spec, figures=((latency, 1e-5),)))])


def test_figures_that_no_law_reads_are_not_among_them() -> None:
    names = {assumption.name for assumption in assumptions_of(resolve_machine(ClusterSpec()))}
    assert not any(name.endswith((".memory", ".flops_fp16", ".gather_bandwidth", ".slice_s")) for name in names)
    batches = {assumption.name for assumption in assumptions_of(resolve_machine(ClusterSpec()), batches=True)}
    assert names - batches == {"generic-16.call_s"}


def test_what_is_known_by_an_interval_is_normal_with_its_ends_at_90_percent() -> None:
    place = normal_position("partition", 0)
    assert np.mean(np.abs(place) <= 1.0) == pytest.approx(0.9, abs=1.0 / DRAWS)
    assert place.mean() == pytest.approx(0.0, abs=1e-12)
    last = NormalDist().inv_cdf(1.0 - 0.5 / DRAWS) / NORMAL_90
    assert place.max() == pytest.approx(last), "it has tails, as far as the middle of the last stratum's share"
    assert last > 1.4
    assert np.array_equal(np.argsort(place), np.argsort(position("partition", 0))), "the same order as of a range"


def test_a_figure_that_no_machine_of_the_question_uses_is_refused() -> None:
    plain, other = ClusterSpec(), ClusterSpec(device="a10g")
    used, unused = (("t4.spmm_efficiency", 0.5),), (("h100.launch_s", 1.0),)
    refuse_unused_figures([resolve_machine(replace(cluster, figures=used)) for cluster in (plain, other)])
    with pytest.raises(ScenarioError, match=r"cluster.figures: h100.launch_s would change nothing"):
        refuse_unused_figures([resolve_machine(replace(plain, figures=unused))])
    with pytest.raises(ScenarioError, match=r"cluster.figures: t4.spmm_efficiency would change nothing"):
        refuse_unused_figures([resolve_machine(replace(other, figures=used))])
