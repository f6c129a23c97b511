"""Documents as plain data and back: what is written is read, in the same order."""

from __future__ import annotations

import json
from typing import Any

import pytest

import gcnsim
from gcnsim.results import LeftOutRow, MemoryReport, SimulationReport, Step, WhatIf, from_plain, to_plain

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


def test_a_key_that_all_have_may_not_lack() -> None:
    with pytest.raises(TypeError, match="'knob'"):
        from_plain(Step, {"from": 1, "to": 2})


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
