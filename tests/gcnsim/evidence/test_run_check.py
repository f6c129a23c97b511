"""Recorded runs beside their predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.evidence.fit import ranges
from gcnsim.evidence.validation import configuration_of, judge, outside, payload, setting_of
from gcnsim.records.calibration import Source, write_calibration
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.timeline.breakdown import PHASES
from tests.gcnsim.evidence.conftest import EMULATED, WriteRun, parts_measured, simulated, small_graph
from tests.gcnsim.evidence.made_calibration import calibration
from tests.gcnsim.evidence.made_validation import judged
from tests.measured_files import measured_file, write_graph

DRAWN: dict[str, Any] = {"tau": 2, "epsilon": 0.1, "sampler": "vr", "refresh": 20, "cache_policy": "inclusion"}


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "calibration.json"
    write_calibration(path, calibration(error=0.1))
    return path


def test_errors_have_signs() -> None:
    run_check = judged("a", "a", 2.0, 1.5)
    assert run_check.error == pytest.approx(-0.25)
    assert run_check.phase_error("compute") == pytest.approx((0.75 - 1.0) / 2.0)
    assert not run_check.covered


def test_a_run_that_takes_what_is_predicted_has_no_error(write_run: WriteRun, record: Path) -> None:
    folder = write_run("run")
    files = parts_measured(folder.parent, folder)
    simulated(folder, record, measured=files)
    ((run_check,), warnings) = judge([folder], record, measured=files)
    assert (run_check.run, warnings) == ("run", [])
    assert run_check.error == pytest.approx(0.0, abs=1e-12)
    assert run_check.covered
    assert all(run_check.phase_error(phase) == pytest.approx(0.0, abs=0.01) for phase in PHASES)
    # The interval is the calibration's: nothing else varies.
    assert run_check.high_s == pytest.approx(1.1 * run_check.predicted_s, rel=0.01)


def test_a_run_that_takes_half_as_long_again_is_outside_its_interval(write_run: WriteRun, record: Path) -> None:
    folder = write_run("run")
    files = parts_measured(folder.parent, folder)
    simulated(folder, record, 1.5, files)
    ((run_check,), _) = judge([folder], record, measured=files)
    assert run_check.error == pytest.approx(1 / 1.5 - 1)
    assert not run_check.covered
    assert run_check.phase_error("compute") == pytest.approx(
        (1 / 1.5 - 1) * run_check.measured["compute"] / run_check.measured_s
    )


def test_runs_keep_their_order_and_repeats_are_predicted_once(write_run: WriteRun, record: Path) -> None:
    folders = [write_run("b", seconds=[0.2] * 10), write_run("a"), write_run("c", method="pipegcn")]
    lines: list[str] = []
    files = parts_measured(folders[0].parent, *folders)
    run_checks, _ = judge([folders[2], *folders[:2]], record, measured=files, progress=lines.append)
    assert [run_check.run for run_check in run_checks] == ["c", "b", "a"]
    assert [run_check.measured_s for run_check in run_checks] == pytest.approx([0.1, 0.2, 0.1])
    assert run_checks[1].configuration == run_checks[2].configuration != run_checks[0].configuration
    assert run_checks[1].predicted_s == run_checks[2].predicted_s != run_checks[0].predicted_s
    assert "3 runs" in lines[0]


def test_the_answer_does_not_depend_on_the_number_of_processes(write_run: WriteRun, record: Path) -> None:
    folders = [write_run("a"), write_run("b", method="pipegcn")]
    files = parts_measured(folders[0].parent, *folders)
    one, two = (judge(folders, record, measured=files, processes=count) for count in (1, 2))
    assert one == two


def test_runs_on_cores_say_how_long_they_took_and_what_measures_their_parts(write_run: WriteRun, record: Path) -> None:
    folders = [write_run("a"), write_run("b", method="pipegcn")]
    for given in (None, record):
        with pytest.raises(ScenarioError) as caught:
            judge(folders, given)
        text = str(caught.value)
        assert text.startswith(
            f"{folders[0]}: 100 ms an iteration measured; not predicted: it ran on CPU cores, whose "
        )
        assert f"python -m runtime.measure --runs {folders[0]} --runs {folders[1]} --out measured, then" in text
        assert text.endswith("--measured-compute measured; or --measure-now")
        assert "\n" not in text


def test_a_run_that_the_calibration_used_is_refused(write_run: WriteRun, tmp_path: Path) -> None:
    folder = write_run("a")
    used = Source("run", "other name", read_recorded_run(folder).sha256)
    write_calibration(tmp_path / "c.json", calibration(inputs=(used,)))
    with pytest.raises(FileError) as caught:
        judge([write_run("b", seconds=[0.3] * 9), folder], tmp_path / "c.json")
    assert str(caught.value) == f"{folder}: the calibration used this run; allowed: runs it has not seen"


def test_a_run_without_its_trace_is_named(write_run: WriteRun, record: Path) -> None:
    folder = write_run("a")
    files = parts_measured(folder, folder)
    (folder / "access.trace").unlink()
    with pytest.raises(FileError, match=r"a/access\.trace: no access trace of the run; allowed: .*--save-trace "):
        judge([folder], record, measured=files)


CHANGES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("machine", {"cpu": "EPYC"}, "cpu Xeon, calibrated on EPYC"),
    ("machine", {"cores": 64}, "cores 2, calibrated on 64"),
    ("versions", {"torch": "1.0"}, "torch 2.13.0, calibrated with 1.0"),
    ("versions", {"gcnsim": "0.0.1"}, "calibrated with 0.0.1"),
)


@pytest.mark.parametrize(("part", "change", "message"), CHANGES)
def test_another_machine_or_version_is_warned_of(
    write_run: WriteRun, tmp_path: Path, part: str, change: dict[str, Any], message: str
) -> None:
    folder = write_run("a")
    known = calibration()
    write_calibration(tmp_path / "c.json", calibration(**{part: {**getattr(known, part), **change}}))
    files = parts_measured(tmp_path, folder)
    run_checks, warnings = judge([folder], tmp_path / "c.json", measured=files)
    assert len(run_checks) == 1
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{folder}: ")
    assert warnings[0].endswith(message)


def test_a_run_by_other_kernels_than_were_measured_is_refused(write_run: WriteRun, record: Path) -> None:
    folder, plain = write_run("a", aggregator="numba"), write_run("b")
    files = parts_measured(folder.parent, plain)
    with pytest.raises(ScenarioError, match=r"cluster.aggregator: numba is not what .* has measured: plain; measure"):
        judge([folder], record, measured=files)


def test_a_run_counts_once(write_run: WriteRun) -> None:
    folder = write_run("a")
    with pytest.raises(FileError, match="a run is given twice"):
        judge([folder, folder], None)


def test_versions_that_change_no_times_are_not_warned_of(write_run: WriteRun, tmp_path: Path) -> None:
    versions = {**calibration().versions, "numpy": "1.0", "python": "3.12.1"}
    write_calibration(tmp_path / "c.json", calibration(versions=versions))
    folder = write_run("a")
    _, warnings = judge([folder], tmp_path / "c.json", measured=parts_measured(tmp_path, folder))
    assert warnings == []


def test_settings_beyond_the_calibrated_range_are_flagged(write_run: WriteRun) -> None:
    seen = read_recorded_run(write_run("seen", emulation=EMULATED | {"bandwidth": 5e7}))
    run = read_recorded_run(write_run("b", method="psc-gcn", knobs=DRAWN))
    slow = EMULATED | {"bandwidth": 1e7, "measured": 0.94e7, "latency_s": 1e-3}
    found = outside(read_recorded_run(write_run("a", emulation=slow)), calibration(ranges=ranges([seen])))
    assert found == ("bandwidth 1e+07 (calibrated: 5e+07)", "latency_s 0.001 (calibrated: 0)")
    whole = ranges([seen, run])
    assert outside(run, calibration(ranges=whole)) == outside(seen, calibration(ranges=whole)) == ()
    narrow = calibration(ranges=whole | {"tau": (0.0, 1.0), "epsilon": (0.3, 1.0)})
    assert outside(run, narrow) == ("tau 2 (calibrated: 0 to 1)", "epsilon 0.1 (calibrated: 0.3 to 1)")


def test_what_no_calibration_run_had_is_flagged_by_name(write_run: WriteRun) -> None:
    seen = ranges([read_recorded_run(write_run("a"))])
    hosts = EMULATED | {"hosts": 3, "workers_per_host": 2, "bandwidth": 2.5e7}
    run = read_recorded_run(write_run("b", method="bns-gcn", knobs={"rate": 0.1}, workers=6, emulation=hosts))
    assert outside(
        run, calibration(ranges={name: value for name, value in seen.items() if not name.startswith("graph.")})
    ) == (
        "method bns-gcn (never calibrated)",
        "graph small (never calibrated)",
        "workers 6 (calibrated: 2)",
        "hosts 3 (calibrated: 2)",
        "workers_per_host 2 (calibrated: 1)",
        "rate 0.1 (never calibrated)",
    )
    assert outside(run, calibration(ranges={})) == ("every setting (calibrated without runs)",)


def test_settings_and_configurations_in_words(write_run: WriteRun) -> None:
    run = read_recorded_run(write_run("a", method="psc-gcn", knobs=DRAWN))
    assert setting_of(run) == "small, gcn 32-32-8, 2 x 1 at 200 Mbit/s"
    assert configuration_of(run) == "psc-gcn, tau 2, epsilon 0.1"
    plain = read_recorded_run(write_run("b", emulation=None, overlap="none"))
    assert setting_of(plain) == "small, gcn 32-32-8, 2 workers on one machine"
    assert configuration_of(plain) == "full-graph, no overlap"
    assert configuration_of(read_recorded_run(write_run("c"))) == "full-graph"


def test_a_drawn_run_is_predicted_from_its_own_trace(write_run: WriteRun, record: Path) -> None:
    folder = write_run("a", method="psc-gcn", knobs={**DRAWN, "tau": 1, "epsilon": 0.3})
    files = parts_measured(folder.parent, folder)
    ((found,), _) = judge([folder], record, measured=files)
    assert found.low_s < found.predicted_s < found.high_s
    document = json.loads((folder / "run.json").read_text())
    document["options"]["knobs"]["epsilon"] = 0.5
    (folder / "run.json").write_text(json.dumps(document))
    with pytest.raises(ScenarioError, match=r"access\.trace: was drawn with vr at epsilon 0\.3"):
        judge([folder], record, measured=parts_measured(folder.parent, folder))


def test_links_paced_in_the_exchange_are_noted(write_run: WriteRun, record: Path) -> None:
    folder = write_run("a", emulation=EMULATED | {"limiter": "exchange"})
    files = parts_measured(folder.parent, folder)
    for given in (record, None):
        _, warnings = judge([folder], given, measured=files)
        assert len(warnings) == 1
        assert warnings[0].startswith(f"{folder}: its links were paced in the exchange (limiter exchange)")


def test_a_trace_of_another_run_is_refused_and_one_elsewhere_is_noted(write_run: WriteRun, tmp_path: Path) -> None:
    folder, other = write_run("a", save_trace=str(tmp_path / "saved.trace")), write_run("b", seed=4)
    (folder / "access.trace").rename(tmp_path / "saved.trace")
    files = parts_measured(tmp_path, folder)
    _, warnings = judge([folder], None, measured=files)
    saved = tmp_path / "saved.trace"
    assert warnings == [f"{folder}: has no access.trace beside it; read from where it was saved, {saved}"]
    drawn = write_run("c", method="psc-gcn", knobs=DRAWN)
    (drawn / "access.trace").replace(other / "access.trace")
    with pytest.raises(ScenarioError, match=r"b/access\.trace: was drawn with vr at epsilon 0\.1, the run with full"):
        judge([other], None, measured=files)


def test_what_is_trained_differently_is_another_configuration(write_run: WriteRun) -> None:
    changes: list[dict[str, Any]] = [{}, {"norm": "layer"}, {"lr": 0.1}, {"bias": False}, {"optimizer": "sgd"}]
    changes += [{"dtype": "float64"}, {"partition_method": "block"}, {"weight_decay": 0.1}, {"aggregator": "dgl"}]
    words = [configuration_of(read_recorded_run(write_run(str(i), **change))) for i, change in enumerate(changes)]
    assert words[:3] == ["full-graph", "full-graph, norm layer", "full-graph, lr 0.1"]
    assert len(set(words)) == len(words)
    again = configuration_of(read_recorded_run(write_run("again", seed=3, out="elsewhere", quiet=True)))
    assert again == words[0], "repeats and what is only said or saved are one"


def measured(folder: Path, seconds: float, hidden: int = 32, **partition: Any) -> Path:
    """A file of compute times of the runs' parts, each operation of so many seconds."""
    return measured_file(
        folder,
        write_graph(folder),
        2,
        seconds=lambda *_: seconds,
        name=f"{seconds}.parquet",
        device={"kind": "cpu", "name": "a core", "threads": 1},
        graph={"name": "small", "hash": small_graph().content_hash(), "features": 32, "classes": 8},
        partition={"hash": "cd34", "algorithm": "block"} | partition,
        model={"hidden": hidden, "widths": [32, hidden, 8]},
    )


