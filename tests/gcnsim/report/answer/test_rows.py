from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report.answer.rows import (
    all_rows,
    dataset_of,
    labels_of,
    recommended_of,
    rows_of,
    shared_knobs,
    sorted_rows,
)
from gcnsim.results import KEYS


def test_rows_join_grid_and_results(payload: dict[str, Any]) -> None:
    payload["scenario"]["grid"][2] = {"gpus": 8, "bandwidth": "25Gbps"}
    rows = rows_of(payload)
    assert [row.gpus for row in rows] == [6, 6, 8, 6]
    assert rows[2].bandwidth == "25Gbps"
    assert rows[1].compute_s == 0.431
    assert KEYS[: 4 + len(payload["results"][0])] == (
        "dataset",
        "device",
        "gpus",
        "bandwidth",
        *payload["results"][0],
    )
    assert (rows[0].dataset, rows[0].device) == ("reddit", "t4")


def test_what_a_result_nests_is_flat(answered: dict[str, Any]) -> None:
    row = rows_of(answered)[1]
    assert (row.limited_by, row.limited_by_kind, row.limited_by_share, row.limited_by_worker) == (
        "NIC of server 2",
        "nic",
        0.997,
        4,
    )
    assert row.vs_recommended_high == pytest.approx(row.iteration_s / 0.25 - 0.9)
    assert row.distinguishable


def test_what_a_result_does_not_say_is_none(payload: dict[str, Any]) -> None:
    payload["results"][0] |= {"limited_by": None, "vs_recommended": None, "newer": 1}
    row = rows_of(payload)[0]
    assert (row.limited_by, row.limited_by_share, row.vs_recommended_low) == ("NIC bandwidth", None, None)
    del payload["results"][0]["compute_s"]
    with pytest.raises(TypeError, match="a row lacks compute_s"):
        rows_of(payload)


def test_the_recommended_row_is_marked_or_added(answered: dict[str, Any]) -> None:
    rows = sorted_rows(answered)
    assert [row.recommended for row in rows] == [True, False, False, False, False]
    assert rows[0].iteration_s == 0.25
    answered["recommendation"] |= {"in_results": 3}
    assert [row.recommended for row in all_rows(answered)] == [False, False, False, True]
    del answered["recommendation"]["in_results"], answered["recommendation"]["row"]
    assert recommended_of(answered) is None
    assert len(all_rows(answered)) == 4


def test_a_graph_file_is_named_instead_of_a_dataset() -> None:
    assert dataset_of({"workload": {"dataset": None, "graph": "data/amazon_cs.npz"}}) == "amazon_cs.npz"
    assert dataset_of({}) == ""


def test_shared_knobs_need_two_rows(answered: dict[str, Any]) -> None:
    rows = rows_of(answered)
    assert shared_knobs(rows) == {}
    assert shared_knobs(rows[2:]) == {"tau": "tau 2", "epsilon": "eps 0.1"}
    assert shared_knobs(rows[2:3]) == {}


def test_a_grid_of_another_length_is_refused(payload: dict[str, Any]) -> None:
    payload["scenario"]["grid"].pop()
    with pytest.raises(ValueError, match="grid has 3 entries, results has 4"):
        rows_of(payload)


def test_labels_say_only_what_tells_rows_of_a_method_apart(payload: dict[str, Any]) -> None:
    assert labels_of(rows_of(payload)) == [
        ("full-graph", ""),
        ("pipegcn", ""),
        ("psc-gcn", "cache 0%"),
        ("psc-gcn", "cache 25%"),
    ]
    payload["results"][0] |= {"method": "bns-gcn", "rate": 0.1}
    payload["results"][1] |= {"method": "bns-gcn", "tau": 0, "rate": 0.5}
    assert labels_of(rows_of(payload))[:2] == [("bns-gcn", "rate 0.1"), ("bns-gcn", "rate 0.5")]
    payload["scenario"]["grid"][3] = {"gpus": 8, "bandwidth": "15Gbps"}
    assert labels_of(rows_of(payload))[3] == ("psc-gcn", "8 GPUs, cache 25%")
    payload["scenario"]["grid"][3] = {"gpus": 1, "bandwidth": "15Gbps"}
    assert labels_of(rows_of(payload))[3] == ("psc-gcn", "1 GPU, cache 25%")
