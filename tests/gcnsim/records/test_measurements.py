"""Measured runs, micro-benchmarks and clusters, as files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.evidence.fitting import read_measurements
from gcnsim.evidence.recorded_run import scenario_of
from gcnsim.evidence.validation import setting_of
from gcnsim.records.recorded_run import interval_of_mean, read_measured, read_recorded_run
from gcnsim.records.run_files import Cluster, read_cluster, write_cluster
from runtime.options import Options
from tests.gcnsim.evidence.conftest import EMULATED, WriteRun, run_document, write_folder, write_run
from tests.gcnsim.evidence.made_calibration import MACHINE, measurements, write_measurements
from tests.gcnsim.records.made_traces import cuda_events, document, folder, write


def refusal(path: Path) -> str:
    with pytest.raises(FileError) as caught:
        read_measurements(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    document = measurements()
    path = write_measurements(tmp_path / "profile.json", document)
    found = read_measurements(path)
    assert (found.machine, found.device, found.seconds) == (MACHINE, "cpu", 60.0)
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert [(measurement.kernel, measurement.params, measurement.seconds) for measurement in found.found] == [
        (measurement["kernel"], measurement["params"], measurement["seconds"])
        for measurement in document["measurements"]
    ]


def test_a_missing_key_a_missing_file_and_what_is_no_json(tmp_path: Path) -> None:
    document = measurements()
    del document["options"]
    assert "has no options" in refusal(write_measurements(tmp_path / "a.json", document))
    assert "cannot be read" in refusal(tmp_path / "none.json")
    (tmp_path / "b.json").write_text(json.dumps(measurements())[:-10])
    assert "not a JSON document" in refusal(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (float("nan"), "measurements[0].seconds is nan; allowed: finite numbers up to 1e+30"),
        (1e308, "measurements[0].seconds is 1e+308; allowed: finite numbers up to 1e+30"),
        (1e9, "measurements[0].seconds is 1000000000.0, wanted 3600 or less"),
    ],
)
def test_times_that_no_kernel_takes(tmp_path: Path, seconds: float, message: str) -> None:
    document = measurements()
    document["measurements"][0]["seconds"] = seconds
    assert message in refusal(write_measurements(tmp_path / "profile.json", document))


__all__ = ["write_run"]


def test_a_run_of_ours(write_run: WriteRun) -> None:
    path = write_run("run", seconds=[9.0] * 5 + [0.1, 0.2, 0.3])
    measured = read_measured(path)
    assert (measured.kind, measured.workers, measured.iterations) == ("run", 2, 3)
    assert measured.iteration_s == pytest.approx(0.2)
    assert measured.spread_s == pytest.approx(0.1)
    half = 2.919986 * 0.1 / 3**0.5
    assert (measured.low_s, measured.high_s) == pytest.approx((0.2 - half, 0.2 + half)), "Student's, 2 degrees"
    assert measured.error_s == pytest.approx(0.1 / 3**0.5)
    assert measured.phases == read_recorded_run(path).phases


def test_traces_of_a_profiler(tmp_path: Path) -> None:
    measured = read_measured(folder(tmp_path / "traces"))
    assert (measured.kind, measured.workers, measured.iterations) == ("trace", 2, 4)
    assert (measured.iteration_s, measured.low_s, measured.high_s) == pytest.approx((0.1, 0.1, 0.1))
    assert measured.phases == pytest.approx({"compute": 0.05, "exposed_comm": 0.025, "exposed_other": 0.025})
    assert any("left out" in note for note in measured.notes)
    alone = read_measured(write(tmp_path / "t.json", document(cuda_events(steps=1))))
    assert (alone.iterations, alone.spread_s, alone.error_s) == (1, 0.0, 0.0)
    assert alone.low_s == alone.high_s == alone.iteration_s


def test_what_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"run\.json: cannot be read"):
        read_measured(tmp_path)
    (tmp_path / "t.txt").write_text("hello")
    with pytest.raises(FileError, match=r"t\.txt: not a JSON document"):
        read_measured(tmp_path / "t.txt")


@pytest.mark.parametrize("count", [2, 3, 5])
def test_an_interval_of_few_iterations_holds_the_mean_nine_times_in_ten(count: int) -> None:
    times = np.random.default_rng(2).normal(1.0, 0.05, (2000, count))
    held = [low <= 1.0 <= high for low, high in (interval_of_mean(time) for time in times)]
    # 2,000 trials: a standard error of 0.7 %.
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)


def test_an_interval_of_times_begins_at_nothing_at_the_earliest() -> None:
    low, high = interval_of_mean(np.array([0.1, 1.0]))
    assert low == 0.0
    assert high > 1.0


CLUSTER = Cluster(2, 2, 1.25e9, 1.1e9)
OPTIONS = Options(threads=1, hidden=32, workers=4)


def survey_folder(path: Path, cluster: Cluster | None = CLUSTER, emulation: dict[str, Any] | None = None) -> Path:
    run = write_folder(path / "run", run_document(OPTIONS, emulation=emulation), [0.1] * 10)
    if cluster is not None:
        write_cluster(run / "cluster.json", cluster)
    return run


def test_a_run_on_several_servers_is_predicted_on_several_servers(tmp_path: Path) -> None:
    run = read_recorded_run(survey_folder(tmp_path))
    assert run.cluster == CLUSTER
    assert run.settings["bandwidth"] == 1.25e9
    cluster = scenario_of(run).cluster
    assert (cluster.gpus, cluster.gpus_per_server, cluster.servers) == (4, 2, 2)
    assert (cluster.bandwidth, cluster.latency, cluster.shared_cores) == (1.25e9, None, False)
    assert setting_of(run).endswith("2 x 2 at 10000 Mbit/s")


def test_an_emulated_cluster_counts_first(tmp_path: Path) -> None:
    emulated = EMULATED | {"workers_per_host": 2}
    run = read_recorded_run(survey_folder(tmp_path, emulation=emulated))
    assert run.place == emulated
    assert scenario_of(run).cluster.shared_cores


def test_a_cluster_of_other_workers_is_refused(tmp_path: Path) -> None:
    path = survey_folder(tmp_path, Cluster(3, 2, 1.25e9, 1.1e9))
    with pytest.raises(FileError, match=r"cluster.json: of 6 workers, the run had 4$"):
        read_recorded_run(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema": "other"}, 'schema is "other", wanted "gcnsim.cluster/1"'),
        ({"hosts": 0}, "hosts is 0, wanted 1 or more"),
        ({"hosts": 2.5}, "hosts is 2.5, wanted integer"),
        ({"bandwidth": "1Gbps"}, 'bandwidth is "1Gbps", wanted number'),
        ({"measured": True}, "measured is true, wanted number"),
        ({"measured": float("inf")}, "measured is inf; allowed: finite numbers up to 1e+30"),
    ],
)
def test_a_wrong_one_is_refused(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    write_cluster(path, CLUSTER)
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(FileError) as caught:
        read_cluster(path)
    assert str(caught.value) == f"{path}: {words}"
