"""Timelines of one steady iteration as a page, and as a table of what each row does when."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gcnsim.io.atomic import atomic_write
from gcnsim.report.answer.provenance import plain
from gcnsim.report.figures.timeline import TimelineData, timeline_figure
from gcnsim.report.page.sections import Section
from gcnsim.report.page.templates import write_page
from gcnsim.units import format_seconds

CSV_HEAD = ("timeline", "iteration", "row", "kind", "start_s", "end_s", "what")


class Drawn(NamedTuple):
    """A timeline and what it is called: `measured`, `predicted`."""

    name: str
    data: TimelineData


def caption_of(data: TimelineData) -> str:
    """What a timeline shows, in words."""
    left = f" {data.workers_left_out} more workers are left out." if data.workers_left_out else ""
    links = " then a row per link, the stronger its colour the busier;" if data.links else ""
    return (
        f"Iteration {data.iteration}, {format_seconds(data.length_s)}: a row per worker and kind of work;{links}"
        f" point at a block to read what it is and what it waited for.{left}"
    )


def write_timelines(path: str | Path, heading: str, drawn: Sequence[Drawn]) -> None:
    """Write timelines as one offline page, their axes of time alike. Raises FileError."""
    until = max(each.data.length_s for each in drawn)
    parts = [
        Section(
            each.name.capitalize(),
            timeline_figure(each.data, until_s=until),
            caption_of(each.data),
            each.data.legend,
        )
        for each in drawn
    ]
    write_page(
        path,
        "report.html.j2",
        title=plain(heading),
        label="",
        heading=plain(heading),
        warned=[],
        said=[],
        parts=parts,
        provenance=[],
    )


def write_timelines_csv(path: str | Path, drawn: Sequence[Drawn]) -> None:
    """Write a line for each block of timelines: seconds from the start of the iteration. Raises FileError."""
    with atomic_write(path, text=True) as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(CSV_HEAD)
        for name, data in drawn:
            for each in data.blocks:
                what = "; ".join(line.strip() for line in each.said.splitlines())
                row = (name, data.iteration, data.rows[each.row], str(each.phase), each.start_s, each.end_s, what)
                table.writerow(row)
