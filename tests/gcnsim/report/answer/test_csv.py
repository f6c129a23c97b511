from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError
from gcnsim.report.answer.rows import COLUMNS, write_csv
from tests.gcnsim.results.made import answer_of


def test_reads_back_every_number_exactly(payload: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    payload["results"][0]["bottleneck"] = 'NIC, "tx"'
    write_csv(path, answer_of(payload))
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert tuple(reader.fieldnames or ()) == COLUMNS
    assert COLUMNS[:4] == ("dataset", "device", "gpus", "bandwidth")
    for row, result in zip(rows, payload["results"], strict=True):
        assert (row["gpus"], row["bandwidth"]) == ("6", "15Gbps")
        for key in ("iteration_s", "nic_bytes", "bottleneck", "epoch_s", "memory_bytes"):
            assert type(result[key])(row[key]) == result[key]


def test_carries_the_machine_the_limit_and_the_recommended_row(answered: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    answered["results"][0]["usd_per_1000_iterations"] = None
    write_csv(path, answer_of(answered))
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["recommended"] for row in rows] == ["False"] * 4 + ["True"]
    assert [rows[4][key] for key in ("dataset", "device", "gpus", "bandwidth")] == ["reddit", "t4", "6", "15Gbps"]
    found = [rows[1][key] for key in ("limited_by", "limited_by_share", "limited_by_kind_share")]
    assert found == ["NIC of server 2", "0.33", "0.58"]
    assert rows[0]["usd_per_1000_iterations"] == rows[4]["vs_recommended_low"] == ""


def test_a_folder_that_is_not_there_is_the_users_error(payload: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be written"):
        write_csv(tmp_path / "none" / "rows.csv", answer_of(payload))
