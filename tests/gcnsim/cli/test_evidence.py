"""The commands compare, reproduce and validate."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.cli import main
from gcnsim.records.calibration import Source, write_calibration
from gcnsim.records.recorded_run import read_recorded_run
from tests.gcnsim.cli.conftest import Refused
from tests.gcnsim.evidence.conftest import WriteRun, parts_measured, simulated
from tests.gcnsim.evidence.made_calibration import MACHINE, calibration
from tests.gcnsim.records.made_traces import folder

SCENARIOS = Path(__file__).resolve().parents[3] / "scenarios"
A, B = str(SCENARIOS / "reddit-6xt4-full-graph.yaml"), str(SCENARIOS / "reddit-6xt4.yaml")


def test_two_scenarios_as_text_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "compared.json"
    assert main(["compare", A, B, "--json-out", str(out)]) == 0
    text = capsys.readouterr().out
    found = json.loads(out.read_text())
    assert text.splitlines()[0] == f"A  {A}: full-graph on 6 GPUs at 15Gbps"
    assert found["says"][0].startswith("B takes ")
    for word in ("exposed communication", "all-reduce", "nic0.tx", "worker 5"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 110
    assert main(["compare", A, B, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found


@pytest.mark.parametrize("path", ["nowhere", "nowhere.yaml", "nowhere.json#2"])
def test_a_source_that_is_not_there(path: str, refused: Refused) -> None:
    assert refused("compare", A, path).startswith(f"gcnsim: {path}: ")


def test_a_trace_of_a_profiler_and_what_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    traces = folder(tmp_path / "traces")
    names = tmp_path / "names.yaml"
    names.write_text("schema: gcnsim.trace-names/1\nnames: {sample: my_*}\n")
    assert main(["compare", str(traces), str(traces), "--names", str(names)]) == 0
    assert "2 GPUs, 4 iterations, measured by the PyTorch profiler" in capsys.readouterr().out
    bad = tmp_path / "bad.json"
    bad.write_text('{"traceEvents": [')
    for given in ([str(bad), A], [str(traces), str(traces), "--names", str(bad)]):
        assert refused("compare", *given).startswith(f"gcnsim: {bad}:")
    text = refused("compare", traces, traces, "--names", names, "--json-out", names)
    assert "is read by this command and would be replaced" in text


def test_a_result_that_lacks_a_part_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    assert main(["simulate", B, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    path = tmp_path / "result.json"
    del content["scenario"]["cluster"]["gpus"]
    path.write_text(json.dumps(content))
    assert main(["compare", str(path), A]) == 0
    assert "cluster.gpus" in capsys.readouterr().out
    del content["memory"]["tightest"]
    path.write_text(json.dumps(content))
    assert refused("compare", path, A) == f"gcnsim: {path}: memory: lacks 'tightest'; not what gcnsim simulate writes\n"


TABLE = """\
paper: {id: psc_gcn}
tables:
- id: table3
  key: [dataset, method, gpus, tau, epsilon]
  rows:
  - {dataset: reddit, method: full_graph, tau: 0, epsilon: 1, gpus: 6, use: calibrate, per_iteration_s: 1.5974,
     metrics: [per_iteration_s]}
  - {dataset: reddit, method: graphsage, gpus: 6, tau: null, use: predict, metrics: [per_iteration_s]}
