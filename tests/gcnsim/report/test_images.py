"""Images and the colours of figures."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from gcnsim import report
from gcnsim.core.errors import FileError
from gcnsim.report.figures.curves import Curve, Series, curve_data, curve_figure
from gcnsim.report.images import write_image
from gcnsim.report.palette import (
    DARK,
    LIGHT,
    variables,
)

FIGURE = curve_figure(curve_data(Curve("tau", (Series("a", (0.0, 1.0), (2.0, 1.0), (2.0, 1.0), (2.0, 1.0)),))))


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


def test_the_style_sheet_brings_no_other_colours() -> None:
    folder = Path(report.__file__).parent / "templates"
    css = (folder / "page.html.j2").read_text() + (folder / "page.css").read_text()
    used = {part[:6].lower() for part in css.split("#")[1:] if re.fullmatch(r"[0-9a-fA-F]{6}", part[:6])}
    assert used
    assert {found.lower() for found in re.findall(r"#[0-9a-fA-F]{3}(?![0-9a-fA-F])", css)} == set()
    known = {color[1:].lower() for color in re.findall("#[0-9A-Fa-f]{6}", variables(LIGHT))}
    assert used - known <= {
        "d9dfe5",
        "f5f7f9",
        "38414b",
        "1d232a",
    }  # a line and a background, both grey, light and dark


def _light(color: str) -> float:
    """The relative luminance of a colour (WCAG 2.2)."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_light(one), _light(other)))
    return (high + 0.05) / (low + 0.05)


def test_text_and_marks_stand_out_from_either_background() -> None:
    for theme in (LIGHT, DARK):
        assert _contrast(theme.ink, theme.paper) >= 7.0
        assert _contrast(theme.muted, theme.paper) >= 4.5
        assert _contrast(theme.recommended, theme.paper) >= 4.5
        assert all(_contrast(color, theme.paper) >= 3.0 for color in (theme.compute, theme.exposed, theme.busy))
