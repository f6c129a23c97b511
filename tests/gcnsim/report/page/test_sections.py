"""Sections and figures of a page."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gcnsim
from gcnsim import api
from gcnsim.cli import main
from gcnsim.report.figures.breakdown import breakdown_data, breakdown_figure, sides_data
from gcnsim.report.figures.front import front_data, front_figure
from gcnsim.report.figures.tornado import tornado_of_advice
from gcnsim.report.page.html import heats_of
from gcnsim.report.page.sections import options_sheet
from gcnsim.report.page.templates import BUNDLE, PLOTLY
from gcnsim.report.palette import LIGHT
from gcnsim.results import Advice
from tests.drawn import page_figures
from tests.gcnsim.results.made import answer_of

SCENARIOS = Path(__file__).resolve().parents[4] / "scenarios"
A, B = str(SCENARIOS / "reddit-6xt4-full-graph.yaml"), str(SCENARIOS / "reddit-6xt4.yaml")


MOST_LETTERS = 1_200_000


@pytest.fixture(scope="module")
def recommended() -> Any:
    question: dict[str, Any] = {"device": "t4", "gpus": [2, 4], "method": "pipegcn", "iterations": 2, "processes": 1}
    return gcnsim.recommend(**question, minimise="time")


def test_a_front_by_value(recommended: Any) -> None:
    advice: Advice = recommended.told
    data = front_data(advice)
    assert [option.seconds for option in data.options] == sorted(option.seconds for option in data.options)
    chosen = next(option for option in data.options if option.chosen)
    assert (chosen.seconds, chosen.cost) == (advice.choice.seconds, advice.choice.cost)
    assert chosen.cost_low is not None
    assert chosen.cost_high is not None
    assert chosen.cost_low <= chosen.cost <= chosen.cost_high
    assert (data.currency, data.times, data.unpriced) == ("USD", 1000.0, 0)
    drawn = front_figure(data).to_dict()
    star = drawn["data"][-1]
    assert (star["name"], star["marker"]["color"]) == ("recommended", LIGHT.recommended)
    assert star["x"][0] * data.unit_s == pytest.approx(advice.choice.seconds)
    assert star["y"][0] == pytest.approx(1000 * (advice.choice.cost or 0.0))
    assert drawn["layout"]["yaxis"]["title"]["text"] == "Cost of 1,000 iterations (USD)"
    numbers = [row[0] for row in options_sheet(advice).rows]
    assert numbers == [str(number) for number in range(1, len(advice.rows) + 1)]
    assert list(star["text"]) == [f"{1 + advice.rows.index(advice.choice)}"]
    assert data.legend[-1] == ("recommended", "recommended", False)


def test_a_recommendation_s_tornado_has_knobs_and_assumptions(recommended: Any) -> None:
    advice: Advice = recommended.told
    tornado = tornado_of_advice(advice)
    reaches = [swing.reach for swing in tornado.swings]
    assert reaches == sorted(reaches, reverse=True)
    names = {swing.name for swing in tornado.swings} | set(tornado.still)
    assert {f"knob {knob.knob}" for knob in advice.knobs} <= names
    assert {assumption.name for assumption in advice.assumptions} <= names
    assert tornado.center_s == advice.choice.seconds


def test_the_page_of_a_recommendation_leads_with_its_choice(recommended: Any, tmp_path: Path) -> None:
    recommended.to_html(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.split("<h1>")[1].startswith(recommended.told.verdict[:20])
    for title in ("Time against cost", "What moves the time", "Where the numbers come from"):
        assert f">{title}</h2>" in text
    assert "default-src 'none'" in text
    assert len(text) < MOST_LETTERS


def test_the_bundle_of_a_page_is_of_the_library_that_writes_figures() -> None:
    from plotly.offline import get_plotlyjs_version

    banner = gzip.decompress(PLOTLY.read_bytes())[:200].decode()
    assert f"plotly.js (cartesian - minified) v{get_plotlyjs_version().partition('.')[0]}." in banner
    assert "MIT license" in banner
    assert f" v{BUNDLE.version}\n" in banner
    assert hashlib.sha256(PLOTLY.read_bytes()).hexdigest() == BUNDLE.sha256


def test_the_page_of_a_simulation_has_its_figures(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["simulate", B, "--set", "run.iterations=2", "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.split("<h1>")[1].startswith("One iteration takes ")
    for title in ("Where the time goes", "Links", "Memory"):
        assert f">{title}</h2>" in text
    for title in ("Timeline", "Bytes per pair of workers"):
        assert f"<summary>{title}</summary>" in text
    assert text.count("gcnsim.draw(") == 5
    assert len(text) < MOST_LETTERS
    assert " src=" not in text.split("</script>")[-1]


def test_the_page_of_a_comparison(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["compare", A, B, "--html", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.split("<h1>")[1].startswith("B takes ")
    assert text.count("gcnsim.draw(") == 2
    assert text.index(">Where the difference goes</h2>") < text.index(">Where the time goes</h2>"), (
        "as in the dashboard"
    )


def test_the_sides_of_a_comparison_add_up(tmp_path: Path) -> None:
    found = api.compare(A, B)
    data = sides_data(found)
    assert [bar.method for bar in data.bars] == ["A", "B"]
    for bar, key in zip(data.bars, "ab", strict=True):
        assert sum(part.seconds for part in bar.parts) == pytest.approx(found["iteration_s"][key])
    assert "network" in data.parts


def test_a_page_may_not_be_written_over_what_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", A, B, "--html", A]) == 2
    assert "is read by this command and would be replaced" in capsys.readouterr().err


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "answer.html"
    gcnsim.what_if(gpus=2, bandwidth="10Gbps", method=["full-graph", "pipegcn"], iterations=4).to_html(path)
    return path


def test_the_figures_of_a_page_are_what_was_drawn(page: Path) -> None:
    answer = gcnsim.what_if(gpus=2, bandwidth="10Gbps", method=["full-graph", "pipegcn"], iterations=4)
    figures = page_figures(page)
    assert list(figures) == ["breakdown", "bandwidth", "timeline", "assumptions"]
    figure = breakdown_figure(breakdown_data(answer.told))
    assert [item.to_plotly_json() for item in figures["breakdown"].data] == [
        item.to_plotly_json() for item in figure.data
    ]


def test_workers_and_servers_with_their_links_and_what_sets_the_pace(answered: dict[str, Any]) -> None:
    workers, servers, links = heats_of(answer_of(answered))
    assert workers.heads == ("GPU", "sampler", "copies", "all-reduce", "waits", "PCIe to host")
    assert workers.rows[4] == ("worker 4", (0.4, 0.3, 0.2, 0.1, 0.5, 0.05), True)
    assert [row.marked for row in workers.rows] == [False, False, False, False, True, False]
    assert servers.heads == ("NIC out", "NIC in")
    assert servers.rows[2] == ("server 2", (0.997, 0.997), True)
    assert links.rows == (("uplink of rack 0, out", (0.4,), False),)


def test_every_link_of_a_worker_or_server_stands_with_it_in_words(answered: dict[str, Any]) -> None:
    names = ("dram1", "staging3", "pcie-switch0.1.up", "memory0", "nvlink0.rx")
    answered["utilization"]["links"] = [{"name": name, "kind": "", "server": 0, "utilization": 0.25} for name in names]
    workers, servers = heats_of(answer_of(answered))
    assert workers.heads[-2:] == ("NVLink in", "memory copies")
    assert {row.name: row.shares[-2:] for row in workers.rows}["worker 3"] == (None, 0.25)
    assert servers.heads == ("PCIe switch 1 to host", "memory", "host memory")
    assert [row.name for row in servers.rows] == ["server 0", "server 1"]


def test_a_target_is_a_line(recommended: Any) -> None:
    data = front_data(recommended.told)
    assert data.target_s is None
    assert "shapes" not in front_figure(data).to_dict()["layout"]
    drawn = front_figure(replace(data, target_s=0.5)).to_dict()["layout"]
    assert drawn["shapes"][0]["x0"] * data.unit_s == pytest.approx(0.5)
    assert drawn["annotations"][0]["text"] == "target: 500 ms"


def test_points_at_one_place_share_a_label(recommended: Any) -> None:
    data = front_data(recommended.told)
    first = data.options[0]
    near = [first._replace(number=number, chosen=False, on_front=False) for number in (7, 8)]
    far = first._replace(number=9, seconds=2 * first.seconds, chosen=False, on_front=True)
    drawn = front_figure(replace(data, options=(*near, far))).to_dict()["data"]
    assert [text for trace in drawn for text in trace.get("text", ())] == ["9", "7, 8", ""]
    near.append(near[0]._replace(number=9))
    drawn = front_figure(replace(data, options=tuple(near))).to_dict()["data"]
    assert [text for trace in drawn for text in trace.get("text", ())] == ["7 to 9", "", ""]
