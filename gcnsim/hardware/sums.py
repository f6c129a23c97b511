"""What sums over neighbours cost a core, as a calibration finds it: sizes of caches and seconds per thing done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from gcnsim.shapes import Amount, As, Keys, Positive, Within

LEVELS: Final = 3
"""Caches that the formula distinguishes: a core's first and second, and the last one, behind which memory is."""

TERMS: Final = (
    "call",
    "row",
    "row_byte",
    "far_row_byte",
    "filled_row",
    "entry",
    "entry_byte",
    "first_miss",
    "first_miss_byte",
    "second_miss",
    "second_miss_byte",
    "last_miss",
    "last_miss_byte",
)
"""Of a product: calls; rows of its result and their bytes, those of a result that lies behind the last cache, rows with
an entry; entries and the bytes of the rows they read; rows read that the first, the second, the last cache lacks, and
their bytes."""


@dataclass(frozen=True, slots=True)
class SumFigures:
    """What sums over neighbours cost a core."""

    caches: Annotated[tuple[Positive, ...], Within(min_items=LEVELS, max_items=LEVELS)]
    """Bytes of a core's first and second cache and of the last one, ascending."""
    seconds: Annotated[Mapping[str, float], As(Keys.of(TERMS, Amount))]
    """Of a call, a row of the result, a byte of it, .. (docs/calibration.md)."""
