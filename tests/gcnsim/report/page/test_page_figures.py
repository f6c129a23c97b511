"""Figures read back from pages, and drawn by `gcnsim images`."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

import gcnsim
from gcnsim.cli import main
from gcnsim.core.errors import FileError
from gcnsim.report.figures.breakdown import breakdown_data, breakdown_figure
from gcnsim.report.images import page_figures


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "answer.html"
    gcnsim.what_if(gpus=2, bandwidth="10Gbps", method=["full-graph", "pipegcn"], iterations=4).to_html(path)
    return path


def test_the_figures_of_a_page_are_what_was_drawn(page: Path) -> None:
    answer = gcnsim.what_if(gpus=2, bandwidth="10Gbps", method=["full-graph", "pipegcn"], iterations=4)
    figures = page_figures(page)
    assert list(figures) == ["breakdown", "bandwidth", "timeline"]
    figure = breakdown_figure(breakdown_data(answer.told))
    assert [item.to_plotly_json() for item in figures["breakdown"].data] == [
        item.to_plotly_json() for item in figure.data
    ]
    # The page has the legend beside the figure, an image in it.
    assert not figure.layout.showlegend
    assert figures["breakdown"].layout.showlegend
    assert figures["breakdown"].layout.height > figure.layout.height


@pytest.mark.parametrize(
    ("drawn", "says"),
    [
        (None, "has no figures; allowed: a page that --html wrote"),
        ("{", "figure a: not a JSON document"),
        ("[1]", "figure a: is not a figure of Plotly"),
        ('{"data": [{"type": "nonsense"}]}', "figure a: is not a figure of Plotly"),
        ('{"data": [{"type": "image"}]}', "figure a: holds more than bar, heatmap"),
        ('{"layout": {"images": [{"source": "http://a.example/b.png"}]}}', "figure a: holds more than bar, heatmap"),
        ('{"data": [{"y": [NaN]}]}', "is nan"),
    ],
)
def test_what_is_no_page_of_ours_is_one_line(drawn: str | None, says: str, tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    text = "" if drawn is None else f'gcnsim.draw("a", {json.dumps(drawn)}); }}\n'
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=r"x\.html: ") as error:
        page_figures(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_without_kaleido_nothing_is_begun(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "kaleido" else usual(name, *more)
    )
    assert main(["images", str(page), "--out", str(tmp_path / "out")]) == 2
    assert "an image needs Kaleido; pip install 'gcnsim[images]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_unknown_figure_has_the_nearest_name(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["images", str(page), "--out", str(tmp_path / "out"), "--figure", "breakdwn"]) == 2
    assert "unknown figure 'breakdwn' of " in capsys.readouterr().err


@pytest.mark.skipif(
    importlib.util.find_spec("kaleido") is None or shutil.which("chromium") is None, reason="needs Kaleido and Chromium"
)
def test_every_figure_becomes_an_image(page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["images", str(page), "--out", str(out), "--format", "svg"]) == 0
    names = ("breakdown.svg", "bandwidth.svg", "timeline.svg")
    assert capsys.readouterr().out.splitlines() == [str(out / name) for name in names]
    text = (out / "breakdown.svg").read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "exposed communication" in text
    assert main(["images", str(page), "--out", str(out), "--figure", "bandwidth"]) == 0
    assert (out / "bandwidth.png").read_bytes().startswith(b"\x89PNG")
