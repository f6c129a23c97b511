from __future__ import annotations

from typing import Any

import pytest

from gcnsim.report import BandwidthCurve, Bar, Series, bandwidth_info, breakdown_info
from gcnsim.report.page.figures import gbps_text
from tests.gcnsim.results.made import answer_of


def test_breakdown_by_value(payload: dict[str, Any]) -> None:
    info = breakdown_info(answer_of(payload))
    assert (info.unit, info.unit_s) == ("s", 1.0)
    total = 0.431 + 1.204 + 0.006
    assert info.bars[2] == Bar("pipegcn", "", 0.431, 1.204, 0.006, 0.434, total, 0.96 * total, 1.05 * total)
    assert [bar.setting for bar in info.bars] == ["cache 25%", "cache 0%", "", ""]


def test_at_most_so_many_bars_the_recommended_among_them(answered: dict[str, Any]) -> None:
    answered["recommendation"]["row"] |= {"epoch_s": 9.0}
    bars = breakdown_info(answer_of(answered), 3).bars
    assert [(bar.method, bar.recommended) for bar in bars] == [("psc-gcn", False)] * 2 + [("psc-gcn", True)]
    assert len(breakdown_info(answer_of(answered)).bars) == 5


def test_bars_of_a_row_add_up_to_its_iteration(payload: dict[str, Any]) -> None:
    for bar in breakdown_info(answer_of(payload)).bars:
        assert bar.compute_s + bar.exposed_comm_s + bar.exposed_other_s == pytest.approx(bar.iteration_s)


def test_bandwidth_by_value(payload: dict[str, Any]) -> None:
    payload["results"][0]["bandwidth"] = "2Gbps"
    curve = BandwidthCurve((1.25e8, 1.25e9), (Series("psc-gcn", (0.09, 0.03), (0.08, 0.02), (0.1, 0.04)),))
    info = bandwidth_info(curve, answer_of(payload))
    assert info.current == (2.5e8, 1.875e9)
    assert (info.unit, info.log_time) == ("ms", False)
    assert info.x_ticks.text == ("1", "2", "5", "10")
    assert info.x_ticks.at == pytest.approx((1.25e8, 2.5e8, 6.25e8, 1.25e9))


def test_time_axis_turns_logarithmic_where_the_values_span_much(payload: dict[str, Any], curve: BandwidthCurve) -> None:
    info = bandwidth_info(curve, answer_of(payload))
    assert info.log_time
    assert info.y_ticks.text == ("0.5", "1", "2", "5", "10", "20")


def test_bandwidth_text() -> None:
    assert gbps_text(1.875e9) == "15 Gbps"
