"""`gcnsim sweep`: what it prints, and a line for what it cannot do."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from gcnsim.cli import main
from tests.gcnsim.cli.conftest import Refused

COMMAND = ["sweep", "--axis", "cluster.bandwidth=5Gbps,10Gbps", "--axis", "method.name=psc-gcn,pipegcn"]
SMALL = ["--set", "cluster.gpus=2", "--set", "cluster.gpus_per_server=1", "--set", "run.iterations=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of four points."""
    found = tmp_path_factory.mktemp("sweep") / "out"
    assert main([*COMMAND, *SMALL, "--axis", "method.tau=1", "--out", str(found), "--processes", "1"]) == 0
    return found


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_a_folder_is_looked_at(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = json.loads(printed(["sweep", "status", str(folder), "--json"], capsys))
    assert status == {"points": 4, "left": 0, "done": 4, "refused": 0, "does not fit": 0, "lost": 0, "reasons": {}}
    every = json.loads(printed(["sweep", "show", str(folder), "--json"], capsys))
    assert [entry["point"] for entry in every] == [0, 1, 2, 3]
    assert [entry["method.tau"] for entry in every] == [1, None, 1, None]
    best = json.loads(printed(["sweep", "best", str(folder), "--top", "2", "--json"], capsys))
    assert best == sorted(every, key=lambda entry: entry["iteration_s"])[:2]
    busiest = printed(["sweep", "best", str(folder), "--by", "gpu_utilization", "--descending", "--top", "1"], capsys)
    assert "(3 more points)" in busiest
    kept = ["--where", "cluster.bandwidth < 7Gbps", "--where", "method.name == pipegcn"]
    assert json.loads(printed(["sweep", "best", str(folder), *kept, "--json"], capsys)) == [every[1]]
    assert "more point" not in printed(["sweep", "best", str(folder), *kept], capsys)
    one = printed(["sweep", "show", str(folder), "--point", "3"], capsys)
    assert "10Gbps" in one
    assert "pipegcn" in one
    table = printed(["sweep", "show", str(folder), "--first", "3", "--columns", "method,iteration_s"], capsys)
    assert table.splitlines()[-1].split()[:4] == ["3", "10Gbps", "pipegcn", "-"]


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_points_are_written_for_other_programs(
    suffix: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"points.{suffix}"
    assert printed(["sweep", "export", str(folder), "--to", str(path)], capsys) == ""
    rows: list[Any]
    if suffix == "csv":
        rows = [
            dict(entry, iteration_s=float(entry["iteration_s"]))
            for entry in csv.DictReader(path.read_text().splitlines())
        ]
    else:
        rows = json.loads(path.read_text()) if suffix == "json" else pq.read_table(path).to_pylist()
    expected = pq.read_table(folder / "results.parquet").to_pylist()
    assert [row["iteration_s"] for row in rows] == [entry["iteration_s"] for entry in expected]
    assert set(rows[0]) == set(expected[0])


def test_a_dry_run_counts_the_points_and_does_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    question = tmp_path / "question.yaml"
    text = "schema: gcnsim.sweep/1\nbase: {cluster: {gpus: 16}}\naxes: {method.tau: 0..3, run.seed: 0..499}\n"
    question.write_text(text, encoding="utf-8")
    assert json.loads(printed(["sweep", str(question), "--dry-run", "--json"], capsys)) == {
        "points": 2_000,
        "refused": 0,
    }
    assert printed(["sweep", str(question), "--dry-run"], capsys) == "points  2,000\n"
    assert [path.name for path in tmp_path.iterdir()] == ["question.yaml"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([*COMMAND], "--out: is not given; allowed: a new folder, that of this question, or --dry-run"),
        (
            [*COMMAND, "--out", "x", "--axis", "method.tua=1"],
            "--axis method.tua: unknown field; did you mean 'meth",
        ),
        (
            [*COMMAND, "--out", "x", "--axis", "run.seed=0..9", "--limit", "30"],
            "--limit: the sweep has 40 points; ",
        ),
        (
            [*COMMAND, "--out", "x", "--axis", "run.seed=0..99999", "--limit", "30"],
            "the sweep has up to 400,000 ",
        ),
        (
            [*COMMAND, "--out", "x", "--axis", "cluster.bandwidth=25Gbps"],
            "--axis cluster.bandwidth: is given twice; allowed: once, e.g. cluster.bandwidth=5Gbps,10Gbps,25Gbps",
        ),
        (
            ["sweep", "statsu", "x"],
            "'statsu' is neither a command nor a file; did you mean 'status'? known: best, export,",
        ),
        ([*COMMAND, "--out", "x", "--sample", f"lhs:{'9' * 5000}"], "is not KIND:N"),
        ([*COMMAND, "--out", "x", "--seed", "1"], "--seed: only valid with --sample"),
        (["sweep", "question.yaml", "--out", "x"], "question.yaml: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_asked_is_a_line(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in refused(*arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_question_of_another_schema_or_column_is_a_line(folder: Path, refused: Refused) -> None:
    for words, says in (
        ((folder / "sweep.json", "--out", "x"), "schema: 'gcnsim.sweep-folder/1' is not known; write schema: "),
        (("best", folder, "--by", "iteration"), "--by: unknown column 'iteration'; did you mean 'iteration_s'?"),
        (("best", folder, "--by", "reason"), "--by: reason is empty in every answered point; allowed: a column that "),
        (("show", folder, "--point", "4"), "--point: 4 is not answered; points are 0 to 3"),
        (("export", folder, "--to", "points.xls"), "points.xls: its suffix says no format; allowed: .csv, .json, "),
    ):
        assert says in refused("sweep", *words)


def test_costs_are_of_the_price_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "out")
    priced = ["--price", "t4=0.45USD/h", "--axis", "method.tau=1"]
    printed([*COMMAND, *SMALL, *priced, "--out", out, "--processes", "1"], capsys)
    best = printed(["sweep", "best", out], capsys)
    assert "USD per" in best
    costs = json.loads(printed(["sweep", "best", out, "--by", "cost_per_epoch", "--json"], capsys))
    assert [cost["cost_per_hour"] for cost in costs] == [0.9] * 4
    assert costs[0]["price"] == "0.45 USD/h a GPU (as given)"
    for options, says in (
        ([], "holds the results of another question"),
        (["--price", "t4=0.5"], "--price t4: '0.5' has no unit; write a price per hour with its unit"),
        (["--price", "l4=1USD/h"], "--price: no machine of the question has l4; they have t4"),
    ):
        place = out if not options else str(tmp_path / "other")
        assert main([*COMMAND, *SMALL, *options, "--axis", "method.tau=1", "--out", place]) == 2
        assert says in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_a_page_leads_with_the_fastest_point(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    printed(["sweep", "best", str(folder), "--html", str(page)], capsys)
    text = page.read_text(encoding="utf-8")
    assert text.split("<h1>")[1].startswith("The fastest of ")
    assert ">Points</h2>" in text
    assert main(["sweep", "best", str(folder), "--html", str(page), "--by", "gpu_utilisation"]) == 2
    capsys.readouterr()
    kept = next(path for path in folder.iterdir() if path.is_file())
    assert main(["sweep", "best", str(folder), "--html", str(kept)]) == 2


@pytest.mark.parametrize(("by", "largest"), [("nic_utilization", True)])
def test_a_page_leads_with_the_point_that_is_first_by_another_column(
    by: str, largest: bool, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    options = ["--by", by, *(["--descending"] if largest else [])]
    (first,) = json.loads(printed(["sweep", "best", str(folder), "--top", "1", "--json", *options], capsys))
    printed(["sweep", "best", str(folder), "--html", str(page), *options], capsys)
    heading = page.read_text(encoding="utf-8").split("<h1>")[1].split("</h1>")[0]
    value = f"{first[by]:.4g}" if isinstance(first[by], float) else str(first[by])
    assert heading.startswith(f"Of 4 points by {by}{', the largest first' if largest else ''} ({value}), the first is ")
    assert f"{first['method']}" in heading
    assert first["bandwidth_bytes_per_s"] == (1.25e9 if "10Gbps" in heading else 0.625e9)
