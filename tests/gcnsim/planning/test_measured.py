"""A measured time beside the predicted one: as it is read, of which question it is, and what it says."""

from __future__ import annotations

from typing import Any

import pytest

import gcnsim
from gcnsim.planning.measured import read_measurement
from gcnsim.results import MeasuredReport
from tests.gcnsim.evidence.conftest import WriteRun, small_graph
from tests.gcnsim.evidence.made_gpu import on_gpus

SAME: dict[str, Any] = {"emulation": None, "layers": 2, "hidden": 32, "widths": (32, 32, 8), "workers": 2}


def test_how_sure_a_recorded_run_is_is_the_standard_error_of_its_mean(write_run: WriteRun) -> None:
    # The first five iterations are the warm-up. Student's interval of three times is 1.8 times as wide as a normal one.
    path = write_run("run", seconds=[9.0] * 5 + [0.1, 0.2, 0.3])
    measurement = read_measurement(f"psc-gcn={path}")
    assert measurement.method == "psc-gcn"
    assert measurement.seconds == pytest.approx(0.2)
    assert measurement.spread == pytest.approx(0.1 / 3**0.5 / 0.2)
    assert read_measurement("640ms").spread == 0.0


def beside(measured: object, **question: Any) -> MeasuredReport:
    """What one measured time says beside a question of one method."""
    content = gcnsim.what_if(iterations=3, processes=1, measured=str(measured), **question).told
    assert content.measured is not None
    return content.measured[0]


def test_a_run_of_another_question_is_named_so_and_nothing_follows_from_it(write_run: WriteRun) -> None:
    measured_report = beside(write_run("run", method="full-graph", **SAME), gpus=6, method="pipegcn")
    assert [(difference.field, difference.measured, difference.asked) for difference in measured_report.differs] == [
        ("graph", "small", "reddit"),
        ("layers", "2", "4"),
        ("features", "32", "602"),
        ("hidden width", "32", "256"),
        ("classes", "8", "41"),
        ("device", "cpu-core", "t4"),
        ("workers", "2", "6"),
        ("method", "full-graph", "pipegcn"),
    ]
    assert "graph small, not reddit" in measured_report.text
    assert (
        measured_report.consistent,
        measured_report.rows,
        measured_report.explanations,
        measured_report.suspects,
    ) == (False, None, (), ())


OWN: dict[str, Any] = {"gpus": 2, "device": "t4", "method": "full-graph", "layers": 2, "hidden": 32}
WIDTHS = ["workload.features=32", "workload.classes=8"]


def test_a_run_of_the_same_question_is_compared(write_run: WriteRun) -> None:
    run = on_gpus(write_run("run", method="full-graph", device="cuda", **SAME))
    measured_report = beside(run, graph=small_graph(), overrides=[*WIDTHS, "partition.method=block"], **OWN)
    assert measured_report.differs == ()


def test_a_run_on_another_partition_is_named_so(write_run: WriteRun) -> None:
    run = on_gpus(write_run("run", method="full-graph", device="cuda", **SAME))
    measured_report = beside(run, graph=small_graph(), overrides=[*WIDTHS, "partition.method=random"], **OWN)
    assert [difference.field for difference in measured_report.differs] == ["boundary nodes of all parts"]


def test_where_the_assumptions_do_not_reach_the_suspects_are_ranked() -> None:
    measured_report = beside("30s", gpus=2, method="full-graph")
    assert not measured_report.consistent
    reaches = [suspect.reaches for suspect in measured_report.suspects]
    assert reaches == sorted(reaches, reverse=True)
    assert all(1.02 < reach < 30 / measured_report.predicted_s for reach in reaches)
    assert (
        f"Measure next: 1. {measured_report.suspects[0].name} ({measured_report.suspects[0].measure})"
        in measured_report.text
    )
    faster = beside("1ms", gpus=2, method="full-graph")
    assert all(suspect.reaches < 0.98 for suspect in faster.suspects)
    assert beside(f"{measured_report.predicted_s}s", gpus=2, method="full-graph").suspects == ()
