"""The page of a sweep: its best point, iteration time against each varied numeric axis, and the first points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gcnsim.core.errors import plural
from gcnsim.core.units import format_seconds, range_text
from gcnsim.report.answer.columns import MEANINGS, columns_of
from gcnsim.report.answer.rows import bandwidth_text, plain, varies
from gcnsim.report.figures.curves import AXES, curve_data, curve_figure, curve_of_rows, styled
from gcnsim.report.figures.style import line_legend
from gcnsim.report.page.html import columns_sheet
from gcnsim.report.page.sections import Section, write_report
from gcnsim.results import Row

SHOWN: Final = 30
"""The most points in the table."""


@dataclass(frozen=True, slots=True)
class PointOrder:
    """The column by which a sweep's points are ordered, and the first point's value in it."""

    by: str
    value: object
    descending: bool = False

    @property
    def fastest(self) -> bool:
        """Whether the first point is the fastest."""
        return self.by == "iteration_s" and not self.descending

    @property
    def text(self) -> str:
        """The order in words."""
        value = f"{self.value:.4g}" if isinstance(self.value, float) else str(self.value)
        return f"by {self.by}{', the largest first' if self.descending else ''} ({value})"


def first_sentence(first: Row, count: int, order: PointOrder) -> str:
    """The first of `count` points in a sentence."""
    of = plural(count, "point")
    leads = f"The fastest of {of} is" if order.fastest else f"Of {of} {order.text}, the first is"
    setting = ", ".join((first.method, *first.knobs))
    return plain(
        f"{leads} {setting} on {first.gpus} x {first.device} at {bandwidth_text(first)}: "
        f"{format_seconds(first.iteration_s)} per iteration{range_text(first.iteration_s_low, first.iteration_s_high)}."
    )


def write_sweep(path: str | Path, rows: Sequence[Row], first: Sequence[Row], order: PointOrder, name: str) -> None:
    """Write the rows of a sweep's points as a page. first: the rows of the table, in `order`, at least one.

    Raises FileError.
    """
    columns = columns_of(first[:SHOWN])
    if order.by in MEANINGS and order.by not in {column.key for column in columns}:
        columns += columns_of(first[:SHOWN], [order.by])
    count = plural(len(rows), "point")
    table = columns_sheet(columns, f"The fastest of {count}" if order.fastest else f"{count}, {order.text}", (0,))
    write_report(
        path,
        title=plain(name),
        heading=first_sentence(first[0], len(rows), order),
        parts=[*_curves(sorted(rows, key=lambda row: row.iteration_s)), Section("Points", None, "", (), table)],
    )


def _curves(rows: Sequence[Row]) -> list[Section]:
    """One figure for each varied axis."""
    curves = []
    for name, axis in AXES.items():
        if not varies(rows, axis.field):
            continue
        data = curve_data(curve_of_rows(rows, name))
        left = f" {len(data.left_out)} slower ones are left out." if data.left_out else ""
        caption = f"Iteration time of the settings that are the fastest somewhere; bands are 90 % intervals.{left}"
        title, lines = f"Iteration time against {name}", line_legend(styled(data.series))
        curves.append(Section(title, curve_figure(data), caption, lines=lines))
    return curves
