"""Coefficients are found again from runs that a machine with other coefficients would have made."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.evidence.fit import calibrate, ranges
from gcnsim.evidence.fit_runs import COEFFICIENTS, Coefficient, as_measured, freedom_over, moved, spread_of_repeats
from gcnsim.evidence.validation import judge
from gcnsim.records.calibration import Calibration, Fitted, write_calibration
from gcnsim.records.recorded_run import RecordedRun, read_recorded_run
from tests.gcnsim.evidence.conftest import EMULATED, WIDTHS, WriteRun, parts_measured, runs_in, simulated
from tests.gcnsim.evidence.made_calibration import World, calibration, measurements, of_gpu, write_measurements

FACTORS = {"socket_bandwidth": 0.6, "busy_core_rate": 0.85}
SHORT_S = 5e-5
"""Of an operation: messages then are much of an iteration, or runs would not tell what they cost."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Measurements of a machine, and runs of one whose coefficients are FACTORS times as much."""
    folder = tmp_path_factory.mktemp("world")
    write_run = runs_in(folder)
    measured = write_measurements(folder / "links.json")
    truth = _altered(calibrate(measured))
    write_calibration(folder / "truth.json", truth)
    slow, fast = (EMULATED | {"bandwidth": rate, "measured": 0.94 * rate} for rate in (1e7, 2.5e9))
    wide = (64, 64, 64, 8)
    seen = [
        write_run("a", method="full-graph", emulation=fast),
        write_run("b", method="full-graph", overlap="none", emulation=slow),
        write_run("c", method="pipegcn", emulation=slow),
        write_run("d", method="full-graph", widths=wide, emulation=fast),
    ]
    unseen = [
        write_run("e", method="pipegcn", emulation=fast),
        write_run("f", method="full-graph", widths=wide, overlap="none", emulation=fast),
    ]
    files = parts_measured(folder, *seen, *unseen, seconds=SHORT_S)
    for run in (*seen, *unseen):
        simulated(run, folder / "truth.json", measured=files)
    found = calibrate(measured, seen, measured_compute=files)
    write_calibration(folder / "found.json", found)
    return World(measured, seen, unseen, found, folder / "found.json", files)


def _altered(record: Calibration) -> Calibration:
    """The machine that the runs are made on; the network's share is that measured before each of them."""
    network = {**record.figures["network"], "efficiency": Fitted(0.94, "measured before each run")}
    named = {one.name: one for one in COEFFICIENTS}
    return moved(
        replace(record, figures={**record.figures, "network": network}),
        [named[name] for name in FACTORS],
        np.log(list(FACTORS.values())),
    )


def test_the_runs_are_reproduced_and_so_are_others(world: World, tmp_path: Path) -> None:
    before = calibrate(world.measurements)
    write_calibration(tmp_path / "before.json", before)
    raw, _ = judge(world.unseen, tmp_path / "before.json", measured=world.files)
    assert max(abs(run_check.error) for run_check in raw) > 0.05, "the benchmarks alone do not know these runs"
    left, unseen = world.found.residuals[-2:]
    assert (unseen.term, unseen.points) == ("the same of a run not fitted to", 4)
    assert (left.term, left.points) == ("iterations of the runs", 4)
    assert left.mape < 0.02
    assert left.p90 < 0.03
    held_out, warnings = judge(world.unseen, world.file, measured=world.files)
    assert max(abs(run_check.error) for run_check in held_out) < 0.03
    assert warnings == []


def test_runs_are_inputs_and_refused_afterwards(world: World) -> None:
    sources = [(source.kind, source.name) for source in world.found.inputs]
    measured = [("measured_compute", path.name) for path in world.files]
    assert sources == [("measurements", "links.json"), *(("run", name) for name in "abcd"), *measured]
    for folder in world.seen:
        assert world.found.used(read_recorded_run(folder).sha256)
        with pytest.raises(FileError) as caught:
            judge([*world.unseen, folder], world.file, measured=world.files)
        assert str(caught.value) == f"{folder}: the calibration used this run; allowed: runs it has not seen"


def test_the_record_says_within_which_settings_and_how_far_off(world: World) -> None:
    found = world.found
    assert found.ranges["bandwidth"] == (1e7, 2.5e9)
    assert found.ranges["layers"] == (2.0, 3.0)
    assert found.ranges["features"] == (32.0, 64.0)
    assert found.error is not None
    assert 0.0 <= found.error < 0.05
    assert found.figures["network"]["efficiency"].value == pytest.approx(0.94)
    assert "; then processor time per byte" in found.figures["host"]["socket_bandwidth"].reference
    assert dict(found.graphs) == {}, "sums were measured"


