"""`cluster.figures`: figures of the catalogue that a question replaces, from text and mapping and back."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError, UnitError
from gcnsim.scenario import Scenario, from_mapping, scenario_hash, to_mapping
from gcnsim.scenario.catalogue_fields import CatalogueFigures, figure_text

TEXT = "ethernet.latency_s=20us,generic-16.cores=32,t4.launch_s=0s,t4.spmm_efficiency=50%"
VALUES = (("ethernet.latency_s", 2e-5), ("generic-16.cores", 32.0), ("t4.launch_s", 0.0), ("t4.spmm_efficiency", 0.5))


def scenario(**cluster: object) -> Scenario:
    return from_mapping({"schema": "gcnsim.scenario/1", "cluster": cluster}, "test")


def read(raw: object) -> Any:
    return CatalogueFigures().read(raw, "cluster.figures")


def test_text_and_mapping_say_the_same() -> None:
    mapping = {"t4.spmm_efficiency": "50%", "t4.launch_s": "0s", "generic-16.cores": 32, "ethernet.latency_s": "20us"}
    spaced = " t4.spmm_efficiency = 50% , t4.launch_s=0s, generic-16.cores=32, ethernet.latency_s=20us"
    assert read(TEXT) == read(spaced) == read(mapping) == VALUES
    assert read("none") == read({}) == ()


def test_they_are_written_back_without_loss() -> None:
    rule = CatalogueFigures()
    assert rule.write(VALUES) == TEXT
    assert rule.write(()) == "none"
    odd = tuple((name, value) for name, value in (("t4.flops_fp32", 7.123456789e12), ("t4.spmm_efficiency", 1 / 3)))
    assert [value for _, value in read(rule.write(odd))] == pytest.approx([value for _, value in odd], rel=1e-9)
    base = scenario(figures=TEXT)
    assert base.cluster.figures == VALUES
    assert from_mapping(to_mapping(base), "again") == base


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            "rxt-4090.spmm_efficiency=50%",
            "cluster.figures: unknown device, link or host 'rxt-4090'; did you mean 'rtx-4090'",
        ),
        ("t4.spm_efficiency=50%", "cluster.figures: t4 has no figure 'spm_efficiency'; did you mean 'spmm_efficiency'"),
        ("ethernet.cores=3", "cluster.figures: ethernet has no figure 'cores'"),
        ("t4.spmm_efficiency=120%", "t4.spmm_efficiency=120% is not allowed; above 0% and at most 100%"),
        ("t4.spmm_efficiency=0%", "t4.spmm_efficiency=0% is not allowed; above 0% and at most 100%"),
        ("generic-16.cores=-1", "generic-16.cores=-1 is not allowed; above 0"),
        ("generic-16.cores=nan", "generic-16.cores=nan is not allowed; above 0"),
        ("generic-16.cores=many", "generic-16.cores: 'many' is not a number"),
        ("ethernet.latency_s=20", "cluster.figures: ethernet.latency_s: '20' has no unit"),
        ("t4.launch_s=1us,t4.launch_s=2us", "cluster.figures: t4.launch_s is given twice"),
        ("t4.launch_s", "cluster.figures: 't4.launch_s' is not allowed; NAME.FIGURE=VALUE separated by commas"),
        (0.5, "cluster.figures: 0.5 is not allowed; NAME.FIGURE=VALUE separated by commas"),
    ],
)
def test_a_bad_figure_is_one_clear_line(raw: object, message: str) -> None:
    with pytest.raises((ScenarioError, UnitError)) as refused:
        read(raw)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_scenarios_without_them_are_written_and_hashed_as_before() -> None:
    plain = scenario(gpus=2)
    assert "figures" not in to_mapping(plain)["cluster"]
    assert scenario_hash(plain) == scenario_hash(scenario(gpus=2, figures="none"))
    assert scenario_hash(plain) != scenario_hash(scenario(gpus=2, figures="t4.launch_s=1us"))
    # As before there was such a field: a hash names stored answers.
    assert scenario_hash(from_mapping({"schema": "gcnsim.scenario/1"}, "test")) == HASH


HASH = "ebcd38dcf598550702720728d26b6b22e4c7bca2670104ce484e9f3f1757531f"


def test_a_value_is_shown_with_its_unit() -> None:
    assert figure_text("t4.spmm_efficiency", 0.5) == "50%"
    assert figure_text("ethernet.latency_s", 2e-5) == "20us"
    assert figure_text("generic-16.cores", 32.0) == "32"
