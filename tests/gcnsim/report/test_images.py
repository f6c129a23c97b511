from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from gcnsim.report.figures.curves import Curve, Series, curve_data, curve_figure
from gcnsim.report.images import write_image

FIGURE = curve_figure(curve_data(Curve("tau", (Series("a", (0.0, 1.0), (2.0, 1.0), (2.0, 1.0), (2.0, 1.0)),))))


def test_a_suffix_that_says_no_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"x.jpg: its suffix says no format; allowed: .png, .svg"):
        write_image(tmp_path / "x.jpg", FIGURE)


def test_without_kaleido_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FileError, match=r"x.png: an image needs Kaleido; pip install 'gcnsim\[images\]'"):
        write_image(tmp_path / "x.png", FIGURE)
    assert list(tmp_path.iterdir()) == []


def test_an_image_that_cannot_be_drawn_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> bytes:
        raise RuntimeError("no browser\nmore lines")

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(type(FIGURE), "to_image", failing)
    with pytest.raises(FileError, match=r"x.svg: the image cannot be drawn: no browser$"):
        write_image(tmp_path / "x.svg", FIGURE)


def test_what_was_drawn_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    question: dict[str, object] = {}

    def drawn(_: object, **how: object) -> bytes:
        question.update(how)
        return b"<svg/>"

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(type(FIGURE), "to_image", drawn)
    write_image(tmp_path / "x.svg", FIGURE)
    assert (tmp_path / "x.svg").read_bytes() == b"<svg/>"
    assert (question["format"], question["scale"]) == ("svg", 1)
