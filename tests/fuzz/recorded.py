"""Readers of what was measured: run folders, micro-benchmarks, calibration records."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from gcnsim.evidence.fitting import read_measurements
from gcnsim.evidence.recorded_run import scenario_of
from gcnsim.records.calibration import read_calibration, write_calibration
from gcnsim.records.compute_reading import read_measured_compute
from gcnsim.records.recorded_run import read_learning_curve, read_measured, read_recorded_run
from gcnsim.records.run_files import Cluster, write_cluster
from gcnsim.timeline.span import write_spans
from runtime.options import Options
from runtime.record import read_run
from runtime.record.run_folder import refuse_foreign
from tests.fuzz.readers import Reader, file_named, put, text
from tests.gcnsim.evidence.conftest import EMULATED, run_document, write_folder
from tests.gcnsim.evidence.made_calibration import calibration, measurements
from tests.gcnsim.timeline.test_parquet import timeline
from tests.measured_files import measured_file, write_graph

KNOBS = {"tau": 2, "epsilon": 0.3}


def _runs(home: Path) -> None:
    """A run on an emulated cluster, and one on a real one."""
    for number, method in enumerate(("full-graph", "psc-gcn")):
        options = Options(threads=1, hidden=32, method=method, knobs=KNOBS if number else {})
        document = run_document(options, emulation=None if number else EMULATED)
        folder = write_folder(home / str(number), document, [0.1] * 10)
        write_spans(folder / "timeline.parquet", timeline(20), {})
        rows = (folder / "iterations.csv").read_text()
        put(folder / "iterations.csv", rows.replace("0.5,,,", "0.5,0.8,0.7,", 3))
        if number:
            write_cluster(folder / "cluster.json", Cluster(2, 1, 1.25e9, 1.1e9))


def _recorded(folder: Path) -> None:
    """As `gcnsim validate` and `calibrate` read it."""
    run = read_recorded_run(folder)
    read_measured(folder)
    scenario_of(run)
    assert run.settings
    assert run.phases


def _curve(folder: Path) -> None:
    read_learning_curve(folder)


def _own(folder: Path) -> None:
    """As the runtime reads a folder that it is to write into."""
    refuse_foreign(folder)
    read_run(folder)


def _calibration(home: Path) -> None:
    (home / "0").mkdir()
    write_calibration(home / "0" / "c.json", calibration())


def _measured(home: Path) -> None:
    (home / "0").mkdir()
    graph = write_graph(home / "0")
    measured_file(home / "0", graph, 2)
    graph.unlink()


def readers() -> Iterator[Reader]:
    """All of this file."""
    yield Reader("recorded run", _runs, _recorded)
    yield Reader("learning curve", _runs, _curve, frozenset({"timeline.parquet", "cluster.json"}))
    yield Reader("run of one's own", _runs, _own, frozenset({"timeline.parquet", "cluster.json"}))
    yield Reader(
        "measured compute", _measured, file_named(lambda path: read_measured_compute(str(path)), "measured.parquet")
    )
    yield Reader("calibration record", _calibration, file_named(read_calibration, "c.json"))
    yield Reader(
        "micro-benchmarks",
        text("m.json", json.dumps(measurements())),
        file_named(read_measurements, "m.json"),
    )
