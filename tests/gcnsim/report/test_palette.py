from __future__ import annotations

import re
from pathlib import Path

from gcnsim import report
from gcnsim.report.palette import GRID, INK, MEANINGS, MUTED, SETTINGS, shade


def test_every_colour_of_the_page_has_one_meaning() -> None:
    colours = [*MEANINGS.values(), *(color for color, _, _ in SETTINGS), INK, MUTED, GRID]
    assert len({color.upper() for color in colours}) == len(colours)


def test_the_style_sheet_brings_no_other_colours() -> None:
    folder = Path(report.__file__).parent / "templates"
    css = (folder / "page.html.j2").read_text() + (folder / "page.css").read_text()
    used = {part[:6].lower() for part in css.split("#")[1:] if re.fullmatch(r"[0-9a-fA-F]{6}", part[:6])}
    assert used
    known = {color[1:].lower() for color in (*MEANINGS.values(), INK, MUTED, GRID)}
    assert used - known <= {"d9dfe5", "f5f7f9"}  # a line and a background, both grey


def test_shades_run_from_white_to_full() -> None:
    assert [shade(value) for value in (-1.0, 0.0, 0.5, 1.0, 2.0)] == [
        "#FFFFFF",
        "#FFFFFF",
        "#A596C1",
        "#4B2E83",
        "#4B2E83",
    ]
