"""Pages that need no server in a real browser: small, not too tall, usable on a phone and by ear."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import gcnsim
from gcnsim import api
from gcnsim.cli import main
from tests.dashboards import Looking
from tests.drawn import page_figures

MOST_BYTES = 1_500_000
TALLEST = 5_000
"""Pixels of a page on a wide screen."""

COSTS: dict[str, Any] = {"electricity": "0.30USD/kWh", "processes": 1}
NAMES = ("what-if", "recommend", "simulate", "compare", "sweep", "timeline", "validation")


@pytest.fixture(scope="module")
def pages(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of each kind, by the name of its command."""
    out = tmp_path_factory.mktemp("pages")
    a, b, run = (folder / name for name in ("a.yaml", "b.yaml", "pipegcn"))
    methods = ["full-graph", "pipegcn"]
    gcnsim.what_if(gpus=2, method=methods, iterations=4, **COSTS).to_html(out / "what-if.html")
    question: dict[str, Any] = {
        "gpus": [4, 8],
        "method": methods,
        "host": "g4dn.12xlarge",
    }
    gcnsim.recommend(target_iteration="2s", **question, **COSTS).to_html(out / "recommend.html")
    api.simulate(a).to_html(out / "simulate.html")
    api.write_comparison(out / "compare.html", api.compare(a, b))
    api.open_sweep(folder / "points").to_html(out / "sweep.html")
    api.write_validation(out, api.validate([run], measured_compute=[folder / "measured"]))
    words = ("timeline", str(folder / "run"), "--measured-compute", str(folder / "measured"))
    assert main([*words, "--html", str(out / "timeline.html")]) == 0
    return out


@contextmanager
def opened(chromium: Any, page: Path, **how: Any) -> Iterator[Looking]:
    """A page in a browser once its figures are drawn; it says nothing in the console."""
    context = chromium.new_context(bypass_csp=True, **how)
    seen = Looking(context.new_page(), page.as_uri())
    seen.page.goto(seen.address)
    seen.page.wait_for_selector(".main-svg")
    yield seen
    context.close()
    assert seen.said == []


# The rest repeats the frame of all pages; some 10 s each.
SLOW_PAGES = [pytest.param(name, "light", marks=pytest.mark.slow) for name in NAMES[1:]]


@pytest.mark.parametrize(("name", "scheme"), [(NAMES[0], "light"), (NAMES[1], "dark"), *SLOW_PAGES])
def test_pages_are_usable_by_ear_and_on_a_phone(chromium: Any, pages: Path, name: str, scheme: str) -> None:
    page = pages / f"{name}.html"
    assert page.stat().st_size < MOST_BYTES
    with opened(chromium, page, viewport={"width": 1280, "height": 900}, color_scheme=scheme) as seen:
        assert seen.page.evaluate("document.documentElement.scrollHeight") < TALLEST
        seen.page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert seen.faults() == []
        seen.page.set_viewport_size({"width": 390, "height": 844})
        seen.page.wait_for_function("document.documentElement.scrollWidth <= 390", timeout=15_000)


def test_a_recommendation_has_plan_curve_and_timeline_on_one_page(pages: Path) -> None:
    figures = page_figures(pages / "recommend.html")
    assert list(figures) == [
        "time-against-cost-figure",
        "where-the-time-goes-figure",
        "what-moves-the-time-figure",
        "iteration-time-against-bandwidth-figure",
        "timeline-figure",
    ]
    star = figures["time-against-cost-figure"].data[-1]
    line = figures["iteration-time-against-bandwidth-figure"].data[1]
    assert star.name == "recommended"
    assert 1000 * line.y[3] == pytest.approx(star.x[0], rel=1e-6), "at the bandwidth of the machine"
