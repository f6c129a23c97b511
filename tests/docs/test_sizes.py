"""The documents stay short enough to be read: budgets in bytes for users, for internals, and for a page."""

from __future__ import annotations

import yaml

from tests.docs.examples import ROOT

FOR_USERS = 200_000
INTERNALS = 150_000
PAGE = 12 * 1024
"""Bytes of a page that is read from its beginning to its end; pages of reference are searched."""
SECTIONS = {
    next(iter(item)): next(iter(item.values()))
    for item in yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
}


def _pages(section: str) -> list[str]:
    found = SECTIONS[section]
    return [next(iter(item.values())) for item in found] if isinstance(found, list) else [found]


INSIDE = _pages("Internals")
REFERENCE = _pages("Reference")
EVERY = sorted(path.name for path in (ROOT / "docs").glob("*.md"))


def _bytes(names: list[str]) -> int:
    return sum((ROOT / "docs" / name).stat().st_size for name in names)


def test_documents_for_users_are_short() -> None:
    assert _bytes([name for name in EVERY if name not in INSIDE]) + (ROOT / "README.md").stat().st_size <= FOR_USERS


def test_documents_of_internals_are_short() -> None:
    assert _bytes(INSIDE) + (ROOT / "CONTRIBUTING.md").stat().st_size <= INTERNALS


def test_a_page_is_short() -> None:
    assert {name: size for name in EVERY if name not in REFERENCE and (size := _bytes([name])) > PAGE} == {}