def test_compute_is_as_long_as_measured(write_run: WriteRun, tmp_path: Path) -> None:
    folder = write_run("run")
    slow, fast = (judge([folder], None, measured=[measured(tmp_path, value)])[0][0] for value in (0.02, 0.01))
    assert slow.predicted["compute"] == pytest.approx(2 * fast.predicted["compute"], rel=1e-6)
    assert fast.low_s < fast.predicted_s < fast.high_s


def test_each_run_is_predicted_by_the_file_of_its_own_parts(write_run: WriteRun, tmp_path: Path) -> None:
    folder = write_run("run")
    other, own = measured(tmp_path, 0.05, hash="another"), measured(tmp_path, 0.01)
    ((found,), _) = judge([folder], None, measured=[other, own])
    assert found.predicted_s == judge([folder], None, measured=[own])[0][0].predicted_s
    with pytest.raises(ScenarioError) as error:
        judge([folder], None, measured=[other])
    why = "not predicted: small in 2 parts is in none of the measured files; measure it: python -m runtime.measure"
    assert f"{why} --runs {folder} " in str(error.value)
    assert payload([found], None, [], [own])["measured_compute"][0]["name"] == "0.01.parquet"


def test_of_two_models_on_the_same_parts_the_run_s_own_answers(write_run: WriteRun, tmp_path: Path) -> None:
    folder = write_run("run", hidden=32)
    other, own = measured(tmp_path, 0.05, hidden=64), measured(tmp_path, 0.01)
    ((found,), _) = judge([folder], None, measured=[other, own])
    assert found.predicted_s == judge([folder], None, measured=[own])[0][0].predicted_s
    with pytest.raises(ScenarioError, match=r"workload\.hidden: 32 is not what .* has measured: 64"):
        judge([folder], None, measured=[other])


def test_no_runs_are_refused(record: Path) -> None:
    with pytest.raises(ScenarioError, match="no run folder given"):
        judge([], record)
