from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report.columns import BYTE_UNITS, TIME_UNITS, columns_of, scale_of, share_text
from gcnsim.report.rows import rows_of


def _cells(payload: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    return {column.key: column.cells for column in columns_of(rows_of(payload))}


@pytest.mark.parametrize(
    ("values", "unit", "texts"),
    [
        ([0.418, 2.056], "ms", ["418", "2056"]),
        ([0.418, 0.439], "ms", ["418.0", "439.0"]),
        ([1.5, 90.0], "s", ["1.50", "90.00"]),
        ([2.5e-5], "us", ["25.00"]),
        ([0.0], "ps", ["0"]),
    ],
)
def test_scale_gives_the_smallest_value_three_digits(values: list[float], unit: str, texts: list[str]) -> None:
    scale = scale_of(values, TIME_UNITS)
    assert scale.unit == unit
    assert [scale.text(value) for value in values] == texts


def test_byte_scale_is_the_binary_one_of_the_house() -> None:
    assert scale_of([2.0 * 2**30], BYTE_UNITS).unit == "GiB"


def test_shares() -> None:
    assert [share_text(value) for value in (0.0, 0.0123, 0.0996, 0.5, 1.0)] == ["0%", "1.2%", "10%", "50%", "100%"]


def test_cells_by_value(payload: dict[str, Any]) -> None:
    cells = _cells(payload)
    assert cells["iteration_s"] == ("2056", "1641", "439", "418")
    assert cells["interval"][3] == "[401, 439]"
    assert cells["hidden_comm_s"] == ("0", "434", "352", "271")
    assert cells["cache_fraction"] == ("0%", "0%", "0%", "25%")
    assert cells["speedup_vs_full_graph"][3] == "4.92x"


def test_drawn_nodes_show_their_rate_where_drawn_edges_show_epsilon(payload: dict[str, Any]) -> None:
    payload["results"][1] |= {"method": "bns-gcn", "rate": 0.05}
    assert _cells(payload)["epsilon"] == ("1", "p0.05", "0.1", "0.1")


def test_gpus_and_bandwidth_show_only_where_they_vary(payload: dict[str, Any]) -> None:
    assert not {"gpus", "bandwidth"} & set(_cells(payload))
    payload["scenario"]["grid"][0]["bandwidth"] = "1Gbps"
    cells = _cells(payload)
    assert "gpus" not in cells
    assert cells["bandwidth"] == ("1Gbps", "15Gbps", "15Gbps", "15Gbps")


def test_bytes_that_need_four_digits_take_the_larger_unit() -> None:
    values = [923 * 2.0**20, 1010.7 * 2.0**20]
    scale = scale_of(values, BYTE_UNITS)
    assert (scale.unit, [scale.text(value) for value in values]) == ("GiB", ["0.901", "0.987"])
