from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report.rows import ROW_KEYS, labels_of, rows_of


def test_rows_join_grid_and_results(payload: dict[str, Any]) -> None:
    payload["scenario"]["grid"][2] = {"gpus": 8, "bandwidth": "25Gbps"}
    rows = rows_of(payload)
    assert [row.gpus for row in rows] == [6, 6, 8, 6]
    assert rows[2].bandwidth == "25Gbps"
    assert rows[1].compute_s == 0.431
    assert ("gpus", "bandwidth", *payload["results"][0]) == ROW_KEYS


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
