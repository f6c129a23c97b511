"""The columns of rows as text: which are shown, their headings with units, and their cells.

Columns are declared on the fields of `Row`. One column has one unit, written in its heading, so that its numbers can be
compared by eye. Terminal table and page show the same columns, with the same keys as JSON, CSV and data frames.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.units import BANDWIDTH, NBYTES, SECONDS, format_number
from gcnsim.report.answer.rows import plain, shared_knobs, varies
from gcnsim.results import COLUMNS, Column, Form, Row, Table, When

TIME_UNITS: tuple[tuple[str, float], ...] = tuple((unit, float(SECONDS.units[unit])) for unit in SECONDS.shown)
RATE_UNITS: tuple[tuple[str, float], ...] = tuple((unit, float(BANDWIDTH.units[unit])) for unit in BANDWIDTH.shown)
BYTE_UNITS: tuple[tuple[str, float], ...] = tuple((unit, float(NBYTES.units[unit])) for unit in NBYTES.shown)


@dataclass(frozen=True, slots=True)
class TextColumn:
    """One column as text: what it is, its heading with unit, and a cell per row."""

    column: Column
    head: str
    cells: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name."""
        return self.column.key

    @property
    def width(self) -> int:
        """Characters of its longest line."""
        return max(len(line) for text in (self.head, *self.cells) for line in text.split("\n"))


class Scale(NamedTuple):
    """A unit, its size in the base unit, and the decimals of its numbers."""

    unit: str
    size: float
    decimals: int

    def text(self, value: float) -> str:
        """`value` (base unit) in this unit; an exact zero is `0`, so that it differs from a rounded one."""
        return f"{value / self.size:.{self.decimals}f}" if value else "0"


WIDE = 1000
"""Byte counts from here on use the next larger unit if that is nearly as precise."""


def scale_of(values: Sequence[float], units: Sequence[tuple[str, float]]) -> Scale:
    """The scale in which the smallest positive value has three digits, four if all are within a factor of two.

    `units` go from the largest to the smallest.

    >>> scale_of([0.4, 0.7], TIME_UNITS).text(0.41234)
    '412.3'
    >>> scale_of([0.4, 1.5], TIME_UNITS).text(0.41234)
    '412'
    """
    positive = [value for value in values if value > 0]
    if not positive:
        return Scale(*units[-1], 0)
    low, high = min(positive), max(positive)
    place = next((index for index, (_, size) in enumerate(units) if low >= size), len(units) - 1)
    digits = 3 if high / low < 2 else 2
    if units is BYTE_UNITS and place and high / units[place][1] >= WIDE and high >= units[place - 1][1] * 0.9:
        # 0.987 GiB is shorter and easier to read than 1010.7 MiB.
        unit, size = units[place - 1]
        return Scale(unit, size, digits)
    unit, size = units[place]
    return Scale(unit, size, min(6, max(0, digits - math.floor(math.log10(low / size)))))


def share_text(value: float) -> str:
    """A fraction as a percentage, with a decimal below 10 %.

    >>> share_text(0.125), share_text(0.04), share_text(0.0)
    ('12%', '4.0%', '0%')
    """
    percent = 100 * value
    return f"{percent:.1f}%" if 0 < percent < 9.95 else f"{percent:.0f}%"


def checked(names: Sequence[str]) -> tuple[str, ...]:
    """The requested columns, each once. Raises ScenarioError for an unknown name, with the nearest known one."""
    unique_names = tuple(dict.fromkeys(name.strip() for name in names))
    for name in unique_names:
        if name not in COLUMNS:
            raise ScenarioError(f"--columns: unknown column {name!r}; {nearest(name, COLUMNS)}")
    return unique_names


def shown_keys(rows: Sequence[Row], *, wide: bool = False) -> list[str]:
    """The columns that say something of `rows`: those of the usual table, in wide tables also the others."""
    tables = (Table.USUAL, Table.WIDE) if wide else (Table.USUAL,)
    found = [key for key, column in COLUMNS.items() if column.table in tables and _informative(column, rows, wide)]
    if "epoch_s" in found:
        # Iterations of mini-batches differ in work: epochs are what compares, so they come first.
        found.remove("epoch_s")
        found.insert(found.index("time"), "epoch_s")
    return found


def _informative(column: Column, rows: Sequence[Row], wide: bool) -> bool:
    if column.when is When.BATCHES:
        return any(row.iterations_per_epoch > 1 for row in rows)
    if column.when is When.DIFFERS and not wide:
        return varies(rows, column.key)
    if column.form is Form.KNOBS and not wide:
        return any(row.knob_words().keys() - shared_knobs(rows).keys() for row in rows)
    return any(getattr(row, column.of) not in (None, "") for row in rows)