"""


@pytest.fixture
def published(tmp_path: Path) -> Path:
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "psc_gcn.yaml").write_text(TABLE, encoding="utf-8")
    return folder


def test_the_file_has_a_line_per_cell(published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "cells.csv"
    assert main(["reproduce", "--published", str(published), "--csv", str(out)]) == 0
    with open(out, encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert list(first) == ["paper", "table", "row", "metric", "predicted", "low", "high", "published"]
    assert json.loads(first["row"]) == {"dataset": "reddit", "method": "full_graph", "gpus": 6, "tau": 0, "epsilon": 1}
    assert float(first["low"]) <= float(first["predicted"]) <= float(first["high"])
    assert float(first["published"]) == 1.5974
    assert second["predicted"] == second["published"] == ""
    done = capsys.readouterr()
    assert "its batches and fan-outs are not given" in done.err
    assert "per_iteration_s" in done.out
    assert "1.597" in done.out


def test_the_answer_as_json(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--published", str(published), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "gcnsim.reproduction/1"
    assert found["all"]["judged"] == 1
    assert found["cells"][0]["error"] == pytest.approx(found["cells"][0]["predicted"] / 1.5974 - 1.0)


def test_one_paper_alone_is_predicted_in_one_process(
    published: Path, capsys: pytest.CaptureFixture[str], refused: Refused
) -> None:
    (published / "other.yaml").write_text(TABLE.replace("id: psc_gcn", "id: nobody"), encoding="utf-8")
    words = ["reproduce", "--published", str(published), "--json", "--processes", "1"]
    assert main([*words, "--paper", "psc_gcn"]) == 0
    assert json.loads(capsys.readouterr().out)["papers"].keys() == {"psc_gcn"}
    message = "paper 'psc_gnc' has no published facts; did you mean 'psc_gcn'?"
    assert message in refused(*words, "--paper", "psc_gnc")
    assert "no setting of 'nobody' for 'reddit'; papers: bns_gcn, pagraph, pipegcn," in refused(*words)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "calibration.json"
    write_calibration(path, calibration(error=0.1))
    return path


def call(*words: str | Path) -> int:
    return main(["validate", *(str(word) for word in words)])


def measured(*folders: Path) -> list[str | Path]:
    """The folder of the measured times of the parts of these runs, as an option."""
    place = folders[0].parent / "measured"
    place.mkdir(exist_ok=True)
    parts_measured(place, *folders)
    return ["--measured-compute", place]


def test_runs_that_take_what_is_predicted(
    write_run: WriteRun, record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [write_run("a"), write_run("b", method="pipegcn")]
    compute = measured(*folders)
    for run in folders:
        simulated(run, record, measured=sorted((tmp_path / "measured").glob("*.parquet")))
    assert call(*folders, "--calibration", record, *compute, "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["runs"], found["coverage"], found["kendall"]) == (2, 1.0, 1.0)
    assert found["mape"] < 1e-9
    assert found["regret"] == {"mean": 0.0, "max": 0.0}
    assert [row["run"] for row in found["rows"]] == ["a", "b"]
    assert found["calibration"]["name"] == "calibration.json"


def test_text_and_files(write_run: WriteRun, record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, answer, folder = tmp_path / "report", tmp_path / "answer.json", write_run("a")
    words = [folder, "--calibration", record, *measured(folder), "--out", out]
    assert call(*words, "--json-out", answer) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.startswith("Predicted against measured iterations, MEASURED compute\n")
    assert sorted(path.name for path in out.iterdir()) == ["validation.csv", "validation.html", "validation.md"]
    assert json.loads(answer.read_text())["runs"] == 1
    assert call(*words, "--overwrite") == 0, "a folder that is there is used"


def test_another_machine_is_noted(write_run: WriteRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_calibration(tmp_path / "c.json", calibration(machine={**MACHINE, "cpu": "EPYC"}))
    folder = write_run("a")
    assert call(folder, "--calibration", tmp_path / "c.json", *measured(folder)) == 0
    assert f"note: {folder}: cpu Xeon, calibrated on EPYC" in capsys.readouterr().out


def test_bad_input_is_one_line(write_run: WriteRun, record: Path, tmp_path: Path, refused: Refused) -> None:
    folder = write_run("a")
    (tmp_path / "empty").mkdir()
    assert "empty/run.json: cannot be read" in refused("validate", tmp_path / "empty")
    assert "none/run.json: cannot be read" in refused("validate", folder, tmp_path / "none")
    assert 'schema is "gcnsim.run/1", wanted "gcnsim.calibration/1"' in refused(
        "validate", folder, "--calibration", folder / "run.json"
    )
    assert "nothing.json: cannot be read" in refused("validate", folder, "--calibration", tmp_path / "nothing.json")
    assert "Missing argument" in refused("validate")
    assert "No such option" in refused("validate", folder, "--strickt")
    used = calibration(inputs=(Source("run", "a", read_recorded_run(folder).sha256),))
    write_calibration(tmp_path / "used.json", used)
    assert "the calibration used this run" in refused("validate", folder, "--calibration", tmp_path / "used.json")
    document = json.loads((folder / "run.json").read_text()) | {"finished": False}
    (folder / "run.json").write_text(json.dumps(document))
    assert "the run was interrupted after 10 iterations" in refused("validate", folder, "--calibration", record)


def test_a_folder_that_cannot_be_made_is_said_before_the_work(
    write_run: WriteRun, tmp_path: Path, refused: Refused
) -> None:
    (tmp_path / "afile").touch()
    assert "afile: is not a folder" in refused("validate", tmp_path / "none", "--out", tmp_path / "afile")
    assert "no/report: cannot be written" in refused("validate", tmp_path / "none", "--out", tmp_path / "no" / "report")
    same = ("--out", tmp_path / "new", "--json-out", tmp_path / "new")
    assert "given to both --out and --json-out" in refused("validate", tmp_path / "none", *same)


def test_the_json_may_go_into_the_folder_that_is_made(write_run: WriteRun, tmp_path: Path) -> None:
    out = tmp_path / "report"
    folder = write_run("a")
    assert call(folder, *measured(folder), "--out", out, "--json-out", out / "answer.json") == 0
    first = (out / "validation.html").read_bytes()
    assert json.loads((out / "answer.json").read_text())["runs"] == 1
    assert call(folder, *measured(folder), "--out", out, "--json-out", out / "answer.json", "--overwrite") == 0
    assert (out / "validation.html").read_bytes() == first, "equal runs, equal pages"
