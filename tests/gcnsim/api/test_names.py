"""Names of the API, rows that are kept, short errors, simulations."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from importlib import import_module
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pyarrow.parquet as pq
import pytest

import gcnsim
import gcnsim.api
import gcnsim.graph
from gcnsim.api import RowCache, row_cache, what_if, write_result
from gcnsim.core.errors import GcnsimError, ScenarioError

PACKAGES = ("gcnsim.api", "gcnsim.graph")


def test_a_name_is_that_of_its_module() -> None:
    from gcnsim.api.iterations import render_comparison
    from gcnsim.graph.load import load_graph

    assert gcnsim.graph.load_graph is load_graph
    assert gcnsim.api.render_comparison is render_comparison


@pytest.mark.parametrize("package", PACKAGES)
def test_no_other_name_is_there(package: str) -> None:
    with pytest.raises(AttributeError, match=rf"module '{package}' has no attribute 'nothing'"):
        import_module(package).nothing  # noqa: B018


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there_and_completed(package: str) -> None:
    code = f"import {package} as one; assert {{*one.__all__}} <= {{*dir(one)}}; [getattr(one, x) for x in one.__all__]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_threads_get_the_same_function_with_brief_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    from gcnsim.api.question import what_if

    monkeypatch.delitem(vars(gcnsim.api), "what_if", raising=False)
    found: list[Any] = []
    together = Barrier(4)

    def ask() -> None:
        together.wait()
        found.append(gcnsim.api.what_if)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert {one.__wrapped__ for one in found} == {what_if}
    assert all(one is gcnsim.api.what_if for one in found)


@pytest.mark.parametrize(
    ("arguments", "spared"),
    [
        (["what-if", "--help"], ["rich", "pyarrow", "gcnsim.api", "gcnsim.simulation"]),
        (
            ["what-if", "--gpus", "2", "--method", "pipegcn", "--iterations", "2", "--processes", "1"],
            [
                *("pyarrow", "gcnsim.graph.load", "gcnsim.evidence.recorded_run"),
                *("gcnsim.simulation.graph_source", "gcnsim.simulation.trace_source"),
            ],
        ),
    ],
)
def test_a_command_imports_only_what_it_runs(arguments: list[str], spared: list[str]) -> None:
    code = (
        "import sys; from gcnsim.cli import main\n"
        f"assert main({arguments!r}) == 0\n"
        f"print([name for name in {spared!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout
    assert done.stderr.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("what_if", {"device": "b100"}),
        ("recommend", {"gpus": 0}),
        ("simulate", {"scenario": {}}),
        ("open_sweep", {"path": "nowhere"}),
        ("load_graph", {"path": "no.npz"}),
    ],
)
def test_a_wrong_value_raises_in_under_ten_lines(name: str, given: dict[str, object]) -> None:
    with pytest.raises(GcnsimError) as caught:
        getattr(gcnsim, name)(**given)
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert lines[-1].startswith("gcnsim.core.errors.")
    assert len(lines) < 10


def test_a_sweep_is_shown_in_a_line(tmp_path: Path) -> None:
    axes = {"cluster.host": "P3.8xlarge,g4dn.12xlarge", "cluster.gpus_per_server": "2,4"}
    sweep = gcnsim.sweep(
        axes=axes,
        out=tmp_path / "s",
        interval="none",
        overrides=["run.iterations=2", "cluster.gpus=4", "method.name=bns-gcn"],
        processes=1,
    )
    assert repr(sweep) == f"Sweep('{tmp_path / 's'}': 4 of 4 points; axes cluster.host, cluster.gpus_per_server)"
    rows = sweep.to_arrow().to_pylist()
    assert [(row["cluster.host"], row["device"], row["cluster.gpus_per_server"]) for row in rows] == [
        ("p3.8xlarge", "v100-16", 2),
        ("p3.8xlarge", "v100-16", 4),
        ("g4dn.12xlarge", "t4", 2),
        ("g4dn.12xlarge", "t4", 4),
    ]
    assert [row["bandwidth_bytes_per_s"] for row in rows] == [1.25e9, 1.25e9, 6.25e9, 6.25e9]


def test_two_networks_say_what_the_faster_one_brings_and_have_the_recommended_setting() -> None:
    answer = gcnsim.what_if(
        gpus=4, bandwidth=["1GbE", "100GbE"], method="full-graph", allow="pipegcn", iterations=2, processes=1
    )
    best = answer.told.recommendation
    assert best.networks.startswith("100Gbps instead of 1Gbps takes ")
    assert best.networks.endswith("for pipegcn.")
    assert [(row.method, row.bandwidth_bytes_per_s) for row in best.by_machine] == [("pipegcn", 1.25e8)]
    assert best.networks in " ".join(str(answer).split())
    frame = answer.to_arrow().to_pylist()
    assert {row["bandwidth_bytes_per_s"] for row in frame} == {1.25e8, 1.25e10}
    assert all(row["nic_bytes_per_s"] == row["nic_bytes"] / row["iteration_s"] for row in frame)
    assert len(frame) == 4


SETTINGS: tuple[dict[str, Any], ...] = (
    {"method": "psc-gcn", "gpus": 2, "tau": 1, "epsilon": 0.3},
    {"method": "full-graph", "gpus": 2},
    {"method": "bns-gcn", "gpus": 4},
)


def test_warm_rows_are_those_of_the_command() -> None:
    warm_rows = RowCache()
    for bandwidth in ("15Gbps", "5Gbps"):
        found = [row for setting in SETTINGS for row in warm_rows.rows(**setting, bandwidth=bandwidth)]
    for setting, row in zip(SETTINGS, found, strict=True):
        content = what_if(**setting, bandwidth="5Gbps").rows[0]
        # The whole answer also judges rows, and simulates draws where settings compete.
        for name in ("iteration_s", "epoch_s", "compute_s", "exposed_comm_s", "speedup_vs_full_graph", "nic_bytes"):
            assert getattr(row, name) == getattr(content, name), (setting, name)


@pytest.mark.parametrize("most", [row_cache.MOST_PAIRS, 1])
def test_what_was_asked_before_changes_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_cache, "MOST_PAIRS", most)
    warm_rows = RowCache()
    for bandwidth in ("15Gbps", "5Gbps", "15Gbps"):
        for setting in SETTINGS:
            question = setting | {"bandwidth": bandwidth}
            assert warm_rows.rows(**question) == RowCache().rows(**question)


def test_schedules_are_kept_for_few_pairs_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_cache, "MOST_PAIRS", 24)
    warm_rows = RowCache()
    for gpus in (2, 4, 2, 4, 2):
        warm_rows.rows(method="full-graph", gpus=gpus)
    assert [template.cluster.gpus for template in warm_rows._templates] == [4, 2]
    warm_rows.rows(method="full-graph", gpus=6)
    assert [template.cluster.gpus for template in warm_rows._templates] == [6]


def test_a_changed_graph_is_read_again(tmp_path: Path) -> None:
    warm_rows, graph = RowCache(), tmp_path / "ring.csv"
    found = []
    for nodes in (60, 400):
        graph.write_text("".join(f"{node},{(node + 1) % nodes}\n" for node in range(nodes)), encoding="utf-8")
        question = SETTINGS[1] | {"graph": str(graph)}
        found.append(warm_rows.rows(**question))
        assert found[-1] == RowCache().rows(**question)
    assert found[0] != found[1]


SMALL: dict[str, Any] = {
    "schema": "gcnsim.scenario/1",
    "name": "small",
    "cluster": {"gpus": 2, "gpus_per_server": 1},
    "method": {"name": "full-graph"},
    "run": {"iterations": 2},
}


def test_faults_are_those_of_the_scenario_and_those_injected() -> None:
    content = gcnsim.simulate(SMALL | {"faults": [{"kind": "slow-gpu"}]}, inject=["slow-link:link=nic0"]).payload
    assert [fault["kind"] for fault in content["scenario"]["faults"]] == ["slow-gpu", "slow-link"]
    with pytest.raises(ScenarioError, match=r"--inject pause.worker: 2: no such worker; allowed: 0 to 1"):
        gcnsim.simulate(SMALL, inject=["pause:worker=2"])


def test_the_result_and_its_spans_are_written_into_a_folder(tmp_path: Path) -> None:
    simulation = gcnsim.simulate(SMALL)
    write_result(simulation, tmp_path / "new")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["result.json", "spans.parquet"]
    content = json.loads((tmp_path / "new" / "result.json").read_text())
    assert content["result"] == json.loads(json.dumps(simulation.payload["result"]))
    stored = pq.read_schema(tmp_path / "new" / "spans.parquet").metadata
    assert stored[b"scenario_hash"].decode() == content["provenance"]["scenario_hash"]
    assert stored[b"seed"] == b"0"
