"""Whose widths count: the scenario's, then the source's, then stated defaults."""

from __future__ import annotations

from gcnsim.scenario import WorkloadSpec
from gcnsim.simulation.model import Declared, resolve_model
from gcnsim.simulation.statistics_source import StatisticsSource
from gcnsim.workload import dataset

SPEC = WorkloadSpec()
REDDIT = StatisticsSource(dataset("reddit")).declared


def widths(spec: WorkloadSpec, declared: Declared) -> list[int]:
    shapes = resolve_model(spec, declared).shapes
    return [shapes[0].d_in, *(shape.d_out for shape in shapes)]


def test_a_dataset_brings_its_published_model() -> None:
    model = resolve_model(SPEC, REDDIT)
    assert (model.name, model.features, len(model.shapes)) == ("gcn", 602, 4)
    assert str(model) == "gcn, 4 layers, widths 602-256-256-256-41"
    assert model.assumed == ()


def test_the_scenario_overrides_each_width() -> None:
    spec = WorkloadSpec(model="graphsage", layers=2, hidden=8, features=5, classes=3)
    assert widths(spec, REDDIT) == [5, 8, 3]
    assert resolve_model(spec, REDDIT).shapes[0].weights == 2 * 5 * 8 + 8


def test_a_source_that_declares_nothing_gets_stated_widths() -> None:
    model = resolve_model(SPEC, Declared())
    assert widths(SPEC, Declared()) == [128, 256, 256, 256, 16]
    assert model.assumed == ("features", "classes")


def test_declared_or_given_widths_are_not_assumed() -> None:
    spec = WorkloadSpec(classes=2, layers=1)
    assert widths(spec, Declared(features=9)) == [9, 2]
    assert resolve_model(spec, Declared(features=9)).assumed == ()
    assert resolve_model(spec, Declared()).assumed == ("features",)
