"""Run folders as the simulator reads them: what they say, and one line for each that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.errors import FileError
from gcnsim.record import PHASES, read_recorded_run
from runtime.options import Options
from tests.gcnsim.validation.conftest import EMULATED, WIDTHS, run_document, write_folder

OPTIONS = Options(threads=1, hidden=32)
SHARES = (
    {"compute_s": 0.04, "wait_s": 0.03, "exposed_sampling_s": 0.01, "unpack_s": 0.005},
    {"compute_s": 0.05, "wait_s": 0.001, "exposed_sampling_s": 0.01, "unpack_s": 0.002},
)


def folder(path: Path, seconds: list[float] | None = None, **more: Any) -> Path:
    return write_folder(path / "run", run_document(OPTIONS, **more), seconds or [0.1] * 10)


def said(path: Path, file: str) -> str:
    with pytest.raises(FileError) as caught:
        read_recorded_run(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path / file}: ")
    return str(caught.value).removeprefix(f"{path / file}: ")


def test_a_run_says_what_was_trained_and_on_what(tmp_path: Path) -> None:
    run = read_recorded_run(folder(tmp_path))
    assert (run.workers, run.widths, run.emulation) == (2, WIDTHS, EMULATED)
    assert run.options["method"] == "full-graph"
    assert run.hardware["cpu"] == "Xeon"
    assert set(run.graph) == {"name", "hash"}


def test_the_first_iterations_are_never_measured(tmp_path: Path) -> None:
    seconds = [9.0, 9.0, 9.0, 9.0, 9.0, 0.1, 0.2, 0.3]
    run = read_recorded_run(folder(tmp_path, seconds, warmup=0))
    assert run.iterations.tolist() == [0.1, 0.2, 0.3]
    assert run.iteration_s == pytest.approx(0.2)
    assert read_recorded_run(folder(tmp_path, seconds, warmup=7)).iterations.tolist() == [0.3]
    assert read_recorded_run(folder(tmp_path, [3.0, 2.0])).iterations.tolist() == [2.0], "a short run: its last"


def test_phases_are_those_of_the_slowest_worker_and_add_up(tmp_path: Path) -> None:
    run = read_recorded_run(folder(tmp_path, shares=SHARES))
    assert run.phases == pytest.approx({"compute": 0.04, "exposed_comm": 0.025, "exposed_other": 0.035})
    slow = read_recorded_run(folder(tmp_path, shares=SHARES, slowest=1))
    # Its waits were all for its sampler.
    assert slow.phases == pytest.approx({"compute": 0.05, "exposed_comm": 0.002, "exposed_other": 0.048})
    assert tuple(run.phases) == PHASES
    assert sum(slow.phases.values()) == pytest.approx(slow.iteration_s)


def test_what_bns_gcn_samples_it_samples_on_its_main_thread(tmp_path: Path) -> None:
    drawn = Options(method="bns-gcn", knobs={"rate": 0.1, "boundary_scale": "rate"}, threads=1, hidden=32)
    path = write_folder(tmp_path / "drawn", run_document(drawn, shares=SHARES, slowest=1), [0.1] * 10)
    told = read_recorded_run(path)
    other = read_recorded_run(folder(tmp_path, shares=SHARES, slowest=1))
    waited = told.shares.wait_s + told.shares.unpack_s
    assert told.phases["exposed_comm"] == pytest.approx(waited)
    assert other.phases["exposed_comm"] < waited
    assert told.settings["rate"] == 0.1


def test_settings_are_what_a_calibration_has_ranges_for(tmp_path: Path) -> None:
    expected = {"workers": 2, "features": 32, "layers": 2, "hidden": 32, "bandwidth": 2.5e7}
    assert read_recorded_run(folder(tmp_path)).settings == expected
    del expected["bandwidth"]
    drawn = Options(method="psc-gcn", knobs={"tau": 2, "epsilon": 0.1, "sampler": "vr"}, threads=1, hidden=32)
    alone = write_folder(tmp_path / "drawn", run_document(drawn, emulation=None), [0.1] * 6)
    assert read_recorded_run(alone).settings == expected | {"tau": 2, "epsilon": 0.1}


def test_runs_are_told_apart_by_what_they_measured(tmp_path: Path) -> None:
    hashes = {read_recorded_run(folder(tmp_path, seconds)).sha256 for seconds in ([0.1] * 10, [0.1] * 9 + [0.2])}
    hashes.add(read_recorded_run(folder(tmp_path, shares=SHARES)).sha256)
    assert len(hashes) == 3
    assert read_recorded_run(folder(tmp_path, shares=SHARES)).sha256 in hashes


def test_the_trace_is_beside_the_run_or_where_it_was_saved(tmp_path: Path) -> None:
    path = folder(tmp_path)
    assert read_recorded_run(path).trace == path / "access.trace"
    elsewhere = Options(threads=1, hidden=32, save_trace=str(tmp_path / "a.trace"))
    write_folder(path, run_document(elsewhere), [0.1] * 10)
    assert read_recorded_run(path).trace == tmp_path / "a.trace"
    (path / "access.trace").touch()
    assert read_recorded_run(path).trace == path / "access.trace"


def test_an_empty_folder_and_none_at_all(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "none"):
        text = said(tmp_path / name, "run.json")
        assert text == "cannot be read: No such file or directory; a folder that runtime.train wrote has it"


def test_an_interrupted_run(tmp_path: Path) -> None:
    document = run_document(OPTIONS, iterations=7) | {"finished": False, "summary": None}
    path = write_folder(tmp_path / "run", document, [0.1] * 7)
    assert said(path, "run.json") == "the run was interrupted after 7 iterations; train it again"


def test_an_unrecorded_run(tmp_path: Path) -> None:
    path = write_folder(tmp_path / "run", run_document(OPTIONS) | {"summary": None}, [0.1] * 10)
    assert said(path, "run.json") == "has no summary: the run was not recorded (--no-record)"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "gcnsim.run/2"}, "schema is"),
        ({"workers": 0}, "workers is 0"),
        ({"widths": [32]}, "widths has 1 items"),
        ({"emulation": {"hosts": 2}}, "emulation"),
    ],
)
def test_a_run_json_that_breaks_its_schema(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = write_folder(tmp_path / "run", run_document(OPTIONS) | change, [0.1] * 10)
    assert message in said(path, "run.json")


def test_broken_json(tmp_path: Path) -> None:
    path = folder(tmp_path)
    for text in (b"{", b"", json.dumps(run_document(OPTIONS)).encode()[:-3]):
        (path / "run.json").write_bytes(text)
        assert said(path, "run.json") == "not a JSON document"
    (path / "run.json").write_bytes(b"\xff{}")
    assert said(path, "run.json") == "not UTF-8 text (byte 0)"


@pytest.mark.parametrize("text", ["", "iteration,seconds\n"])
def test_a_run_without_iterations(tmp_path: Path, text: str) -> None:
    path = folder(tmp_path)
    (path / "iterations.csv").write_text(text)
    assert said(path, "iterations.csv") == "has no iterations"


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "iteration,seconds\n0,soon\n", "iteration,seconds\n0\n"])
def test_iterations_without_numbers(tmp_path: Path, text: str) -> None:
    path = folder(tmp_path)
    (path / "iterations.csv").write_text(text)
    assert said(path, "iterations.csv") == "has no numbers in a column 'seconds'"


def test_missing_iterations(tmp_path: Path) -> None:
    path = folder(tmp_path)
    (path / "iterations.csv").unlink()
    assert said(path, "iterations.csv").startswith("cannot be read: No such file or directory")


def test_a_timeline_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"timeline\.parquet"):
        read_recorded_run(folder(tmp_path)).timeline()
