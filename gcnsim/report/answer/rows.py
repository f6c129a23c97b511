"""What rows of an answer have in common, and what tells them apart: shared by table, CSV, figures and page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from gcnsim.errors import plural
from gcnsim.results import Row
from gcnsim.units import format_gbps


def varies(rows: Sequence[Row], key: str) -> bool:
    """Whether `rows` hold more than one value of the column `key`."""
    return len({value_of(row, key) for row in rows}) > 1


def value_of(row: Row, key: str) -> Any:
    """What the row has in the column `key`; None of a column that joins several."""
    return bandwidth_text(row) if key == "bandwidth" else getattr(row, key, None)


def bandwidth_text(row: Row) -> str:
    """The bandwidth of its servers' network cards as networks are sold: `15Gbps`."""
    return format_gbps(row.bandwidth_bytes_per_s)


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
        "bandwidth": bandwidth_text(row),
        "tau": f"tau {row.tau}",
        "epsilon": f"eps {row.epsilon:g}",
        "rate": f"rate {row.rate:g}",
        "cache_fraction": f"cache {100 * row.cache_fraction:.4g}%",
        "setting": row.setting or "default knobs",
    }
    return ", ".join(text for key, text in parts.items() if varies(twins, key))
