"""The colours of figures."""

from __future__ import annotations

import re
from pathlib import Path

from gcnsim import report
from gcnsim.report.palette import (
    DARK,
    LIGHT,
    variables,
)


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