def test_moved_is_a_factor_on_each_coefficient() -> None:
    record = of_gpu()
    chosen = [Coefficient("host", "socket_bandwidth", "r"), Coefficient("graphs", "feed", "g")]
    chosen.append(Coefficient("graphs", "new", "g"))
    found = moved(record, chosen, np.log([2.0, 0.5, 3.0]))
    assert found.figures["host"]["socket_bandwidth"].value == pytest.approx(3e9)
    assert found.figures["host"]["socket_bandwidth"].reference == "chosen for a test; then r"
    assert dict(found.graphs) == pytest.approx({"feed": 0.625, "new": 3.0})
    others = {name for name in record.figures["host"] if name != "socket_bandwidth"}
    assert all(found.figures["host"][name] == record.figures["host"][name] for name in others)
    assert record == of_gpu(), "what is moved is a copy"


def test_shares_stay_shares() -> None:
    found = moved(calibration(), [Coefficient("network", "efficiency", "r")], np.log([4.0]))
    assert found.figures["network"]["efficiency"].value == 1.0


def test_without_runs_the_figures_are_those_of_the_benchmarks(tmp_path: Path) -> None:
    lines: list[str] = []
    path = write_measurements(tmp_path / "links.json")
    record = calibrate(path, progress=lines.append)
    assert (record.device, record.error, dict(record.graphs), dict(record.ranges)) == ("cpu-core", None, {}, {})
    assert [source.kind for source in record.inputs] == ["measurements"]
    assert record.seconds >= 60.0
    assert record.machine["cpu"] == "Xeon"
    assert lines == [f"reading {path}"]


def test_measurements_of_another_kind_and_runs_of_another_machine_are_refused(
    tmp_path: Path, write_run: WriteRun
) -> None:
    document = measurements()
    document["options"]["device"] = "tpu"
    tpu = write_measurements(tmp_path / "tpu.json", document)
    with pytest.raises(ScenarioError, match=r"tpu\.json: measured on tpu; allowed: cpu, cuda"):
        calibrate(tpu)
    other = measurements()
    other["machine"]["cpu"] = "EPYC"
    folder = write_run("a")
    files = parts_measured(tmp_path, folder)
    with pytest.raises(ScenarioError) as caught:
        calibrate(write_measurements(tmp_path / "other.json", other), [folder], measured_compute=files)
    assert str(caught.value) == f"{folder}: ran on Xeon, but EPYC was measured"


def test_ranges_reach_from_the_lowest_to_the_highest(write_run: WriteRun) -> None:
    runs: list[RecordedRun] = [
        read_recorded_run(write_run("a")),
        read_recorded_run(write_run("b", emulation=None, widths=(*WIDTHS, 8))),
    ]
    found = ranges(runs)
    assert found["layers"] == (2.0, 3.0)
    assert found["bandwidth"] == (2.5e7, 2.5e7)
    assert ranges([]) == {}


def test_the_freedom_of_a_fit_lies_between_nothing_and_all_its_coefficients() -> None:
    # Two runs of two errors each; one coefficient, held by a last row.
    unseen_by_the_runs = np.array([[0.0], [0.0], [0.0], [0.0], [1.0]])
    assert freedom_over(unseen_by_the_runs, 2) == pytest.approx(0.0)
    shared = np.array([[1.0], [0.0], [1.0], [0.0], [0.0]])
    assert freedom_over(shared, 2) == pytest.approx(1.0), "the mean of both iterations can be met"
    by_phases = np.array([[1.0], [1.0], [1.0], [1.0], [0.0]])
    assert freedom_over(by_phases, 2) == pytest.approx(0.5), "half of what holds it is the phases"
    held = np.array([[1.0], [0.0], [1.0], [0.0], [3.0]])
    assert freedom_over(held, 2) == pytest.approx(2 / 11)


def test_the_spread_is_that_of_repeats_about_their_own_mean(tmp_path: Path, write_run: WriteRun) -> None:
    folders = [
        write_run("a", method="full-graph", seconds=(0.99,) * 10),
        write_run("b", method="full-graph", seconds=(1.01,) * 10),
        write_run("c", method="pipegcn", seconds=(3.0,) * 10),
    ]
    runs = [read_recorded_run(folder) for folder in folders]
    # Two runs, 1 % from their mean: the deviation of a sample of two has one degree of freedom.
    assert spread_of_repeats(runs) == pytest.approx(0.01 * np.sqrt(2.0))
    assert spread_of_repeats(runs[1:]) is None


@pytest.mark.parametrize(("apart", "noted"), [(0.02, False), (0.10, True)])
def test_runs_that_differ_among_themselves_are_noted(
    tmp_path: Path, write_run: WriteRun, apart: float, noted: bool
) -> None:
    folders = [
        write_run(name, seconds=(item,) * 10) for name, item in (("a", 0.2 - apart / 10), ("b", 0.2 + apart / 10))
    ]
    heard: list[str] = []
    files = parts_measured(tmp_path, *folders)
    links = write_measurements(tmp_path / "links.json")
    record = calibrate(links, folders, measured_compute=files, warn=heard.append)
    assert record.spread == pytest.approx(apart / 2 * np.sqrt(2.0))
    message = (
        "--runs: runs of one configuration differ by 7 % (standard deviation), more than 5 %: something else slowed"
    )
    assert [text.startswith(message) for text in heard] == [True] * noted


