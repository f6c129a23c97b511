"""Coefficients are found again from runs that a machine with other coefficients would have made."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.calibration import calibrate
from gcnsim.calibration.fit import ranges
from gcnsim.calibration.runs import (
    COEFFICIENTS,
    Coefficient,
    as_measured,
    freedom_over,
    moved,
    outside_kernels,
    refine,
    spread_of_repeats,
)
from gcnsim.calibration_record.record import Calibration, Fitted, Source, write_calibration
from gcnsim.errors import FileError, ScenarioError
from gcnsim.hardware import CoreKernels, device
from gcnsim.hardware.profiles import TERMS, SumFigures
from gcnsim.measured_compute import read_measured_compute
from gcnsim.runs.recorded_run import RecordedRun, read_recorded_run
from gcnsim.validation import judge
from tests.gcnsim.calibration.made import World, calibration, measurements, write_measurements
from tests.gcnsim.calibration.test_attention import made as attention
from tests.gcnsim.calibration.test_maps import KNOWN as MAPS
from tests.gcnsim.calibration.test_maps import losses, maps
from tests.gcnsim.calibration.test_pooling import made as pooling
from tests.gcnsim.calibration.test_sums import KNOWN, points
from tests.gcnsim.validation.conftest import EMULATED, WIDTHS, WriteRun, runs_in, simulated, small_graph
from tests.gcnsim.validation.test_run_check import measured as measured_parts

FACTORS = {"socket_bandwidth": 0.6, "busy_core_rate": 0.85}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Measurements of a machine, and runs of one whose coefficients are FACTORS times as much."""
    folder = tmp_path_factory.mktemp("world")
    write_run = runs_in(folder)
    measured = write_measurements(folder / "profile.json")
    truth = _altered(calibrate(measured))
    write_calibration(folder / "truth.json", truth)
    slow = EMULATED | {"bandwidth": 1e7, "measured": 0.94e7}
    wide = (64, 64, 64, 8)
    seen = [
        write_run("a", method="full-graph"),
        write_run("b", method="full-graph", overlap="none", emulation=slow),
        write_run("c", method="pipegcn", emulation=slow),
        write_run("d", method="full-graph", widths=wide),
    ]
    unseen = [write_run("e", method="pipegcn"), write_run("f", method="full-graph", widths=wide, overlap="none")]
    for run in (*seen, *unseen):
        simulated(run, folder / "truth.json")
    found = calibrate(measured, seen)
    write_calibration(folder / "found.json", found)
    return World(measured, seen, unseen, found, folder / "found.json")


def _altered(record: Calibration) -> Calibration:
    """The machine that the runs are made on; the network's share is that measured before each of them."""
    network = {**record.figures["network"], "efficiency": Fitted(0.94, "measured before each run")}
    named = {one.name: one for one in COEFFICIENTS}
    graph = Coefficient("graphs", small_graph().content_hash(), "sums over neighbours on this graph")
    return moved(
        replace(record, figures={**record.figures, "network": network}),
        [*(named[name] for name in FACTORS), graph],
        np.log([*FACTORS.values(), 1.3]),
    )


def test_the_runs_are_reproduced_and_so_are_others(world: World, tmp_path: Path) -> None:
    before = calibrate(world.measurements)
    write_calibration(tmp_path / "before.json", before)
    raw, _ = judge(world.unseen, tmp_path / "before.json")
    assert max(abs(run_check.error) for run_check in raw) > 0.05, "the benchmarks alone do not know these runs"
    left, unseen = world.found.residuals[-2:]
    assert (unseen.term, unseen.points) == ("the same of a run not fitted to", 4)
    assert (left.term, left.points) == ("iterations of the runs", 4)
    assert left.mape < 0.02
    assert left.p90 < 0.03
    held_out, warnings = judge(world.unseen, world.file)
    assert max(abs(run_check.error) for run_check in held_out) < 0.03
    assert warnings == []


def test_runs_are_inputs_and_refused_afterwards(world: World) -> None:
    sources = [(source.kind, source.name) for source in world.found.inputs]
    assert sources == [("measurements", "profile.json"), *(("run", name) for name in "abcd")]
    for folder in world.seen:
        assert world.found.used(read_recorded_run(folder).sha256)
        with pytest.raises(FileError) as caught:
            judge([*world.unseen, folder], world.file)
        assert str(caught.value) == f"{folder}: the calibration used this run; allowed: runs it has not seen"


