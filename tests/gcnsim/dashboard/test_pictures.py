"""Pictures in the documents show what the pages show today."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from gcnsim.dashboard.pages import forms
from tests import dashboard_pictures as pictures
from tests.dashboard_pictures import FOLDER, MOST_BYTES, PICTURES

HOW = "python -m tests.dashboard_pictures takes it again"
DOCUMENT = FOLDER.parent / "dashboard.md"


def test_every_page_has_a_picture() -> None:
    shown = {urlsplit(picture.address).path for picture in PICTURES.values()}
    assert {"/", *(form.path for form in forms.FORMS)} <= shown


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_that_of_its_record(name: str) -> None:
    content, path = pictures.recorded()[name], FOLDER / f"{name}.png"
    assert content["address"] == PICTURES[name].address, HOW
    assert content["file"] == pictures.digest(path), HOW
    assert path.stat().st_size <= MOST_BYTES
    assert f"](pictures/{name}.png)" in DOCUMENT.read_text(encoding="utf-8")


def test_no_picture_is_left_over() -> None:
    assert {path.stem for path in FOLDER.glob("*.png")} == set(PICTURES) == set(pictures.recorded())


def _stale(browser: Any, address: str, names: list[str]) -> dict[str, list[str]]:
    """Of pictures that show something else than their pages: the lines that one of both has."""
    with pictures.looking(browser) as page:
        shown = {name: pictures.show(page, address, PICTURES[name]) for name in names}
    content = {name: pictures.recorded()[name]["shows"] for name in names}
    return {name: sorted({*shown[name]} ^ {*content[name]}) for name in names if shown[name] != content[name]}


@pytest.mark.parametrize("answered", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_pictures_are_not_stale(chromium: Any, dashboard: str, answered: bool) -> None:
    stale = _stale(chromium, dashboard, [name for name, picture in PICTURES.items() if picture.answered == answered])
    assert stale == {}, HOW