def test_runs_in_sessions_of_their_own_are_noted_where_workers_share_cores(tmp_path: Path, write_run: WriteRun) -> None:
    before = {name: value for name, value in EMULATED.items() if name != "one_session"}
    measured, text = write_measurements(tmp_path / "links.json"), []
    for name, workers, emulation in (("a", 4, before), ("b", 2, before), ("c", 4, EMULATED)):
        folder = write_run(name, workers=workers, emulation=emulation | {"workers_per_host": workers // 2})
        heard: list[str] = []
        files = parts_measured(tmp_path, folder)
        calibrate(measured, [folder], measured_compute=files, warn=heard.append)
        text.append(heard)
        assert judge([folder], None, measured=files)[1] == heard
    assert text[1:] == [[], []]
    assert text[0] == [
        f"{tmp_path / 'a'}: each of its 4 workers on 2 cores had its own session. Linux divides cores among "
        "sessions first, so waits were longer than simulated"
    ]


@pytest.mark.parametrize(("quota", "noted"), [(None, False), (2.0, False), (1.5, True), (0.5, True)])
def test_runs_that_a_container_stopped_now_and_then_are_noted(
    tmp_path: Path, write_run: WriteRun, quota: float | None, noted: bool
) -> None:
    folder = write_run("a", workers=2, emulation=EMULATED)
    path = folder / "run.json"
    document = json.loads(path.read_text())
    document["hardware"]["quota"] = quota
    path.write_text(json.dumps(document))
    heard: list[str] = []
    files = parts_measured(tmp_path, folder)
    links = write_measurements(tmp_path / "links.json")
    calibrate(links, [folder], measured_compute=files, warn=heard.append)
    assert judge([folder], None, measured=files)[1] == heard
    assert [line.startswith(f"{folder}: 2 workers of 1 thread had the time of") for line in heard] == [True] * noted


def test_what_runs_lose_beyond_measured_compute_is_found_again(tmp_path: Path) -> None:
    write_run = runs_in(tmp_path)
    slow = EMULATED | {"bandwidth": 1e7, "measured": 0.94e7}
    runs = [
        write_run(f"{name}{place}", method=name, emulation=network)
        for name in ("full-graph", "pipegcn")
        for place, network in enumerate((EMULATED, slow))
    ]
    other = write_run("other", method="full-graph", emulation=EMULATED | {"bandwidth": 1.6e7, "measured": 1.5e7})
    files = parts_measured(tmp_path, *runs, other, seconds=0.01, cores=2, beside=1)
    links = calibrate(write_measurements(tmp_path / "links.json"))
    truth = moved(as_measured(links), [Coefficient("host", "busy_core_rate", "known")], np.log([0.7]))
    write_calibration(tmp_path / "truth.json", replace(truth, beside_busy=True))
    for run in (*runs, other):
        simulated(run, tmp_path / "truth.json", measured=files)
    found = calibrate(tmp_path / "links.json", runs, measured_compute=files)
    assert found.figures["host"]["busy_core_rate"].value == pytest.approx(0.7, abs=0.05)
    errors = []
    for name, record in (("found.json", found), ("alone.json", links)):
        write_calibration(tmp_path / name, record)
        checks, _ = judge([other], tmp_path / name, measured=files)
        errors.append(max(abs(check.error) for check in checks))
    assert errors[0] < 0.04
    assert errors[1] > 0.1


def test_measured_compute_is_all_beside_busy_cores_or_all_alone(tmp_path: Path) -> None:
    runs = [runs_in(tmp_path)(name, method=name) for name in ("full-graph", "pipegcn")]
    alone = parts_measured(tmp_path, runs[0], seconds=0.01, cores=2, beside=0)
    busy = parts_measured(tmp_path, runs[1], seconds=0.02, cores=2, beside=1)
    links = write_measurements(tmp_path / "links.json")
    with pytest.raises(
        ScenarioError, match=r"02.parquet was .* other cores busy, .*01.parquet with them idle; allowed"
    ):
        calibrate(links, runs, measured_compute=[*alone, *busy])
    record = calibrate(links, runs[:1], measured_compute=alone)
    assert record.beside_busy is False
    write_calibration(tmp_path / "alone.json", record)
    with pytest.raises(ScenarioError, match=r"alone.json was fitted with compute measured alone, .*was measured b"):
        judge(runs[1:], tmp_path / "alone.json", measured=busy)


def test_runs_on_cores_need_the_times_of_their_parts(tmp_path: Path, write_run: WriteRun) -> None:
    with pytest.raises(ScenarioError, match=r"runs need the times of their kernels; allowed: with --measured-compute"):
        calibrate(write_measurements(tmp_path / "links.json"), [write_run("a")])
