from __future__ import annotations

import pytest

from gcnsim.report.cache_curve import cache_curve_payload, render_cache_curve
from gcnsim.report.figures.cache_hits import cache_hits_data, cache_hits_figure
from gcnsim.trace import CacheCurve, CachePoint, CacheTally, Replay, TraceOrigin


@pytest.fixture
def curve() -> CacheCurve:
    """Two rules at two sizes on three workers, the last without a boundary."""
    none = CacheTally(0, 0, 0, 0, 0, 0)
    points = tuple(
        CachePoint(
            policy, size, (CacheTally(10, held, 40, first, fill, 0), CacheTally(10, held, 60, second, fill, 3), none)
        )
        for policy, size, held, first, second, fill in (
            ("inclusion-refresh", 0.1, 1, 10, 30, 1),
            ("inclusion-refresh", 0.5, 5, 20, 50, 5),
            ("lru", 0.1, 1, 2, 3, 0),
            ("lru", 0.5, 5, 8, 30, 0),
        )
    )
    origin = TraceOrigin("made", "0" * 64, "block", 0, "uniform", 0.1, 0, None, 0)
    return CacheCurve(origin, 30, Replay(warm_up=10), points, ("something was left out",))


def test_info_is_the_curve_by_value(curve: CacheCurve) -> None:
    info = cache_hits_data(curve)
    assert info.title == "made, uniform at 0.1, 20 graphs"
    assert info.sizes == (0.1, 0.5)
    refreshed, lru = info.lines
    assert refreshed == ("inclusion-refresh", "refreshed", (0.4, 0.7), (0.25, 0.5), (0.5, 50 / 60))
    assert lru == ("lru", "demand", (0.05, 0.38), (0.05, 0.2), (0.05, 0.5))


def test_figure_has_a_line_for_each_rule(curve: CacheCurve) -> None:
    figure = cache_hits_figure(cache_hits_data(curve))
    assert [trace.name for trace in figure.data] == ["inclusion-refresh (refreshed)", "lru (demand)"]
    assert [trace.line.dash for trace in figure.data] == ["dash", "dot"]
    assert list(figure.data[0].y) == pytest.approx([40, 70])
    assert list(figure.data[0].x) == pytest.approx([10, 50])


def test_payload_holds_totals_and_workers(curve: CacheCurve) -> None:
    payload = cache_curve_payload(curve)
    assert payload["notes"] == ["something was left out"]
    first = payload["points"][0]
    counts = {"boundary_nodes": 20, "cached_rows": 2, "requests": 100, "hits": 40, "fill_rows": 2, "refresh_rows": 3}
    assert {name: first[name] for name in counts} == counts
    assert [worker["hit_rate"] for worker in first["workers"]] == [0.25, 0.5, 0.0]


def test_text_says_totals_workers_and_notes(curve: CacheCurve) -> None:
    lines = render_cache_curve(curve, workers=True).splitlines()
    assert "20 graphs, after 10 of warm-up" in lines[0]
    assert lines[2].split() == ["inclusion-refresh", "refreshed", "10%", "all", "2", "100", "40", "40.0%", "2", "3"]
    assert lines[4].split() == ["inclusion-refresh", "refreshed", "10%", "1", "1", "60", "30", "50.0%", "1", "3"]
    assert lines[-1] == "note: something was left out"
    assert len(lines) == 2 + 4 * 4 + 1
    assert len(render_cache_curve(curve).splitlines()) == 2 + 4 + 1
