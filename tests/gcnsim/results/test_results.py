"""Results as plain data."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gcnsim
from gcnsim.results import KEYS, LeftOutRow, MemoryReport, Row, SimulationReport, Step, WhatIf, from_plain, to_plain
from tests.gcnsim.results.made import DOCUMENT, JUDGED, PRICED

FEW: dict[str, Any] = {"gpus": 2, "iterations": 3, "processes": 1}


def test_an_answer_writes_what_it_reads() -> None:
    answer = gcnsim.what_if(**FEW, method=["pipegcn", "cagnet-1d"], measured="pipegcn=1s", inject=["slow-gpu"]).told
    assert from_plain(WhatIf, json.loads(json.dumps(answer.payload()))) == answer
    assert answer.measured
    assert answer.fault_free
    assert {"target", "partition_seeds"} & answer.payload().keys() == set()


def test_a_simulation_writes_what_it_reads() -> None:
    scenario = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2}, "run": {"iterations": 3}}
    report = gcnsim.simulate(scenario).told
    found = from_plain(SimulationReport, json.loads(json.dumps(report.payload())))
    assert found == report
    assert found.memory is not None
    assert report.payload()["memory"]["workers"][0]["total"] == found.memory.workers[0].total > 0


def test_keys_that_are_no_names_and_a_bandwidth_in_words() -> None:
    step = Step("bandwidth", "15Gbps", "30Gbps", 0.4, 0.1, 0.05, 0.2, None)
    document = to_plain(step)
    assert (document["from"], document["to"], document["distinguishable"]) == ("15Gbps", "30Gbps", True)
    assert list(document)[-3:] == ["distinguishable", "fits", "too_approximate"]
    assert from_plain(Step, document) == step
    left = LeftOutRow("roc", "", "too large", 4, 15e9 / 8, "t4")
    assert to_plain(left)["bandwidth"] == "15Gbps"
    assert from_plain(LeftOutRow, to_plain(left)) == left


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"device_bytes": 1}, r"^lacks 'devices_bytes'$"),
        ({"device_bytes": 1, "devices_bytes": 5}, r"^devices_bytes: 5 is not a list$"),
        ({"device_bytes": "x"}, r"^device_bytes: 'x' is not a number$"),
        ({"device_bytes": True}, r"^device_bytes: True is not a number$"),
        ({"device_bytes": 1, "devices_bytes": None, "tightest": 0.5}, r"^tightest: 0.5 is not a whole number$"),
        ([], r"^\[\] is not an object$"),
    ],
    ids=str,
)
def test_what_is_missing_or_of_another_kind_is_named(document: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        from_plain(MemoryReport, document)


@pytest.mark.parametrize("document", [DOCUMENT, PRICED, JUDGED, JUDGED | {"recommended": True, "vs_recommended": None}])
def test_a_row_writes_what_it_reads_in_the_same_order(document: dict[str, Any]) -> None:
    assert json.dumps(Row.read(document).payload()) == json.dumps(document)


def test_a_row_lacks_nothing_that_all_have_and_passes_over_what_none_has() -> None:
    assert Row.read(DOCUMENT | {"newer": 1}) == Row.read(DOCUMENT)
    without = {key: value for key, value in DOCUMENT.items() if key not in ("compute_s", "tau")}
    with pytest.raises(TypeError, match="a row lacks tau, compute_s"):
        Row.read(without)


def test_a_bandwidth_is_a_number_that_plain_data_have_as_networks_are_sold() -> None:
    assert Row.read(DOCUMENT).bandwidth_bytes_per_s == 25e9 / 8
    assert Row.read(DOCUMENT | {"bandwidth": "1GB/s"}).payload()["bandwidth"] == "8Gbps"


def test_the_machine_comes_first_where_rows_are_flat() -> None:
    assert KEYS[:5] == ("dataset", "host", "gpus", "gpus_per_server", "device")
    assert KEYS[-1] == "distinguishable"


def test_the_knobs_of_a_row_are_those_its_method_has_and_what_they_say() -> None:
    assert Row.read(DOCUMENT | {"method": "pipegcn"}).knobs == ()
    drawn = Row.read(
        DOCUMENT | {"method": "psc-gcn", "tau": 2, "epsilon": 0.1, "cache_fraction": 0.3, "setting": "mine"}
    )
    assert drawn.knobs == ("tau 2", "eps 0.1", "cache 30%", "mine")
    assert Row.read(DOCUMENT | {"method": "psc-gcn", "tau": 0}).knobs == ("tau 0", "eps 1")
    assert Row.read(DOCUMENT | {"method": "bns-gcn", "rate": 0.5}).knobs == ("rate 0.5",)
    # Of a method that is not installed here: what differs from a plain run.
    assert Row.read(DOCUMENT | {"method": "unheard-of", "tau": 0, "rate": 0.5}).knobs == ("rate 0.5",)
