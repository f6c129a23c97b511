"""What rows that come from memory cost a core more than rows in its last cache, as a calibration finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FarFigures:
    """What takes longer where an iteration touches more than the last cache has room for.

    cache: bytes between two uses after which half of the rows are not in it. byte: seconds added to one of a map.
    passes, rows, launch: how many times as long elementwise passes, moved rows and launches take when all, code too,
    comes from memory. host: figures of a host (`HostProfile`) where all does: of what samples, draws mini-batches and
    loads their rows.
    """

    cache: float
    byte: float
    passes: float
    rows: float
    launch: float
    host: Mapping[str, float]
