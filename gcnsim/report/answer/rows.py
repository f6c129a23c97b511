"""What a what-if payload says, as plain rows: the one reading shared by table, CSV, figures and page.

The payload is the dict whose shape `gcnsim/data/what-if.schema.json` fixes; row i of `results` belongs to entry i of
`scenario["grid"]`. Nothing is computed here: numbers stay in seconds, bytes and fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from gcnsim.errors import plural
from gcnsim.results import Row


def row_of(result: Mapping[str, Any], payload: Mapping[str, Any], place: Mapping[str, Any] | None = None) -> Row:
    """One of the payload's results (or its recommended row) as a row; place: its entry of the grid, if it has one.

    Raises TypeError when the result lacks a key that every row has.
    """
    scenario = payload["scenario"]
    around = {"dataset": dataset_of(scenario), "device": str(scenario.get("cluster", {}).get("device", ""))}
    return Row.read(around | dict(place or {}) | dict(result))


def dataset_of(scenario: Mapping[str, Any]) -> str:
    """The data set's name, or the name of the graph's file; empty where the scenario says neither."""
    workload = scenario.get("workload", {})
    named = next((workload[key] for key in ("graph", "profile", "trace") if isinstance(workload.get(key), str)), None)
    return PurePath(named).name if named else str(workload.get("dataset") or "")


def rows_of(payload: Mapping[str, Any]) -> list[Row]:
    """The rows of `payload` that were asked for, in its order.

    Raises ValueError when the grid and the results differ in length, TypeError when a result lacks a key.
    """
    grid, results = payload["scenario"]["grid"], payload["results"]
    if len(grid) != len(results):
        raise ValueError(f"scenario.grid has {len(grid)} entries, results has {len(results)}")
    return [row_of(result, payload, place) for place, result in zip(grid, results, strict=True)]


def recommended_of(payload: Mapping[str, Any]) -> Row | None:
    """The recommended setting as a row, also where it is none of those asked for; None of an answer that has no row."""
    best = payload["recommendation"]
    place: int | None = best.get("in_results")
    if place is not None:
        return replace(rows_of(payload)[place], recommended=True)
    if not best.get("row"):
        return None
    return replace(row_of(best["row"], payload), recommended=True)


def all_rows(payload: Mapping[str, Any]) -> list[Row]:
    """The rows asked for, one of them marked where it is recommended; the recommended one besides, if it is none."""
    rows, best = rows_of(payload), recommended_of(payload)
    place = payload["recommendation"].get("in_results")
    rows = [replace(row, recommended=k == place) for k, row in enumerate(rows)]
    return rows if best is None or place is not None else [*rows, best]


def sorted_rows(payload: Mapping[str, Any]) -> list[Row]:
    """`all_rows`, the fastest first: by the time in which every training node is trained once."""
    return sorted(all_rows(payload), key=lambda row: row.epoch_s)


def varies(rows: Sequence[Row], key: str) -> bool:
    """Whether `rows` hold more than one value of `key`."""
    return len({getattr(row, key) for row in rows}) > 1


def shared_knobs(rows: Sequence[Row]) -> dict[str, str]:
    """The knobs that two or more rows all have at one value, in words: what a title can say once."""
    if len(rows) < 2:
        return {}
    words = [row.knob_words() for row in rows]
    return {name: text for name, text in words[0].items() if all(each.get(name) == text for each in words)}


def labels_of(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Per row its method and, where the method has several rows, the settings that tell them apart.

    >>> labels_of([])
    []
    """
    counts = Counter(row.method for row in rows)
    return [(row.method, _setting(row, rows) if counts[row.method] > 1 else "") for row in rows]


def _setting(row: Row, rows: Sequence[Row]) -> str:
    twins = [other for other in rows if other.method == row.method]
    parts = {
        "gpus": plural(row.gpus, "GPU"),
        "device": row.device,
        "bandwidth": row.bandwidth,
        "tau": f"tau {row.tau}",
        "epsilon": f"eps {row.epsilon:g}",
        "rate": f"rate {row.rate:g}",
        "cache_fraction": f"cache {100 * row.cache_fraction:.4g}%",
        "setting": row.setting or "default knobs",
    }
    return ", ".join(text for key, text in parts.items() if varies(twins, key))