def columns_of(
    rows: Sequence[Row], keys: Sequence[str] | None = None, *, gap: str = "  ", brief: bool = False
) -> list[TextColumn]:
    """The columns of `rows`: those of `keys`, otherwise the informative usual ones.

    gap: between the knobs of a row. brief: the shorter headings.
    """
    names = shown_keys(rows) if keys is None else keys
    if all(row.iteration_s_low is None for row in rows):
        names = ["iteration_s" if key == "time" else key for key in names]
    times = [row.iteration_s for row in rows]
    # The default table shows a range next to each time, so a fourth digit would be false precision.
    time = scale_of([*times, 2.0 * max(times)] if keys is None else times, TIME_UNITS)
    shared = set() if keys else set(shared_knobs(rows))
    found = []
    for column in map(COLUMNS.__getitem__, names):
        scale = _scale(column, rows, time)
        if column.form is Form.KNOBS:
            cells = tuple(
                plain(gap.join(text for name, text in row.knob_words().items() if name not in shared)) for row in rows
            )
        elif column.form is Form.TIME:
            cells = _times(rows, time)
        else:
            cells = tuple(_cell(row, column, scale) for row in rows)
        if brief and column.key == "limited_by":
            # `GPU compute, worker 4`; `GPU compute` for that of all workers.
            cells = tuple(cell.removesuffix(" of all workers").replace(" of worker", ", worker") for cell in cells)
        head = (brief and column.brief) or column.head
        found.append(TextColumn(column, head.format(unit=scale.unit), cells))
    return found


def _scale(column: Column, rows: Sequence[Row], time: Scale) -> Scale:
    """The scale of a column's numbers; that of all times for a column of times."""
    units = {Form.BYTES: BYTE_UNITS, Form.MEMORY: BYTE_UNITS, Form.BYTE_RATE: RATE_UNITS}.get(column.form)
    if units is None:
        return time
    scale = scale_of([getattr(row, column.key) or 0.0 for row in rows], units)
    return scale._replace(decimals=min(scale.decimals, 1)) if column.form is Form.MEMORY else scale


def _times(rows: Sequence[Row], time: Scale) -> tuple[str, ...]:
    """Each time and its interval in brackets, aligned."""
    means = [time.text(row.iteration_s) for row in rows]
    spans = [f"({ends})" if (ends := _ends(row, time)) else "" for row in rows]
    widths = max(map(len, means)), max(map(len, spans))
    return tuple(f"{mean:>{widths[0]}} {span:<{widths[1]}}" for mean, span in zip(means, spans, strict=True))


def _cell(row: Row, column: Column, scale: Scale) -> str:
    match column.form:
        case Form.ENDS:
            return _ends(row, scale) or "-"
        case Form.SHARES:
            return "|".join(f"{100 * part / row.iteration_s:2.0f}" for part in (row.compute_s, row.exposed_comm_s))
        case Form.DIFFERENCE:
            return _vs_recommended(row)
    value = getattr(row, column.key)
    if value is None:
        return "-"
    match column.form:
        case Form.SECONDS | Form.BYTES | Form.BYTE_RATE:
            return scale.text(value)
        case Form.MEMORY:
            return scale.text(value) + ("!" if row.fits is False else "")
        case Form.TIMES:
            return f"{value:.1g}x" if value < 0.095 else f"{value:.2f}x" if value < 9.995 else f"{value:.1f}x"
        case Form.MONEY:
            return f"{value:.2f}" if value >= 0.0995 else format_number(value, 2)
        case Form.PERCENT:
            return f"{100 * value:.4g}%"
        case Form.SHARE:
            return share_text(value)
    return f"{value:g}" if isinstance(value, float) else plain(value)


def _ends(row: Row, time: Scale) -> str:
    """The 90 % interval of its time; empty without one."""
    if row.iteration_s_low is None or row.iteration_s_high is None:
        return ""
    return f"{time.text(row.iteration_s_low)}-{time.text(row.iteration_s_high)}"


def _vs_recommended(row: Row) -> str:
    if row.recommended or row.vs_recommended_low is None or row.vs_recommended_high is None:
        return "-"
    if not row.distinguishable:
        return "="
    ends = (100 * row.vs_recommended_low, 100 * row.vs_recommended_high)
    low, high = (f"{end:+.1f}" if abs(end) < 9.95 else f"{end:+.0f}" for end in ends)
    return f"{low} to {high}%"
