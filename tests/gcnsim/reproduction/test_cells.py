"""Cells: what is judged, how ratios and null models follow from runs, and that a reading decides nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gcnsim.reproduction import Cell, error_of, read_published, reproduce
from gcnsim.reproduction.answers import answer
from gcnsim.reproduction.asking import Asked, setting, settings
from gcnsim.reproduction.parts import TableAccesses
from gcnsim.reproduction.systems import System
from gcnsim.scenario import MethodSpec, load_scenario
from gcnsim.study import Corner
from gcnsim.workload import dataset

ROOT = Path(__file__).resolve().parents[3]

TABLE = """\
paper: {id: pipegcn}
tables:
- id: table4
  key: [dataset, method, partitions]
  rows:
  - {dataset: reddit, partitions: 2, method: gcn, use: calibrate, epochs_per_s: 2.0, throughput_x: 1,
     metrics: [epochs_per_s, throughput_x]}
  - {dataset: reddit, partitions: 2, method: pipegcn, use: calibrate, throughput_x: 1.5, metrics: [throughput_x]}
  - {dataset: reddit, partitions: 2, method: pipegcn_gf, use: predict, metrics: [throughput_x]}
  - {dataset: reddit, partitions: 2, method: roc, use: predict, metrics: [total_s]}
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Cell]:
    folder = tmp_path_factory.mktemp("published")
    (folder / "pipegcn.yaml").write_text(TABLE, encoding="utf-8")
    return reproduce(read_published(folder))


def test_a_cell_for_each_metric_in_the_order_of_the_file(cells: list[Cell]) -> None:
    assert [cell.metric for cell in cells] == [
        "epochs_per_s",
        "throughput_x",
        "throughput_x",
        "throughput_x",
        "total_s",
    ]


def test_predictions_lie_in_their_intervals(cells: list[Cell]) -> None:
    for cell in cells[:4]:
        assert cell.predicted is not None
        assert cell.low is not None
        assert cell.high is not None
        assert cell.low <= cell.predicted <= cell.high


def test_what_is_one_by_definition_is_not_judged(cells: list[Cell]) -> None:
    rate, one, pipelined, blind, _ = cells
    assert one.predicted == 1.0
    assert [cell.judged for cell in (rate, one, pipelined, blind)] == [True, False, True, False]
    assert rate.predicted is not None
    assert rate.error == pytest.approx(rate.predicted / 2.0 - 1.0)


def test_smoothing_costs_a_little(cells: list[Cell]) -> None:
    plain, smoothed = cells[2].predicted, cells[3].predicted
    assert plain is not None
    assert smoothed is not None
    assert 0.9 * plain < smoothed < plain


def test_a_system_without_a_schedule_has_a_reason_and_no_prediction(cells: list[Cell]) -> None:
    assert cells[4].predicted is None
    assert cells[4].reason == "no schedule of ROC yet"


def test_null_models_start_from_the_printed_vanilla_run(cells: list[Cell]) -> None:
    nulls = cells[3].nulls
    assert nulls["vanilla"] == 1.0
    assert nulls["pipelined"] == pytest.approx(1.5)
    assert nulls["scaled"] == pytest.approx(1.5), "nothing is sampled"
    assert 1.0 < nulls["overlap"] <= 2.0
    assert cells[0].nulls == {}


def test_short_times_are_judged_by_their_absolute_error() -> None:
    assert error_of("reduce_s", 0.03, 0.01) == pytest.approx(0.25)
    assert error_of("communication_s", 0.0, 0.0) == 0.0
    assert error_of("total_s", 0.6, 0.5) == pytest.approx(0.2)
    assert error_of("epochs_per_s", 0.05, 0.04) == pytest.approx(0.25)


def test_an_even_split_at_random_and_an_uneven_one_by_metis() -> None:
    facts, row = dataset("reddit-train"), setting("bns_gcn-reddit")
    assert row is not None
    ten = replace(row, cluster=replace(row.cluster, gpus=10, gpus_per_server=10), method=MethodSpec.of("full-graph"))
    counts = TableAccesses(facts, 10).counts(ten, 602, Corner.LIKELY)
    assert counts.boundary_nodes.max() / counts.boundary_nodes.mean() == pytest.approx(86_000 / 51_200, rel=0.02)
    assert counts.boundary_nodes.mean() == pytest.approx(51_200, rel=0.01)
    alike = TableAccesses(facts, 10, at_random=True).counts(ten, 602, Corner.LIKELY)
    assert alike.boundary_nodes.max() == alike.boundary_nodes.min()


def test_no_boundary_node_at_rate_0_and_all_at_rate_1() -> None:
    row = setting("bns_gcn-reddit")
    assert row is not None

    def at(method: MethodSpec) -> float:
        one = Asked(replace(row, method=method), System(method.name))
        return answer([one], spread=False)[one].likely.forward_bytes

    assert at(MethodSpec.of("bns-gcn", rate=0.0)) == 0.0
    assert at(MethodSpec.of("bns-gcn", rate=1.0)) == at(MethodSpec.of("full-graph"))


def test_every_setting_is_among_the_scenarios() -> None:
    for name in settings():
        shipped = ROOT / "gcnsim" / "data" / "reproduction" / f"{name}.yaml"
        assert (ROOT / "scenarios" / f"{name}.yaml").read_bytes() == shipped.read_bytes()
        assert load_scenario(shipped).cluster.platform is not None
