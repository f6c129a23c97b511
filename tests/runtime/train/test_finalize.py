"""What a run leaves at its end: its traces, its bytes, the best weights, and the clocks of its workers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from time import perf_counter_ns

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.trace import read_trace
from runtime.exchange import Channels
from runtime.launch import Place, connect
from runtime.train.worker import clock_offset
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import told, worked
from tests.runtime.shell import Shell

SMALL = ("--layers", "2", "--hidden", "8", "--quiet", "--json", "--threads", "1")


def test_a_trace_is_saved_without_any_boundary(crew: Crew, case: Case, tmp_path: Path) -> None:
    words = ("--graph", str(case.path), "--iterations", "3", "--workers", "1", "--method", "psc-gcn", "--no-record")
    crew.run(1, worked, [*words, *SMALL, "--epsilon", "0.5", "--save-trace", "one.trace"], str(tmp_path))
    trace = read_trace(tmp_path / "one.trace")
    assert (trace.iterations, trace.parts, trace.workers[0].bits.shape) == (3, 1, (3, 0))
    assert (trace.edges[:, 0, 0] > 0).all()


def test_a_disk_that_is_full_at_the_end_costs_neither_the_figures_nor_the_run_folder(
    crew: Crew, case: Case, tmp_path: Path
) -> None:
    words = ("--graph", str(case.path), "--iterations", "3", "--workers", "1", "--method", "psc-gcn", *SMALL)
    full = [*words, "--epsilon", "0.5", "--save-trace", "/dev/full"]
    ((out, _, why),) = crew.run(1, told, full, str(tmp_path))
    assert why == "/dev/full: cannot be written: No space left on device"
    assert json.loads(out)["iterations"] == 3
    assert json.loads((tmp_path / "run" / "run.json").read_text())["finished"]


@pytest.mark.slow
def test_the_bytes_of_all_iterations_are_those_of_the_run_also_after_a_resume(case: Case, tmp_path: Path) -> None:
    words = ["--graph", str(case.path), *SMALL, "--method", "psc-gcn", "--epsilon", "0.5", "--cache", "30%"]
    words += ["--refresh", "3", "--checkpoint-every", "6"]
    straight = Shell(tmp_path, *words, "--iterations", "12", "--out", "straight")
    assert straight.end()[0] == 0
    assert Shell(tmp_path, *words, "--iterations", "6", "--out", "halves").end()[0] == 0
    assert Shell(tmp_path, *words, "--iterations", "12", "--resume", "halves").end()[0] == 0
    totals = []
    for folder in ("straight", "halves"):
        record = json.loads((tmp_path / folder / "run.json").read_text())
        total = sum(sum(map(sum, table)) for table in record["bytes"].values())
        with open(tmp_path / folder / "iterations.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 12
        assert sum(int(row["bytes_sent"]) for row in rows) == total > 0
        totals.append(total)
    assert totals[0] == totals[1]


def test_the_best_weights_are_those_of_the_best_validation_accuracy(crew: Crew, case: Case, tmp_path: Path) -> None:
    # A step this large makes the accuracy jump up and down: the best is not the last.
    words = ["--graph", str(case.path), *SMALL, "--workers", "1"]
    jumping = ["--iterations", "12", "--eval-every", "1", "--lr", "2", "--optimizer", "adam", "--out", "jumps"]
    (out,) = crew.run(1, worked, [*words, *jumping], str(tmp_path))
    with open(tmp_path / "jumps" / "iterations.csv", newline="") as file:
        seen = [float(row["val_accuracy"]) for row in csv.DictReader(file)]
    assert seen[-1] < max(seen)
    assert json.loads(out)["val_accuracy"] == max(seen)
    again = ["--init-weights", "jumps/best.npz", "--iterations", "1", "--optimizer", "sgd", "--lr", "0", "--no-record"]
    (out,) = crew.run(1, worked, [*words, *again], str(tmp_path))
    assert json.loads(out)["val_accuracy"] == max(seen)


def test_a_cache_beside_a_sum_made_once_is_refused(options: MakeOptions) -> None:
    with pytest.raises(ScenarioError, match=r"^--cache: 30% with --preaggregate"):
        options("psc-gcn", {"cache": "30%"}, preaggregate=True)


def late_clock(place: Place, late_ns: int) -> int:
    """The offset that this worker finds when its clock is `late_ns` behind that of worker 0, on another machine."""
    connect(place, 30.0, "gloo")
    channel = Channels(place.rank, place.world, 30.0, "gloo").open("control")
    behind = late_ns if place.rank else 0
    return clock_offset(channel, place.world, lambda: perf_counter_ns() - behind, str(place.rank).encode())


def test_the_clock_of_a_worker_elsewhere_is_found(crew: Crew) -> None:
    late = 7_000_000_000
    found = np.array(crew.run(3, late_clock, late))
    assert found[0] == 0
    # Round trips on one machine are far below a tenth of a second, however busy it is.
    assert (abs(found[1:] - late) < 100_000_000).all()
