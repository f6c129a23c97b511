"""The real cluster of a run: `cluster.json` beside its run.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError
from gcnsim.evidence.recorded_run import scenario_of
from gcnsim.evidence.validation import setting_of
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.records.run_files import Cluster, read_cluster, write_cluster
from runtime.options import Options
from tests.gcnsim.evidence.conftest import EMULATED, run_document, write_folder

CLUSTER = Cluster(2, 2, 1.25e9, 1.1e9)
OPTIONS = Options(threads=1, hidden=32, workers=4)


def folder(path: Path, cluster: Cluster | None = CLUSTER, emulation: dict[str, Any] | None = None) -> Path:
    run = write_folder(path / "run", run_document(OPTIONS, emulation=emulation), [0.1] * 10)
    if cluster is not None:
        write_cluster(run / "cluster.json", cluster)
    return run


def test_it_is_read_as_written(tmp_path: Path) -> None:
    write_cluster(tmp_path / "cluster.json", CLUSTER)
    assert read_cluster(tmp_path / "cluster.json") == CLUSTER
    assert CLUSTER.workers == 4


def test_a_run_on_several_servers_is_predicted_on_several_servers(tmp_path: Path) -> None:
    run = read_recorded_run(folder(tmp_path))
    assert run.cluster == CLUSTER
    assert run.settings["bandwidth"] == 1.25e9
    cluster = scenario_of(run).cluster
    assert (cluster.gpus, cluster.gpus_per_server, cluster.servers) == (4, 2, 2)
    assert (cluster.bandwidth, cluster.latency, cluster.shared_cores) == (1.25e9, None, False)
    assert setting_of(run).endswith("2 x 2 at 10000 Mbit/s")


def test_without_it_all_workers_are_on_one_machine(tmp_path: Path) -> None:
    run = read_recorded_run(folder(tmp_path, None))
    assert (run.cluster, run.place) == (None, None)
    assert scenario_of(run).cluster.servers == 1


def test_an_emulated_cluster_counts_first(tmp_path: Path) -> None:
    emulated = EMULATED | {"workers_per_host": 2}
    run = read_recorded_run(folder(tmp_path, emulation=emulated))
    assert run.place == emulated
    assert scenario_of(run).cluster.shared_cores


def test_a_cluster_of_other_workers_is_refused(tmp_path: Path) -> None:
    path = folder(tmp_path, Cluster(3, 2, 1.25e9, 1.1e9))
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


def test_no_json_and_no_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read: No such file"):
        read_cluster(tmp_path / "cluster.json")
    (tmp_path / "cluster.json").write_text("{", encoding="utf-8")
    with pytest.raises(FileError, match="not a JSON document"):
        read_cluster(tmp_path / "cluster.json")
