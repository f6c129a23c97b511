"""What rows that come from memory cost a core more than rows in its last cache, as a calibration finds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from gcnsim.shapes import Amount, As, Keys, Positive, Within

Times = Annotated[float, Within(minimum=1)]

FAR_HOST: Final = (
    "draw_s",
    "sample_edges_per_s",
    "build_entries_per_s",
    "sort_edges_per_s",
    "batch_s",
    "batch_looked_per_s",
    "batch_drawn_per_s",
    "batch_built_per_s",
    "batch_stored_per_s",
    "batch_turned_per_s",
    "batch_matrix_s",
    "batch_row_s",
    "load_s",
    "load_row_s",
    "gather_bandwidth",
)
"""Figures of a host of what samples, draws mini-batches and loads their rows."""


@dataclass(frozen=True, slots=True)
class FarFigures:
    """What takes longer where an iteration touches more than the last cache has room for."""

    cache: Positive
    """Bytes between two uses after which half of the rows have left the last cache."""
    byte: Amount
    """Seconds added to each byte of a map that comes from memory."""
    passes: Times
    """How many times as long elementwise passes take where all rows come from memory."""
    rows: Times
    """The same of rows that are packed, added or put between others."""
    launch: Times
    """The same of launches, whose code comes from memory too."""
    host: Annotated[Mapping[str, float], As(Keys.of(FAR_HOST, Positive, needed=False))]
    """Figures of the host where all that it reads comes from memory."""
