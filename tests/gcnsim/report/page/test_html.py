from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gcnsim.report.figures.breakdown import MOST_BARS, breakdown_data
from gcnsim.report.figures.curves import Curve
from gcnsim.report.figures.timeline import timeline_data
from gcnsim.report.page.html import write_html
from tests.gcnsim.report.figures.spans import small_run
from tests.gcnsim.results.made import answer_of

TIMELINE = timeline_data(*small_run(), 1)
_VOID = {"meta", "br", "wbr", "link", "img", "input", "hr"}


class _Page(HTMLParser):
    """What a browser would see: elements, attributes, text outside scripts; checks that tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.texts.append(data)


def _page(path: Path, payload: dict[str, Any], curve: Curve) -> _Page:
    write_html(path, answer_of(payload), curve, TIMELINE)
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    return page


def test_page_is_well_formed_and_loads_nothing(payload: dict[str, Any], curve: Curve, tmp_path: Path) -> None:
    page = _page(tmp_path / "page.html", payload, curve)
    assert page.open == []
    assert not any({"src", "href", "srcset", "data", "action"} & set(attrs) for _, attrs in page.seen)
    policies = [attrs["content"] or "" for tag, attrs in page.seen if tag == "meta" and "http-equiv" in attrs]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'")
    assert "http" not in policies[0]
    style = (tmp_path / "page.html").read_text(encoding="utf-8").split("<style>")[1].split("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style


def test_page_can_be_read_by_ear(payload: dict[str, Any], curve: Curve, tmp_path: Path) -> None:
    page = _page(tmp_path / "page.html", payload, curve)
    tags = [tag for tag, _ in page.seen]
    assert ("html", {"lang": "en"}) in page.seen
    assert (tags.count("title"), tags.count("h1"), tags.count("main")) == (1, 1, 1)
    # The settings, every column of them, and the assumptions.
    assert tags.count("table") == tags.count("caption") == 3
    plots = [attrs for tag, attrs in page.seen if tag == "div" and attrs.get("class") == "plot"]
    assert len(plots) == 3
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in plots)
    names = [attrs["id"] for _, attrs in page.seen if "id" in attrs]
    assert len(names) == len(set(names))
    assert {attrs["aria-labelledby"] for _, attrs in page.seen if "aria-labelledby" in attrs} <= set(names)


def test_page_says_what_was_answered(payload: dict[str, Any], curve: Curve, tmp_path: Path) -> None:
    text = " ".join(_page(tmp_path / "page.html", payload, curve).texts)
    assert "reddit, 6 x T4 in 3 servers of 2, 15 Gbit/s" in text
    provenance = payload["provenance"]
    wanted = [
        payload["recommendation"]["why"],
        *provenance["warnings"],
        provenance["interval"],
        "4.92x",
        "11 % shorter",
    ]
    wanted += [item["basis"] for item in provenance["assumptions"]]
    assert [part for part in wanted if part not in text] == []


def test_page_leads_with_the_verdict_and_how_sure_it_is(answered: dict[str, Any], curve: Curve, tmp_path: Path) -> None:
    page = _page(tmp_path / "page.html", answered, curve)
    texts = [text.strip() for text in page.texts if text.strip()]
    assert texts[1:4] == [
        "reddit, 6 x T4 in 3 servers of 2, 15 Gbit/s, 3.16 USD/h",
        "UNCALIBRATED",
        answered["recommendation"]["verdict"],
    ]
    assert ("strong", {"class": "badge"}) in page.seen
    text = " ".join(texts)
    lines = ("no clear difference", "149,552 boundary nodes", "2 more", "psc-gcn draws edges", "sets the pace", "100%")
    assert [part for part in lines if part not in text] == []
    assert sum(attrs.get("class") == "chosen" for _, attrs in page.seen) == 2  # in the table, and with every column
    assert page.open == []
    tags = [tag for tag, _ in page.seen]
    assert tags.count("table") == tags.count("caption") == 7


def test_at_most_twelve_bars_the_rest_behind_a_switch(answered: dict[str, Any], curve: Curve, tmp_path: Path) -> None:
    assert _page(tmp_path / "page.html", answered, curve).texts.count("Show all 5 settings") == 0
    rows, places = answered["results"], answered["scenario"]["grid"]
    answered["results"] = [row | {"iteration_s": row["iteration_s"] * (1 + k)} for k in range(4) for row in rows]
    answered["scenario"]["grid"] = places * 4
    worker = answered["utilization"]["workers"][0]
    answered["utilization"]["workers"] = [worker | {"worker": k, "gpu": k / 40} for k in range(30)]
    swings = answered["certainty"]["assumptions"]
    answered["certainty"]["assumptions"] = [swings[0] | {"name": f"figure {k}"} for k in range(20)]
    page = _page(tmp_path / "page.html", answered, curve)
    shown = {text for text in page.texts if text.startswith("Show ")}
    assert shown == {
        "Show all 17 settings",
        "Show all 30 workers",
        "Show every assumption",
        "Show every column",
    }
    bars = breakdown_data(answer_of(answered), MOST_BARS).bars
    assert (len(bars), sum(bar.recommended for bar in bars)) == (12, 1)
    assert page.open == []


def test_text_from_outside_is_escaped_everywhere(payload: dict[str, Any], curve: Curve, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>&\"'"
    payload["scenario"]["graph"] = evil
    payload["provenance"]["graph"]["text"] = evil
    payload["provenance"]["warnings"] = [evil]
    payload["recommendation"]["why"] = evil
    payload["next_steps"][0]["to"] = evil
    payload["provenance"]["assumptions"][0] |= {"name": evil, "basis": evil, "high": evil}
    payload["results"][0] |= {"method": evil, "bottleneck": evil}
    curve = curve._replace(series=(curve.series[0]._replace(name=evil),))
    plain = _page(tmp_path / "page.html", payload, curve)
    assert [tag for tag, _ in plain.seen].count("script") == 5
    assert "<script>alert" not in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert sum("alert(1)" in text for text in plain.texts) >= 8


def test_the_same_payload_gives_the_same_bytes(payload: dict[str, Any], curve: Curve, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_html(tmp_path / name, answer_of(payload), curve, TIMELINE)
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.html", "b.html"]


def test_a_failed_page_leaves_the_old_one(payload: dict[str, Any], curve: Curve, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text("old", encoding="utf-8")
    broken = replace(answer_of(payload), next_steps=None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        write_html(path, broken, curve, TIMELINE)
    assert path.read_text(encoding="utf-8") == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["page.html"]
