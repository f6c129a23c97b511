"""`--measured-compute` of the commands: what is said, refused, and the same bytes in any number of processes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gcnsim.cli import main
from gcnsim.core.json_files import mistake
from gcnsim.records import compute_reading as reading
from gcnsim.records.compute_facts import MeasuredCompute
from gcnsim.records.compute_reading import read_measured_compute
from tests.measured_files import Setting, measured_file, write_graph

PSC = {"sampler": "uniform", "tau": 2, "cache": "0%"}


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    return write_graph(tmp_path)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def ask(*words: object) -> Done:
        code = main([str(word) for word in words])
        done = capsys.readouterr()
        return Done(code, done.out, done.err)

    return ask


def checked(text: str, schema: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    assert mistake(found, schema) is None
    return found


def settings(*rates: float) -> list[Setting]:
    return [("full-graph", {}), *(("psc-gcn", {"epsilon": rate, **PSC}) for rate in rates)]


def test_simulate_says_what_was_measured(run: Run, tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, graph={"file": str(graph)})
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text("schema: gcnsim.scenario/1\nmethod: {name: full-graph}\n")
    requested = ("simulate", scenario, "--measured-compute", path)
    text = run(*requested).out
    assert "MEASURED on Tesla T4" in text.splitlines()[0]
    assert "links and messages are still assumed" in text
    document = checked(run(*requested, "--json").out, "result")
    assert document["result"]["compute_s"] == pytest.approx(0.09, rel=1e-6)
    assert document["provenance"]["measured_compute"]["relative_error"] == 0.02
    assert not any("spmm" in assumption["name"] for assumption in document["provenance"]["assumptions"])
    run(*requested, "--html", tmp_path / "page.html")
    assert "MEASURED on Tesla T4" in (tmp_path / "page.html").read_text()


def test_what_if_asks_of_measured_methods_and_rates(run: Run, tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, settings(0.1, 0.4))
    found = run("what-if", "--graph", graph, "--measured-compute", path, "--iterations", 4, "--json")
    assert "methods: full-graph, psc-gcn, of which" in found.err
    document = checked(found.out, "what-if")
    assert [(result["method"], result["epsilon"]) for result in document["results"]] == [
        ("full-graph", 1.0),
        ("psc-gcn", 0.1),
        ("psc-gcn", 0.4),
    ]
    assert (document["certainty"]["label"], document["certainty"]["calibrated"]) == ("MEASURED on Tesla T4", False)
    assert {step["knob"] for step in document["next_steps"]}.isdisjoint({"gpus", "device", "partition", "METIS"})


def test_a_rate_between_is_told(run: Run, tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, settings(0.1, 0.4))
    requested = ("what-if", "--graph", graph, "--measured-compute", path, "--iterations", 4, "--method", "psc-gcn")
    document = checked(run(*requested, "--epsilon", 0.2, "--set", "method.sampler=uniform", "--json").out, "what-if")
    measured = document["provenance"]["measured_compute"]
    assert measured["interpolated"] == ["psc-gcn with tau 2 and epsilon 0.2"]
    assert measured["relative_error"] == pytest.approx((0.02**2 + 0.03**2) ** 0.5)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--hidden", 16), "workload.hidden: 16 is not what"),
        (("--epsilon", 0.9, "--method", "psc-gcn"), "method.epsilon: 0.9 is not what"),
    ],
)
def test_what_was_not_measured_is_one_line(
    run: Run, tmp_path: Path, graph: Path, words: tuple[object, ...], text: str
) -> None:
    path = measured_file(tmp_path, graph, 2, settings(0.1))
    found = run("what-if", "--graph", graph, "--measured-compute", path, *words)
    assert found.code == 2
    last = found.err.splitlines()[-1]
    assert text in last


def test_answers_are_the_same_bytes_in_one_and_two_processes(run: Run, tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, settings(0.1, 0.4), lambda kind, layer, part, way, t: 0.01 + 0.001 * t)
    requested = ("what-if", "--graph", graph, "--measured-compute", path, "--iterations", 4, "--json")
    one, two = (run(*requested, "--processes", count).out for count in (1, 2))
    assert one == two


def test_a_sweep_has_the_files_model_and_answers_alike_in_any_number_of_processes(
    run: Run, tmp_path: Path, graph: Path
) -> None:
    path = measured_file(tmp_path, graph, 2, settings(0.1))
    rows = []
    for count in (1, 2):
        out = tmp_path / f"out{count}"
        found = run("sweep", "--set", f"workload.graph={graph}", "--measured-compute", path, "--out", out,
                    "--set", "method.name=full-graph", "--axis", "cluster.bandwidth=1Gbps,10Gbps",
                    "--axis", "cluster.gpus_per_server=1,2", "--processes", count)  # fmt: skip
        assert found.code == 0, found.err
        assert run("sweep", "export", out, "--to", out / "rows.csv").code == 0
        rows.append((out / "rows.csv").read_bytes())
    assert rows[0] == rows[1]
    assert rows[0].count(b"full-graph") == 4


def test_a_sweep_varies_the_file(run: Run, tmp_path: Path, graph: Path) -> None:
    fast = measured_file(tmp_path, graph, 2, name="fast.parquet")
    slow = measured_file(tmp_path, graph, 2, name="slow.parquet", seconds=lambda *_: 0.02)
    out = tmp_path / "out"
    found = run("sweep", "--set", f"workload.graph={graph}", "--set", "method.name=full-graph", "--out", out,
                "--axis", f"cluster.measured_compute={fast},{slow}", "--processes", 1)  # fmt: skip
    assert found.code == 0, found.err
    assert run("sweep", "export", out, "--to", out / "rows.csv").code == 0
    with (out / "rows.csv").open() as file:
        seconds = [float(row["compute_s"]) for row in csv.DictReader(file)]
    assert seconds == pytest.approx([0.09, 0.18], rel=1e-6)


def test_recommend_chooses_among_hosts_of_the_measured_device(run: Run, tmp_path: Path, graph: Path) -> None:
    path = measured_file(tmp_path, graph, 2, settings(0.5))
    requested = ("recommend", "--graph", graph, "--measured-compute", path, "--iterations", 4)
    document = checked(run(*requested, "--minimise", "time", "--json").out, "recommend")
    assert document["label"] == "MEASURED on Tesla T4"
    assert {entry["row"]["device"] for entry in document["front"]} == {"t4"}
    assert {entry["row"]["gpus"] for entry in document["front"]} == {2}
    for words, line in (
        (("--host", "p4d.24xlarge"), "--host: p4d.24xlarge has a100-40"),
        (("--device", "h100"), "--device: h100 is not what was measured"),
        (("--gpus", 4), "--gpus: 4 is not what was measured"),
        (("--method", "bns-gcn"), "method: bns-gcn"),
    ):
        found = run(*requested, *words)
        assert (found.code, line in found.err.splitlines()[-1]) == (2, True), found.err


def test_a_sweep_reads_the_file_once(run: Run, tmp_path: Path, graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = measured_file(tmp_path, graph, 2)
    times: list[str] = []

    def counted(name: str) -> MeasuredCompute:
        times.append(name)
        return read_measured_compute(name)

    monkeypatch.setattr(reading, "read_measured_compute", counted)
    found = run("sweep", "--set", f"workload.graph={graph}", "--measured-compute", path, "--out", tmp_path / "out",
                "--set", "method.name=full-graph", "--processes", 1,
                "--axis", "cluster.bandwidth=1Gbps,2Gbps,5Gbps,10Gbps")  # fmt: skip
    assert found.code == 0, found.err
    assert times == [str(path)]
