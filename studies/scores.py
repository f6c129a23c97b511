"""What the scores of measured rows share: groups of rows as a table, and the medians as one line of JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.terminal import aligned
from gcnsim.core.yaml_files import read_yaml

HEADER: Final = ("n", "median error", "bias", "in range", "not expressible")
"""Columns behind the names of a group."""

UNEXPECTED: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""What a row with fields of another form may raise: it is counted, and others are scored."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """One measured row. group: what its line of the table is named. kind: its key in the line of medians.

    error: signed, relative; None where the row cannot be expressed, and `reason` says why. inside: whether the measured
    value is in the predicted range.
    """

    group: tuple[str, ...]
    kind: str
    error: float | None = None
    inside: bool = False
    reason: str = ""


def measured_rows(path: str | Path) -> list[Row]:
    """The rows of a file `{papers, rows}`. Raises FileError for another file."""
    raw = read_yaml(Path(path))
    if not isinstance(raw, dict) or not isinstance(raw.get("rows"), list) or not raw["rows"]:
        raise FileError(f"{path}: is not a file of measured rows; it has a list of rows")
    for number, row in enumerate(raw["rows"], start=1):
        if not isinstance(row, dict):
            raise FileError(f"{path}: row {number}: is not a row; it has a paper and what was measured")
    found: list[Row] = raw["rows"]
    return found


def judged(group: tuple[str, ...], kind: str, measured: object, ends: Sequence[float]) -> ScoredRow:
    """The row with its error. ends: predicted, least and most. What is no positive number is not expressible."""
    if isinstance(measured, bool) or not isinstance(measured, int | float) or not 0.0 < measured < math.inf:
        return ScoredRow(group, kind, reason="no positive number was measured")
    likely, low, high = ends
    return ScoredRow(group, kind, likely / measured - 1.0, min(low, likely) <= measured <= max(high, likely))


def score_lines(rows: Sequence[ScoredRow], names: Sequence[str]) -> list[str]:
    """A line for each group and one for all, why rows cannot be expressed, and the medians by kind as JSON.

    names: of the parts of a group. The JSON also has n, bias, inside and the count of rows that cannot be expressed.
    """
    groups: dict[tuple[str, ...], list[ScoredRow]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    groups[("all", *[""] * (len(names) - 1))] = list(rows)
    table = aligned([(*name, *_texts(own)) for name, own in groups.items()], (*names, *HEADER))
    reasons: dict[str, int] = {}
    for row in rows:
        if row.error is None:
            reasons[row.reason] = reasons.get(row.reason, 0) + 1
    whys = [f"not expressible, {count}: {reason}" for reason, count in reasons.items()]
    return [*table, *whys, json.dumps(medians(rows))]


def medians(rows: Sequence[ScoredRow]) -> dict[str, Any]:
    """By kind the median absolute error, under `all` the figures of all rows together."""
    kinds = dict.fromkeys(row.kind for row in rows)
    found: dict[str, Any] = {kind: _figures(row for row in rows if row.kind == kind)["median"] for kind in kinds}
    return found | {"all": _figures(rows)}


def _figures(rows: Iterable[ScoredRow]) -> dict[str, Any]:
    own = list(rows)
    errors = np.array([row.error for row in own if row.error is not None])
    known = bool(errors.size)
    return {
        "n": int(errors.size),
        "median": _rounded(np.median(np.abs(errors))) if known else None,
        "bias": _rounded(errors.mean()) if known else None,
        "inside": _rounded(np.mean([row.inside for row in own if row.error is not None])) if known else None,
        "not_expressible": len(own) - int(errors.size),
    }


def _texts(rows: Sequence[ScoredRow]) -> tuple[str, ...]:
    found = _figures(rows)
    shares = tuple("" if found[key] is None else f"{100 * found[key]:{sign}.0f} %" for key, sign in _SIGNS.items())
    return (str(found["n"]), *shares, str(found["not_expressible"]))


_SIGNS: Final = {"median": "", "bias": "+", "inside": ""}


def _rounded(value: Any) -> float:
    return float(f"{float(value):.4g}")
