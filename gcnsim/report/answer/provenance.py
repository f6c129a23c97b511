"""What a payload says of where its numbers come from, as plain text; what it answers is in `answer`.

Terminal and page print the same words. Text that came from outside (names, paths) has its control characters removed
here, so that a file name cannot steer a terminal; a page escapes it besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from gcnsim.report.answer.rows import labels_of, rows_of
from gcnsim.units import format_seconds


def target_title_of(payload: Mapping[str, Any]) -> str:
    """What is to be reached, e.g. `Time to 90 % validation accuracy`; empty where nothing was asked."""
    target = payload.get("target")
    return f"Time to {100 * target['accuracy']:g} % validation accuracy" if target else ""


def target_of(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Per row, its label, and iterations, time and cost, or why they are not known."""
    target = payload.get("target")
    if not target:
        return []
    labels = labels_of(rows_of(payload))
    return [
        (f"{method} ({setting})" if setting else method, plain(_reached(row)))
        for (method, setting), row in zip(labels, target["rows"], strict=True)
    ]


def _reached(row: Mapping[str, Any]) -> str:
    if row["iterations"] is None:
        return str(row["source"])
    times = (format_seconds(row[name]) for name in ("seconds", "seconds_low", "seconds_high"))
    seconds, low, high = times
    cost = "" if row["usd"] is None else f", {row['usd']:.2f} USD"
    return f"{seconds} ({low} to {high}){cost}: {row['iterations']} iterations ({row['source']})"


class Assumption(NamedTuple):
    """A number that was assumed: its value, its range, why it is believed, and whether the intervals cover it."""

    name: str
    value: str
    range: str
    basis: str
    covered: bool


def plain(text: object) -> str:
    """`text` on one line without control characters."""
    return "".join(char if char.isprintable() else " " for char in str(text))


def number(value: object) -> str:
    """A number in up to four significant digits; any other value as plain text."""
    return f"{value:.4g}" if isinstance(value, float) else plain(value)


def provenance_of(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where the numbers come from, as (what, said) pairs; assumptions and warnings are apart."""
    told = dict(payload["provenance"])
    graph = told.pop("graph")
    for apart in ("assumptions", "measured", "bounds", "warnings"):
        told.pop(apart, None)
    pairs = {"graph": f"{graph['text']} ({graph['kind']})"} | {name: _said(value) for name, value in told.items()}
    return [(plain(name).replace("_", " "), plain(value)) for name, value in pairs.items()]


def assumptions_of(payload: Mapping[str, Any]) -> list[Assumption]:
    """The assumed numbers in the payload's order."""
    return [
        Assumption(
            plain(item["name"]),
            number(item["value"]),
            f"{number(item['low'])} to {number(item['high'])}",
            plain(item["basis"]),
            bool(item["in_interval"]),
        )
        for item in payload["provenance"]["assumptions"]
    ]


def bounds_of(payload: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Per row, its label and the bounds of its long-run mean; empty when the payload has none."""
    rows = rows_of(payload)
    labels = [f"{method} ({setting})" if setting else method for method, setting in labels_of(rows)]
    limits = payload["provenance"].get("bounds", [])
    return [
        (plain(label), f"{format_seconds(limit['lower_s'])} to {format_seconds(limit['upper_s'])}")
        for label, limit in zip(labels, limits, strict=False)
    ]


def measured_of(payload: Mapping[str, Any]) -> list[str]:
    """The figures that were measured, with their values and where."""
    return [plain(text) for text in payload["provenance"].get("measured", [])]


def warnings_of(payload: Mapping[str, Any]) -> list[str]:
    """What the reader must know before trusting a number."""
    return [plain(text) for text in payload["provenance"]["warnings"]]


def knobs_of(row: Mapping[str, Any]) -> str:
    """Where the knobs of a row stand; a rate is told where nodes are drawn at all."""
    drawn = "" if row["rate"] == 1.0 else f", rate {row['rate']:g}"
    told = f", {row['setting']}" if row.get("setting") else ""
    return f"tau {row['tau']}, epsilon {row['epsilon']:g}, cache {100 * row['cache_fraction']:.4g}%{drawn}{told}"


def _said(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_said(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_said(item) for item in value)
    return number(value)