def test_the_record_says_within_which_settings_and_how_far_off(world: World) -> None:
    found = world.found
    assert found.ranges["bandwidth"] == (1e7, 2.5e7)
    assert found.ranges["layers"] == (2.0, 3.0)
    assert found.ranges["features"] == (32.0, 64.0)
    assert found.error is not None
    assert 0.0 <= found.error < 0.05
    assert found.figures["network"]["efficiency"].value == pytest.approx(0.94)
    assert "; then processor time per byte" in found.figures["host"]["socket_bandwidth"].reference
    assert set(found.graphs) == {small_graph().content_hash()}
    assert found.graphs[small_graph().content_hash()] > 1.0


def test_moved_is_a_factor_on_each_coefficient() -> None:
    record = calibration()
    chosen = [Coefficient("host", "socket_bandwidth", "r"), Coefficient("graphs", "feed", "g")]
    chosen.append(Coefficient("graphs", "new", "g"))
    found = moved(record, chosen, np.log([2.0, 0.5, 3.0]))
    assert found.figures["host"]["socket_bandwidth"].value == pytest.approx(3e9)
    assert found.figures["host"]["socket_bandwidth"].reference == "chosen for a test; then r"
    assert dict(found.graphs) == pytest.approx({"feed": 0.625, "new": 3.0})
    others = {name for name in record.figures["host"] if name != "socket_bandwidth"}
    assert all(found.figures["host"][name] == record.figures["host"][name] for name in others)
    assert record == calibration(), "what is moved is a copy"


def test_shares_stay_shares() -> None:
    found = moved(calibration(), [Coefficient("host", "busy_core_rate", "r")], np.log([4.0]))
    assert found.figures["host"]["busy_core_rate"].value == 1.0


def test_without_runs_the_figures_are_those_of_the_benchmarks(tmp_path: Path) -> None:
    lines: list[str] = []
    path = write_measurements(tmp_path / "profile.json")
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
    with pytest.raises(ScenarioError) as caught:
        calibrate(write_measurements(tmp_path / "other.json", other), [folder])
    assert str(caught.value) == f"{folder}: ran on Xeon, measured was EPYC"


def test_runs_by_other_kernels_and_profiles_too_short_for_them_are_refused(tmp_path: Path, write_run: WriteRun) -> None:
    folder = write_run("a", aggregator="numba")
    plain = write_measurements(tmp_path / "plain.json")
    with pytest.raises(ScenarioError) as caught:
        calibrate(plain, [folder])
    assert str(caught.value) == (
        f"{folder}: trained with --aggregator numba and --threads 1, plain.json is of --aggregator plain and --threads "
        "1; train with these, or calibrate with a profile of the others (python -m runtime.profile)"
    )
    document = measurements()
    document["options"]["aggregator"] = "numba"
    own = write_measurements(tmp_path / "numba.json", document)
    with pytest.raises(ScenarioError, match=r"numba.json: measured with --aggregator numba and .*, but no pooling"):
        calibrate(own)


def test_a_record_says_of_which_kernels_it_is(tmp_path: Path) -> None:
    document = measurements()
    document["options"] |= {"aggregator": "numba", "threads": 2}
    known = [*points(KNOWN), *attention(), *maps(replace(device("cpu-core"), maps=MAPS)), *pooling()]
    # One that says more of its calls is of `loss` alone.
    known += [loss for loss in losses() if loss.params["rows"] > 64]
    document["measurements"] += [{**asdict(item), "repeats": 5} for item in known]
    record = calibrate(write_measurements(tmp_path / "numba.json", document))
    assert record.pooling is not None
    assert record.kernels == CoreKernels("numba", 2)
    assert record.figures["host"]["cores"].value == 2.0
    assert record.figures["host"]["busy_core_rate"].value == 1.0, "two threads of one worker fill both cores"


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
    record = calibrate(write_measurements(tmp_path / "profile.json"), folders, warn=heard.append)
    assert record.spread == pytest.approx(apart / 2 * np.sqrt(2.0))
    message = (
        "--runs: runs of one configuration differ by 7 % (standard deviation), more than 5 %: something else slowed"
    )
    assert [text.startswith(message) for text in heard] == [True] * noted


