"""All cells in a few figures: how far off per paper, beside null models, and which rows are worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from gcnsim.hardware import platform, platforms
from gcnsim.reproduction.table_cells import TOLERANCE, Cell, error_of

SCHEMA: Final = "gcnsim.reproduction/1"
NULLS: Final = ("vanilla", "pipelined", "scaled", "overlap")
WORST: Final = 3


def payload(cells: Sequence[Cell]) -> dict[str, Any]:
    """The result as plain data: figures per paper, fitted figures per platform, and every cell."""
    papers = list(dict.fromkeys(cell.paper for cell in cells))
    return {
        "schema": SCHEMA,
        "all": figures(cells),
        "papers": {paper: figures([cell for cell in cells if cell.paper == paper]) for paper in papers},
        "platforms": {name: _fitted(name) for name in platforms()},
        "worst": [as_row(cell) for cell in worst(cells)],
        "cells": [as_row(cell) for cell in cells],
    }


def figures(cells: Sequence[Cell]) -> dict[str, Any]:
    """Counts, and absolute errors of the judged cells: median, largest, within TOLERANCE, within their interval.

    held: the same of those that no figure was fitted to. nulls: per null model the median absolute error, and ours on
    the same cells; None where there is none.
    """
    return {
        "cells": len(cells),
        "predicted": sum(cell.predicted is not None for cell in cells),
        **_errors(cells),
        "held": _errors([cell for cell in cells if not cell.fitted]),
        "nulls": {name: _null(cells, name) for name in NULLS},
    }


def _errors(cells: Sequence[Cell]) -> dict[str, Any]:
    errors = np.array([abs(error) for cell in cells if (error := cell.error) is not None])
    return {
        "judged": int(errors.size),
        "median": float(np.median(errors)) if errors.size else None,
        "largest": float(errors.max()) if errors.size else None,
        "within": float(np.mean(errors <= TOLERANCE)) if errors.size else None,
        "covered": _covered(cells),
    }


def worst(cells: Sequence[Cell]) -> list[Cell]:
    """The judged cells with the largest errors."""
    judged = [cell for cell in cells if cell.error is not None]
    return sorted(judged, key=lambda cell: -abs(cell.error or 0.0))[:WORST]


def as_row(cell: Cell) -> dict[str, Any]:
    """One cell as plain data."""
    names = (
        "paper",
        "table",
        "row",
        "use",
        "metric",
        "predicted",
        "low",
        "high",
        "published",
        "error",
        "reason",
        "fitted",
    )
    return {**{name: getattr(cell, name) for name in names}, "nulls": dict(cell.nulls)}


def _covered(cells: Sequence[Cell]) -> float | None:
    held = [
        cell.low <= cell.published <= cell.high
        for cell in cells
        if cell.error is not None and cell.low is not None and cell.high is not None and cell.published is not None
    ]
    return float(np.mean(held)) if held else None


def _null(cells: Sequence[Cell], name: str) -> Mapping[str, float] | None:
    pairs = [
        (abs(error_of(cell.metric, cell.nulls[name], cell.published)), abs(error))
        for cell in cells
        if name in cell.nulls and cell.published is not None and (error := cell.error) is not None
    ]
    if not pairs:
        return None
    null, ours = np.median(np.array(pairs), axis=0)
    return {"cells": len(pairs), "null": float(null), "ours": float(ours)}


def _fitted(name: str) -> dict[str, Any]:
    found = platform(name)
    return {
        "title": found.title,
        "device": found.device,
        "spmm_efficiency": found.spmm_efficiency.value,
        "stream_efficiency": None if found.stream_efficiency is None else found.stream_efficiency.value,
        "staging_bandwidth": None if found.staging_bandwidth is None else found.staging_bandwidth.value,
        "rate_beside_copies": found.rate_beside_copies.value,
        "error": found.error.value,
        "error_source": found.error.source,
    }
