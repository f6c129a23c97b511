"""Rows that others measured: read as facts, each with its own setting, and what is wrong said in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from gcnsim.core.errors import FileError
from gcnsim.evidence.published_facts import read_published
from gcnsim.evidence.row_scenario import RowScenario, scenario_of_row
from gcnsim.evidence.table_cells import reproduce
from gcnsim.methods import create_method

ROW: dict[str, Any] = {
    "paper": "p", "table": "1", "platform": "pcie_host", "dataset": "reddit", "model": "graphsage", "layers": 2,
    "hidden": 16, "method": "full-graph", "gpus": 2, "servers": 1, "metric": "epoch_s", "value": 0.5,
    "class": "calibrate",
}  # fmt: skip


def folder_with(tmp_path: Path, **more: Any) -> Path:
    """A folder of one file with one row."""
    content = {"papers": {"p": {}}, "platforms": {"pcie_host": {}, "elsewhere": {}}, "rows": [ROW | more]}
    (tmp_path / "rows.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    return tmp_path


def setting_of(tmp_path: Path, **more: Any) -> RowScenario | str:
    rows = read_published(folder_with(tmp_path, **more))
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
    rows = read_published(folder_with(tmp_path, method="dgl", batch_per_gpu=1024, fanout=5, gpus=1))
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
        ({"class": ["calibrate"]}, "row 1: unknown class"),
        ({"layers": 0}, "row 1: layers: 0 is not allowed"),
        ({"linear_layers": "one"}, "row 1: linear_layers: 'one' is not"),
        ({"method": 7}, "row 1: method is 7; allowed: a text"),
        ({"value": -1.0}, "row 1: value: -1 is not allowed; .*, as the row is to calibrate"),
        ({"value": None}, "row 1: value: is empty, not"),
    ],
)
def test_what_is_wrong_with_a_row_is_one_line(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    with pytest.raises(FileError, match=message):
        read_published(folder_with(tmp_path, **more))


def test_a_time_that_the_network_cannot_have_carried_is_not_judged(tmp_path: Path) -> None:
    (cell,) = reproduce(read_published(folder_with(tmp_path, servers=2, value=0.001)))
    assert cell.reason.startswith("impossible as described: its bytes need ")
    assert cell.error is None
    (cell,) = reproduce(read_published(folder_with(tmp_path, servers=2, value=60.0)))
    assert (cell.reason, cell.judged) == ("", True)