def test_runs_in_sessions_of_their_own_are_noted_where_workers_share_cores(tmp_path: Path, write_run: WriteRun) -> None:
    before = {name: value for name, value in EMULATED.items() if name != "one_session"}
    measured, text = write_measurements(tmp_path / "profile.json"), []
    for name, workers, emulation in (("a", 4, before), ("b", 2, before), ("c", 4, EMULATED)):
        folder = write_run(name, workers=workers, emulation=emulation | {"workers_per_host": workers // 2})
        heard: list[str] = []
        calibrate(measured, [folder], warn=heard.append)
        text.append(heard)
        assert judge([folder], None)[1] == heard
    assert text[1:] == [[], []]
    assert text[0] == [
        f"{tmp_path / 'a'}: each of its 4 workers on 2 cores was in a session of its own, among which Linux shares "
        "cores first: it waited longer at a time than the simulator has it"
    ]


def test_no_graph_has_a_factor_where_the_order_of_its_matrices_is_known(tmp_path: Path) -> None:
    sums = SumFigures((48e3, 2e6, 4e7), dict.fromkeys(TERMS, 2e-10))
    record = replace(calibrate(write_measurements(tmp_path / "profile.json")), sums=sums)
    write_calibration(tmp_path / "truth.json", record)
    # Wide layers: what an iteration takes outside its kernels, which the fit takes from the runs, is a small part.
    runs = [runs_in(tmp_path)(name, method=name, widths=(64, 64, 64, 8)) for name in ("full-graph", "pipegcn")]
    for run in runs:
        simulated(run, tmp_path / "truth.json")
    found = refine(record, [read_recorded_run(run) for run in runs])
    assert dict(found.graphs) == {}
    assert found.sums == sums
    assert found.residuals[-1].mape < 0.01


def test_mini_batches_do_not_say_what_an_iteration_of_the_whole_graph_takes_besides(
    tmp_path: Path, write_run: WriteRun
) -> None:
    measured = calibrate(write_measurements(tmp_path / "profile.json"))
    whole, other = (read_recorded_run(write_run(name)) for name in "ab")
    slow = replace(other, options={**other.options, "method": "dgl"}, iterations=other.iterations + 9.0)
    alone, both = (outside_kernels(measured, runs).figures["host"]["iteration_s"] for runs in ([whole], [whole, slow]))
    assert alone.value == both.value != measured.figures["host"]["iteration_s"].value
    assert outside_kernels(measured, [slow]).figures["host"]["iteration_s"] == measured.figures["host"]["iteration_s"]


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
    calibrate(write_measurements(tmp_path / "profile.json"), [folder], warn=heard.append)
    assert judge([folder], None)[1] == heard
    assert [line.startswith(f"{folder}: 2 workers of 1 thread had the time of") for line in heard] == [True] * noted


def test_what_runs_lose_beyond_measured_compute_is_found_again(tmp_path: Path) -> None:
    write_run = runs_in(tmp_path)
    file = read_measured_compute(str(measured_parts(tmp_path, 0.01, methods=("full-graph", "pipegcn"))))
    links = _links_only(calibrate(write_measurements(tmp_path / "profile.json")))
    truth = moved(as_measured(links), [Coefficient("host", "busy_core_rate", "known")], np.log([0.7]))
    write_calibration(tmp_path / "truth.json", truth)
    slow = EMULATED | {"bandwidth": 1e7, "measured": 0.94e7}
    runs = [
        simulated(write_run(f"{name}{place}", method=name, emulation=network), tmp_path / "truth.json", measured=[file])
        for name in ("full-graph", "pipegcn")
        for place, network in enumerate((EMULATED, slow))
    ]
    found = refine(links, runs, measured=[file])
    assert found.figures["host"]["busy_core_rate"].value == pytest.approx(0.7, abs=0.05)
    paths = [run.path for run in runs]
    errors = []
    for name, record in (("found.json", found), ("alone.json", links)):
        write_calibration(tmp_path / name, record)
        checks, _ = judge(paths, tmp_path / name, measured=[Path(file.path)])
        errors.append(max(abs(check.error) for check in checks))
    assert errors[0] < 0.04
    assert errors[1] > 0.1


def _links_only(record: Calibration) -> Calibration:
    """The record with what links cost, and nothing of kernels."""
    host = {name: record.figures["host"][name] for name in ("cores", "message_s", "socket_bandwidth", "reduce_step_s")}
    figures = {"device": {}, "host": host, "network": record.figures["network"]}
    inputs = (*record.inputs, Source("measured_compute", "file", "0" * 64))
    return replace(
        record, inputs=inputs, figures=figures, curve=(), sums=None, attention=None, maps=None, pooling=None, far=None
    )
