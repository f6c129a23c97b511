"""Published tables are read as facts, and what is wrong with a file is said in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from gcnsim.evidence.published_facts import SHIPPED, read_published
from gcnsim.evidence.published_quantities import QUANTITIES
from gcnsim.evidence.table_cells import reproduce

TABLE = """\
paper: {{id: pipegcn}}
tables:
- id: table4
  key: [dataset, method, partitions]
  rows:
  - {row}
"""

KEY = "partitions: 2, method: gcn, dataset: reddit"


def folder_with(tmp_path: Path, row: str) -> Path:
    """A folder of one table with one row."""
    (tmp_path / "pipegcn.yaml").write_text(TABLE.format(row=row), encoding="utf-8")
    return tmp_path


def test_rows_have_their_key_in_one_form(tmp_path: Path) -> None:
    row = "{partitions: 2, method: gcn, dataset: reddit, use: calibrate, epochs_per_s: 1.94, metrics: [epochs_per_s]}"
    (found,) = read_published(folder_with(tmp_path, row))
    assert found.label == '{"dataset":"reddit","method":"gcn","partitions":2}'
    assert found.published("epochs_per_s") == 1.94


def test_a_row_to_be_predicted_has_no_published_value(tmp_path: Path) -> None:
    row = "{partitions: 2, method: gcn, dataset: reddit, use: predict, epochs_per_s: 9.0, metrics: [epochs_per_s]}"
    (found,) = read_published(folder_with(tmp_path, row))
    assert found.published("epochs_per_s") is None


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{method: gcn, dataset: reddit, use: predict, metrics: [total_s]}", "row 1: has no partitions"),
        ("{partitions: 2, dataset: reddit, use: calibrate, metrics: [total_s]}", "row 1: has no method"),
        ("{partitions: 2, method: gcn, dataset: reddit, use: guess}", "unknown use 'guess'"),
        ("{partitions: 2, method: gcn, dataset: reddit, use: predict}", "has no metrics"),
        (f"{{{KEY}, use: calibrate, total_s: .nan, metrics: [total_s]}}", "total_s: nan is not allowed; .* above 0"),
        (f"{{{KEY}, use: calibrate, total_s: .inf, metrics: [total_s]}}", "total_s: inf is not allowed"),
        (f"{{{KEY}, use: calibrate, total_s: 0, metrics: [total_s]}}", "total_s: 0 is not allowed"),
        (f"{{{KEY}, use: calibrate, reduce_s: -1, metrics: [reduce_s]}}", "reduce_s: -1 is not allowed; .* at least 0"),
        (f"{{{KEY}, use: calibrate, total_s: true, metrics: [total_s]}}", "total_s: True is not a number above 0"),
        (f"{{{KEY}, use: calibrate, total_s: 1 s, metrics: [total_s]}}", "total_s: '1 s' is not a number above 0"),
        (f"{{{KEY}, use: calibrate, metrics: [total_s]}}", "total_s: is empty, not a number above 0"),
        (f"{{{KEY}, use: predict, metrics: [total_s, total_s]}}", "metrics: total_s, total_s; each once"),
        ("[reddit, gcn]", "is not a row"),
    ],
)
def test_a_row_that_cannot_be_is_refused(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(FileError, match=message) as caught:
        read_published(folder_with(tmp_path, row))
    assert "\n" not in str(caught.value)
    assert "pipegcn.yaml: table4" in str(caught.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "{partitions: 2, method: pipegnc, dataset: reddit, use: predict, metrics: [total_s]}",
            "did you mean 'pipegcn'",
        ),
        (
            "{partitions: 2, method: gcn, dataset: redit, use: predict, metrics: [total_s]}",
            "no setting of 'pipegcn' for 'redit'; there are ogbn-papers100M,",
        ),
        ("{partitions: 2, method: gcn, dataset: reddit, use: predict, metrics: [totl_s]}", "unknown metric 'totl_s'"),
        ("{partitions: 2.5, method: gcn, dataset: reddit, use: predict, metrics: [total_s]}", "no number of workers"),
        ("{partitions: 0, method: gcn, dataset: reddit, use: predict, metrics: [total_s]}", "0 is not allowed"),
    ],
)
def test_a_row_that_cannot_be_asked_is_refused(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        reproduce(read_published(folder_with(tmp_path, row)))


def test_a_folder_without_facts_is_refused(tmp_path: Path) -> None:
    for none in (tmp_path, tmp_path / "other.yaml", tmp_path / "nowhere"):
        with pytest.raises(FileError, match="is not a folder of published facts"):
            read_published(none)
    (tmp_path / "other.yaml").write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(FileError, match="is not a file of published facts"):
        read_published(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paper: {id: pipegcn}\ntables: []\n", "tables: is empty"),
        ("paper: {id: 3}\ntables: []\n", "paper, id: 3 is not allowed"),
        ("paper: {id: pipegcn}\ntables: [{id: t, key: [a], rows: }]\n", "t, rows: is nothing; a list of rows"),
        ("paper: {id: pipegcn}\ntables: [{id: t, key: 3, rows: [{use: input}]}]\n", "t, key: is 3; a list of fields"),
        ("paper: {id: pipegcn}\ntables: [{id: t, key: null, rows: [{}]}]\n", "t, key: is nothing"),
    ],
)
def test_a_table_that_cannot_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pipegcn.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=message) as caught:
        read_published(tmp_path)
    assert str(tmp_path / "pipegcn.yaml") in str(caught.value)


def test_a_row_given_twice_is_refused(tmp_path: Path) -> None:
    row = f"{{{KEY}, use: predict, metrics: [total_s]}}"
    with pytest.raises(FileError, match="is given twice"):
        read_published(folder_with(tmp_path, f"{row}\n  - {row}"))


def test_partitions_are_the_gpus_of_all_servers(tmp_path: Path) -> None:
    row = f"{{{KEY}, nodes_x_gpus: 2x2, use: predict, metrics: [total_s]}}"
    with pytest.raises(FileError, match="nodes_x_gpus is '2x2', which is not 2 partitions"):
        reproduce(read_published(folder_with(tmp_path, row)))


def test_the_package_holds_no_value_of_a_row_to_be_predicted() -> None:
    rows = read_published()
    tables = {"bns_gcn", "pagraph", "pipegcn", "psc_gcn", "sancus"}
    assert {row.paper for row in rows} == tables | {"bajaj2025", "bajaj-logs2023", "granndis2024"}
    for row in rows:
        if row.use == "predict":
            assert row.fields.keys() == {*row.key, "use", "metrics"}, row.place
            assert row.published(row.metrics[0]) is None
    content = {path.stem: path.read_text(encoding="utf-8") for path in SHIPPED.glob("*.yaml")}
    assert all(text.count("cite: ") > 1 for name, text in content.items() if name != "remeasured")
    assert content["remeasured"].count("place: ") == 3


def test_every_metric_of_a_system_with_a_schedule_is_known() -> None:
    ours = {"full_graph", "gcn", "pipegcn", "psc_gcn", "bns_gcn"}
    requested = {name for row in read_published() if row.fields.get("method") in ours for name in row.metrics}
    assert requested <= QUANTITIES.keys()
