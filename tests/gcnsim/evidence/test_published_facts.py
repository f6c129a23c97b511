"""Published tables as facts, remeasured ones, and the scenarios of their rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from gcnsim.api import simulate
from gcnsim.core.errors import FileError
from gcnsim.evidence.published_answers import answer
from gcnsim.evidence.published_facts import SHIPPED, read_published
from gcnsim.evidence.published_systems import RowScenario, System, scenario_of_row, setting
from gcnsim.evidence.table_cells import reproduce
from gcnsim.graph.generate import outline
from gcnsim.methods import create_method
from gcnsim.scenario import load_scenario
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.published_tables import TableSource
from gcnsim.simulation.source import RangeEnd
from gcnsim.trace.sizes_only import mean_ratio
from gcnsim.workload import dataset

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
        (f"{{{KEY}, use: calibrate, total_s: 0, metrics: [total_s]}}", "total_s: 0 is not allowed"),
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


ROW: dict[str, Any] = {
    "paper": "p", "table": "1", "platform": "pcie_host", "dataset": "reddit", "model": "graphsage", "layers": 2,
    "hidden": 16, "method": "full-graph", "gpus": 2, "servers": 1, "metric": "epoch_s", "value": 0.5,
    "class": "calibrate",
}  # fmt: skip


def remeasured_folder(tmp_path: Path, **more: Any) -> Path:
    """A folder of one file with one row."""
    content = {"papers": {"p": {}}, "platforms": {"pcie_host": {}, "elsewhere": {}}, "rows": [ROW | more]}
    (tmp_path / "rows.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return tmp_path


def setting_of(tmp_path: Path, **more: Any) -> RowScenario | str:
    rows = read_published(remeasured_folder(tmp_path, **more))
    return scenario_of_row(rows[0], rows, {})


def test_a_row_says_its_whole_setting(tmp_path: Path) -> None:
    one = setting_of(tmp_path, method="bns-gcn", servers=2, linear_layers=1)
    assert isinstance(one, RowScenario)
    cluster, workload = one.scenario.cluster, one.scenario.workload
    assert (cluster.device, cluster.gpus, cluster.gpus_per_server, cluster.transport) == ("m40", 2, 1, "staged")
    assert (workload.layers, workload.dense_layers, workload.hidden, workload.preaggregate) == (3, 1, 16, True)
    assert one.scenario.method.rate == 0.1


def test_inputs_are_summed_once_where_the_row_or_its_scripts_say_so(tmp_path: Path) -> None:
    for more, once in (({}, False), ({"use_pp": True}, True), ({"method": "bns-gcn", "use_pp": False}, False)):
        one = setting_of(tmp_path, **more)
        assert isinstance(one, RowScenario)
        assert one.scenario.workload.preaggregate is once
    one = setting_of(tmp_path, model="gat", heads=2)
    assert isinstance(one, RowScenario)
    assert one.scenario.workload.keep_inputs


def test_an_epoch_of_mini_batches_is_all_its_iterations(tmp_path: Path) -> None:
    rows = read_published(remeasured_folder(tmp_path, method="dgl", batch_per_gpu=1024, fanout=5, gpus=1))
    one = scenario_of_row(rows[0], rows, {})
    assert isinstance(one, RowScenario)
    assert one.scenario.method == create_method("dgl", batch=1024, fanout=(5, 5))
    (cell,) = reproduce(rows)
    assert cell.predicted is not None
    assert cell.low is not None
    assert cell.low < cell.predicted


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"platform": "elsewhere"}, "no setting of the platform 'elsewhere'"),
        ({"dataset": "flickr"}, "no dataset 'flickr'"),
        ({"method": "adaqp"}, "no schedule of 'adaqp'"),
        ({"gpus": 3, "servers": 2}, "3 GPUs are not even over 2 servers"),
    ],
)
def test_what_cannot_be_set_up_has_a_reason(tmp_path: Path, more: dict[str, Any], why: str) -> None:
    assert setting_of(tmp_path, **more) == why


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"paper": ["p"]}, "row 1: paper .* is not one of the file's papers"),
        ({"platform": "nowhere"}, "row 1: platform 'nowhere' is not one of the file's platforms"),
        ({"class": "guess"}, "row 1: unknown class 'guess'; allowed: calibrate, predict"),
        ({"layers": 0}, "row 1: layers: 0 is not allowed"),
        ({"method": 7}, "row 1: method is 7; allowed: a text"),
        ({"value": -1.0}, "row 1: value: -1 is not allowed; .*, as the row is to calibrate"),
    ],
)
def test_what_is_wrong_with_a_row_is_one_line(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    with pytest.raises(FileError, match=message):
        read_published(remeasured_folder(tmp_path, **more))


def test_a_time_that_the_network_cannot_have_carried_is_not_judged(tmp_path: Path) -> None:
    (cell,) = reproduce(read_published(remeasured_folder(tmp_path, servers=2, value=0.001)))
    assert cell.reason.startswith("impossible as described: its bytes need ")
    assert cell.error is None
    (cell,) = reproduce(read_published(remeasured_folder(tmp_path, servers=2, value=60.0)))
    assert (cell.reason, cell.judged) == ("", True)


FOLDER = Path(__file__).parents[3] / "scenarios"


@pytest.mark.parametrize(
    ("name", "method", "parts"),
    [
        ("psc_gcn-ogbn-products", "psc-gcn", None),
        pytest.param("pipegcn-ogbn-papers100M", "full-graph", None, marks=pytest.mark.slow),
        ("bns_gcn-reddit-gat", "bns-gcn", None),
        ("sancus-1", "sancus", None),
        ("pipegcn-reddit-full", "roc", None),
        ("pagraph-reddit", "pagraph", None),
    ],
)
def test_one_answer_by_two_doors(name: str, method: str, parts: int | None) -> None:
    one = _make_row_scenario(name, method, parts)
    content = answer([one])[one]
    overrides = [] if one.scenario.method.name == _shipped(name) else [f"method.name={method}"]
    found = simulate(FOLDER / f"{name}.yaml", overrides).payload["result"]
    assert found["iteration_s"] == pytest.approx(content.likely.iteration_s, rel=1e-6)
    assert found["iteration_s_low"] <= content.likely.iteration_s <= found["iteration_s_high"]


@pytest.mark.slow
def test_where_one_door_asks_analysis_the_answers_overlap() -> None:
    """192 workers, for whom 24 stand: `reproduce` estimates, a scenario is simulated."""
    one = _make_row_scenario("bns_gcn-ogbn-papers100M", "bns-gcn", 192)
    content = answer([one])[one]
    found = simulate(FOLDER / "bns_gcn-ogbn-papers100M.yaml", ["run.iterations=4"]).payload["result"]
    assert found["iteration_s_low"] <= content.likely.iteration_s <= found["iteration_s_high"]
    assert content.low.low_s <= found["iteration_s"] <= content.high.high_s
    assert found["iteration_s"] == pytest.approx(content.likely.iteration_s, rel=0.5)


@pytest.mark.parametrize(("name", "parts"), [("pipegcn-ogbn-papers100M", None), ("bns_gcn-ogbn-papers100M", 192)])
def test_both_doors_take_the_same_parts_of_the_largest_graph(name: str, parts: int | None) -> None:
    row = load_scenario(FOLDER / f"{name}.yaml")
    source, table = open_source(row), TableSource(dataset("ogbn-papers100M"), row.cluster.gpus, parts=parts)
    for bound in RangeEnd:
        mine, theirs = (item.counts(row, 128, bound) for item in (source, table))
        assert np.array_equal(mine.rows, theirs.rows)
        assert np.array_equal(mine.boundary_nodes, theirs.boundary_nodes)
        ratio = float(mine.boundary_nodes.sum() / mine.inner_nodes.sum())
        assert ratio == pytest.approx(mean_ratio(outline("ogbn-papers100M"), parts or 32, bound.value), rel=1e-3)


def _shipped(name: str) -> str:
    found = setting(name)
    assert found is not None
    return found.method.name


def _make_row_scenario(name: str, method: str, parts: int | None) -> RowScenario:
    row = setting(name)
    assert row is not None
    own = row.method if row.method.name == method else create_method(method)
    at_random = method in ("sancus", "roc")
    workers, nodes = row.cluster.gpus, 232_965
    boundary = nodes * (1.0 - 1.0 / workers) if at_random else None
    return RowScenario(replace(row, method=own), System(method, at_random=at_random), boundary=boundary, parts=parts)


def test_a_folder_without_facts_is_refused(tmp_path: Path) -> None:
    for none in (tmp_path, tmp_path / "other.yaml", tmp_path / "nowhere"):
        with pytest.raises(FileError, match="is not a folder of published facts"):
            read_published(none)
    (tmp_path / "other.yaml").write_text("a: 1\n", encoding="utf-8")
    with pytest.raises(FileError, match="is not a file of published facts"):
        read_published(tmp_path)


def test_a_row_given_twice_is_refused(tmp_path: Path) -> None:
    row = f"{{{KEY}, use: predict, metrics: [total_s]}}"
    with pytest.raises(FileError, match="is given twice"):
        read_published(folder_with(tmp_path, f"{row}\n  - {row}"))


def test_partitions_are_the_gpus_of_all_servers(tmp_path: Path) -> None:
    row = f"{{{KEY}, nodes_x_gpus: 2x2, use: predict, metrics: [total_s]}}"
    with pytest.raises(FileError, match="nodes_x_gpus is '2x2', which is not 2 partitions"):
        reproduce(read_published(folder_with(tmp_path, row)))
