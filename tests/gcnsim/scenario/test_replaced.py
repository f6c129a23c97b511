"""Figures that a question or a draw puts in place of the catalogue's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gcnsim
from gcnsim.hardware import device, host, link
from gcnsim.methods import create_method
from gcnsim.scenario import ClusterSpec
from gcnsim.scenario.machine_profiles import GIVEN, with_drawn, with_given
from gcnsim.simulation import simulate_scenario
from tests.gcnsim.scenario.test_specs import scenario


def test_given_figures_replace_those_of_their_profile_alone() -> None:
    spec = ClusterSpec(figures=(("t4.launch_s", 1e-6), ("t4.spmm_efficiency", 0.5)))
    t4 = with_given(device("t4"), spec)
    assert (t4.launch_s.value, t4.spmm_efficiency.value) == (1e-6, 0.5)
    assert (t4.launch_s.source, t4.launch_s.reference) == ("given", GIVEN)
    assert t4.spmm_curve is None
    assert t4.memory == device("t4").memory
    assert with_given(device("h100"), spec) == device("h100")
    assert with_given(link("ethernet"), spec) == link("ethernet")


def test_drawn_figures_are_arrays_of_their_profile_alone() -> None:
    drawn = {"t4.spmm_efficiency": np.array([0.4, 0.6]), "generic-16.sample_edges_per_s": np.array([1e6, 2e6])}
    assert np.array_equal(with_drawn(device("t4"), drawn).spmm_efficiency.value, [0.4, 0.6])
    assert np.array_equal(with_drawn(host("generic-16"), drawn).sample_edges_per_s.value, [1e6, 2e6])
    assert with_drawn(device("h100"), drawn) == device("h100")


@pytest.mark.parametrize(
    ("figure", "slower"),
    [("t4.spmm_efficiency=30%", True), ("t4.spmm_efficiency=90%", False), ("ethernet.efficiency=50%", True)],
)
def test_they_change_the_simulated_time(figure: str, slower: bool) -> None:
    requested = [scenario(gpus=2, gpus_per_server=1, figures=figures) for figures in ("none", figure)]
    now, then = (
        simulate_scenario(replace(item, method=create_method("full-graph"))).metrics.iteration_s for item in requested
    )
    assert (then > 1.01 * now) if slower else (then < 0.99 * now)


def test_an_answer_names_them() -> None:
    answer = gcnsim.what_if(
        gpus=2, method="pipegcn", iterations=2, processes=1, overrides=["cluster.figures=t4.spmm_efficiency=50%"]
    )
    content = answer.payload["provenance"]
    assert content["given_figures"] == "t4.spmm_efficiency 50%"
    assert "given" in content["device"]
    assert "t4.spmm_efficiency" not in {assumption["name"] for assumption in answer.payload["certainty"]["assumptions"]}
    assert answer.payload["scenario"]["cluster"]["figures"] == "t4.spmm_efficiency=50%"
    assert "given_figures" not in gcnsim.what_if(gpus=2, method="pipegcn", iterations=2).payload["provenance"]
