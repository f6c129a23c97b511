"""What a what-if payload says, as plain rows: the one reading shared by table, CSV, figures and page.

The payload is the dict whose shape `gcnsim/data/what-if.schema.json` fixes; row i of `results` belongs to entry i of
`scenario["grid"]`. Nothing is computed here: numbers stay in seconds, bytes and fractions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One method with one setting of its knobs on one cluster; seconds, bytes and fractions in [0, 1]."""

    gpus: int
    bandwidth: str
    method: str
    tau: int
    epsilon: float
    rate: float
    cache_fraction: float
    iteration_s: float
    iteration_s_low: float
    iteration_s_high: float
    compute_s: float
    exposed_comm_s: float
    exposed_other_s: float
    hidden_comm_s: float
    sampling_s: float
    gpu_utilization: float
    nic_utilization: float
    cache_hit_rate: float
    nic_bytes: float
    speedup_vs_full_graph: float | None
    bottleneck: str
    iterations_per_epoch: int
    epoch_s: float
    setting: str
    memory_bytes: float | None = None
    fits: bool | None = None


ROW_KEYS: tuple[str, ...] = tuple(field.name for field in fields(Row))
"""The keys of a row: gpus and bandwidth from the grid, then the payload's result keys in their order."""


def rows_of(payload: Mapping[str, Any]) -> list[Row]:
    """The rows of `payload`, in its order.

    Raises ValueError when the grid and the results differ in length, TypeError when a result has a key too many or few.
    """
    grid, results = payload["scenario"]["grid"], payload["results"]
    if len(grid) != len(results):
        raise ValueError(f"scenario.grid has {len(grid)} entries, results has {len(results)}")
    return [
        Row(gpus=place["gpus"], bandwidth=place["bandwidth"], **result)
        for place, result in zip(grid, results, strict=True)
    ]


def varies(rows: Sequence[Row], key: str) -> bool:
    """Whether `rows` hold more than one value of `key`."""
    return len({getattr(row, key) for row in rows}) > 1


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
        "gpus": f"{row.gpus} GPUs",
        "bandwidth": row.bandwidth,
        "tau": f"tau {row.tau}",
        "epsilon": f"eps {row.epsilon:g}",
        "rate": f"rate {row.rate:g}",
        "cache_fraction": f"cache {100 * row.cache_fraction:.4g}%",
        "setting": row.setting or "default knobs",
    }
    return ", ".join(text for key, text in parts.items() if varies(twins, key))
