from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.report.answer.columns import BYTE_UNITS, TIME_UNITS, checked, columns_of, scale_of, share_text
from tests.gcnsim.results.made import answer_of


def _cells(payload: dict[str, Any], *keys: str) -> dict[str, tuple[str, ...]]:
    return {column.key: column.cells for column in columns_of(answer_of(payload).results, keys or None)}


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
    keys = ("iteration_s", "interval", "time", "hidden_comm_s", "cache_fraction", "speedup_vs_full_graph", "shares")
    cells = _cells(payload, *keys)
    assert tuple(cells) == keys
    assert cells["iteration_s"] == ("2056", "1641", "439", "418")
    assert cells["interval"][3] == "401-439"
    assert cells["time"] == ("2056 (1974-2159)", "1641 (1575-1723)", " 439 (421-461)  ", " 418 (401-439)  ")
    assert cells["shares"] == ("20|80", "26|73", "88| 5", "93| 0")
    assert cells["hidden_comm_s"] == ("0", "434", "352", "271")
    assert cells["cache_fraction"] == ("0%", "0%", "0%", "25%")
    assert cells["speedup_vs_full_graph"][3] == "4.92x"


def test_knobs_are_those_that_a_method_has(payload: dict[str, Any]) -> None:
    payload["results"][1] |= {"method": "bns-gcn", "rate": 0.05, "setting": "sample edges"}
    assert _cells(payload)["knobs"] == (
        "",
        "rate 0.05  sample edges",
        "tau 2  eps 0.1",
        "tau 2  eps 0.1  cache 25%",
    )


def test_a_difference_that_holds_zero_is_an_equal_sign(answered: dict[str, Any]) -> None:
    answered["results"][2]["vs_recommended"] = {"low": -0.1, "high": 0.2, "distinguishable": False}
    answered["results"][3]["vs_recommended"] = None
    assert _cells(answered, "vs_recommended")["vs_recommended"] == ("+712 to +732%", "+546 to +566%", "=", "-")


def test_price_and_memory_are_columns_where_known(payload: dict[str, Any], answered: dict[str, Any]) -> None:
    assert _cells(answered)["usd_per_1000_iterations"] == ("1.80", "1.44", "0.39", "0.37")
    answered["results"][0] |= {"usd_per_1000_iterations": None, "memory_bytes": 17e9, "fits": False}
    answered["results"][1]["memory_bytes"] = None
    cells = _cells(answered)
    assert cells["usd_per_1000_iterations"][0] == "-"
    assert cells["memory_bytes"] == ("15.8!", "-", "5.7", "5.7")
    for row in answered["results"]:
        row |= {"usd_per_1000_iterations": None, "memory_bytes": None}
    assert not {"usd_per_1000_iterations", "memory_bytes"} & set(_cells(answered))


def test_columns_asked_for_are_checked() -> None:
    assert checked(["method", " time", "method"]) == ("method", "time")
    with pytest.raises(ScenarioError, match=r"--columns: unknown column 'tine'; did you mean 'time'"):
        checked(["tine"])


def test_gpus_and_bandwidth_show_only_where_they_vary(payload: dict[str, Any]) -> None:
    assert not {"gpus", "bandwidth"} & set(_cells(payload))
    payload["results"][0]["bandwidth"] = "1Gbps"
    cells = _cells(payload)
    assert "gpus" not in cells
    assert cells["bandwidth"] == ("1Gbps", "15Gbps", "15Gbps", "15Gbps")


def test_bytes_that_need_four_digits_take_the_larger_unit() -> None:
    values = [923 * 2.0**20, 1010.7 * 2.0**20]
    scale = scale_of(values, BYTE_UNITS)
    assert (scale.unit, [scale.text(value) for value in values]) == ("GiB", ["0.901", "0.987"])
