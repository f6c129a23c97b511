"""`gcnsim catalog compare`: the figures of several devices, links or hosts side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import click

from gcnsim import hardware
from gcnsim.cli.catalog_entries import SCHEMA, SINGULAR, YES, entry_named, facts_of, profile_facts, written
from gcnsim.cli.completing import complete_any
from gcnsim.cli.tables import print_table
from gcnsim.errors import ScenarioError

NONE: Final = "none"
GENERATION: Final = "nvlink_generation"
"""A number that is not an amount of anything."""

_LOADS: Final[Mapping[str, Callable[[str], Any]]] = {
    "devices": lambda name: hardware.device(name),
    "links": lambda name: hardware.link(name),
    "hosts": lambda name: hardware.host(name),
}
_NAMED: Final = ("link", "device", "network", "pcie")
"""What of the catalogue a device or host names."""


@click.command("compare", short_help="Compare figures of devices, links or hosts.")
@click.argument("names", nargs=-1, required=True, shell_complete=complete_any)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare_command(names: tuple[str, ...], as_json: bool) -> None:
    """Show the figures of two or more NAMES side by side, with ratios to the first.

    They must all be devices, all links or all hosts; your own files are allowed.

    Example: gcnsim catalog compare a100-80 h100
    """
    kind, items = _items(names)
    if as_json:
        entries = [profile_facts(item) | _named(item) for item in items]
        told = {"schema": SCHEMA, "kind": SINGULAR[kind], "entries": entries, "ratios": _ratios(items)}
        click.echo(json.dumps(told, indent=2, ensure_ascii=False))
        return
    for item in items:
        click.echo(f"{item.name} ({SINGULAR[kind]}): {item.title}")
    click.echo()
    headings = [SINGULAR[kind], items[0].name]
    for item in items[1:]:
        headings += [item.name, "ratio"]
    print_table(headings, _rows(items))


def _items(names: Sequence[str]) -> tuple[str, list[Any]]:
    """The kind of the entries named, and the entries. Raises ScenarioError where they cannot be compared."""
    found = [entry_named(name) for name in names]
    for kind, name in found:
        if kind not in _LOADS:
            raise ScenarioError(f"catalog compare: {name} is a {SINGULAR[kind]}; allowed: devices, links or hosts")
    (kind, first), *others = found
    if not others:
        raise ScenarioError(f"catalog compare: {first} alone is named; allowed: two or more {kind}")
    for other, name in others:
        if other != kind:
            raise ScenarioError(
                f"catalog compare: {first} is a {SINGULAR[kind]}, {name} a {SINGULAR[other]}; allowed: all of one kind"
            )
    return kind, [_LOADS[kind](name) for _, name in found]


def _rows(items: Sequence[Any]) -> list[list[str]]:
    """A line for each figure, fact and name that one of the entries has."""
    figures = [hardware.figures_of(item) for item in items]
    rows = []
    for key, ratios in _ratios(items).items():
        cells = [_cell(key, each.get(key)) for each in figures]
        row = [key, cells[0]]
        for cell, ratio in zip(cells[1:], ratios[1:], strict=True):
            row += [cell, "" if ratio is None else f"{ratio:.3g}x"]
        rows.append(row)
    facts = [facts_of(item) for item in items]
    for name in dict.fromkeys(name for each in facts for name in each):
        rows.append(_spread(name, [YES[each[name].value] if name in each else "not known" for each in facts]))
    named = [_named(item) for item in items]
    for name in dict.fromkeys(name for each in named for name in each):
        if any(each[name] for each in named):
            rows.append(_spread(name, [each[name] or NONE for each in named]))
    return rows


def _spread(name: str, cells: Sequence[str]) -> list[str]:
    """A line without ratios."""
    return [name, cells[0], *(text for cell in cells[1:] for text in (cell, ""))]


def _ratios(items: Sequence[Any]) -> dict[str, list[float | None]]:
    """By figure that one of the entries has, those of all over that of the first; None where one has none."""
    figures = [hardware.figures_of(item) for item in items]
    found: dict[str, list[float | None]] = {}
    for key in dict.fromkeys(key for each in figures for key in each):
        base = figures[0][key].value if key in figures[0] and key != GENERATION else 0.0
        found[key] = [each[key].value / base if key in each and base else None for each in figures]
    return found


def _cell(key: str, figure: hardware.Figure | None) -> str:
    if figure is None:
        return NONE
    return f"{written(key, figure.value)}{' (assumed)' if figure.source == 'assumed' else ''}"


def _named(item: Any) -> dict[str, str | None]:
    """The names of the catalogue that an entry of its kind may have."""
    return {name: getattr(item, name) for name in _NAMED if hasattr(item, name)}
