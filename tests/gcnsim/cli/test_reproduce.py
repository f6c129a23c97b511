"""`gcnsim reproduce`: the file it writes, what it says on stderr, and one line for a bad folder."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from gcnsim.cli import main
from tests.gcnsim.cli.conftest import Refused

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


def test_an_unknown_method_is_one_line(published: Path, refused: Refused) -> None:
    text = TABLE.replace("method: graphsage", "method: graphsag")
    (published / "psc_gcn.yaml").write_text(text, encoding="utf-8")
    message = refused("reproduce", "--published", published)
    assert "unknown method 'graphsag'; did you mean 'graphsage'?" in message


def test_a_missing_folder_is_one_line(tmp_path: Path, refused: Refused) -> None:
    assert "is not a folder of published facts" in refused("reproduce", "--published", tmp_path / "none")


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
