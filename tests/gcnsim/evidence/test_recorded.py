"""Recorded runs as sides: their iterations are those of their tables."""

from __future__ import annotations

import pytest

from gcnsim.api import compare
from gcnsim.core.errors import FileError
from gcnsim.evidence.iteration_report import report_of_run
from gcnsim.records.measured_run import read_measured
from gcnsim.timeline import OpKind
from gcnsim.timeline.breakdown import iteration_s
from gcnsim.timeline.parquet import write_spans
from tests.gcnsim.evidence.conftest import WriteRun
from tests.gcnsim.evidence.test_compare import PSC, recorded, spans


def test_two_runs_within_their_spread_are_said_to_be_so_first(write_run: WriteRun) -> None:
    near, far = (recorded(write_run, name) for name in ("near", "far"))
    for folder, times in ((near, (0.09, 0.13)), (far, (0.19, 0.23))):
        table = folder / "iterations.csv"
        head, *rows = table.read_text().splitlines()
        rows = [row.replace(",0.1,", f",{times[index % 2]},") for index, row in enumerate(rows)]
        table.write_text("\n".join([head, *rows, ""]))
    steady = recorded(write_run, "steady")
    assert compare(near, near)["says"][0].startswith("The difference is within the spread of the iterations")
    assert compare(near, far)["says"][0].startswith("B takes ")
    assert compare(steady, near)["says"][0].startswith("B takes "), "one of them does not vary"


@pytest.mark.parametrize("shorter", [0.0, 0.03])
def test_the_parts_of_a_recorded_iteration_make_the_time_of_its_table(write_run: WriteRun, shorter: float) -> None:
    folder = recorded(write_run, "run")
    # Without what worker 0 writes between two iterations, and the others wait for.
    table = folder / "iterations.csv"
    table.write_text(table.read_text().replace(",0.1,", f",{0.1 - shorter!r},"))
    report = report_of_run(folder, "run")
    assert report.iteration_s == read_measured(folder).iteration_s == pytest.approx(0.1 - shorter)
    for worker in report.workers:
        assert iteration_s(worker) == pytest.approx(0.1 - shorter)
        assert worker.rest_s >= 0.0


def test_an_evaluation_between_two_iterations_belongs_to_neither(write_run: WriteRun) -> None:
    folder = recorded(write_run, "run")
    table = folder / "iterations.csv"
    head, *rows = table.read_text().splitlines()
    rows[7] = rows[7].replace("7,0.1,", "7,0.098,")
    table.write_text("\n".join([head, *rows, ""]))
    (one,) = (worker for worker in report_of_run(folder, "run").workers if worker.worker == 1)
    assert one.rest_s == pytest.approx(0.002 * 4 / 5), "the 2 ms before iteration 7 are none of it"
    assert one.compute_s == pytest.approx(0.02)


def test_a_run_without_spans_of_a_worker_is_refused(write_run: WriteRun) -> None:
    folder = write_run("run")
    write_spans(folder / "timeline.parquet", spans([(OpKind.STEP, 0, "compute", 9, -1, 0, 1, 0.0)]), {})
    with pytest.raises(FileError, match=r"timeline.parquet: has no span of worker 0 in iteration 5"):
        compare(folder, PSC)
    write_spans(folder / "timeline.parquet", spans([(OpKind.WIRE, 0, "f.tx1", 9, 1, 0, 1, -1.0)]), {})
    with pytest.raises(FileError, match=r"timeline.parquet: "):
        compare(folder, PSC)
