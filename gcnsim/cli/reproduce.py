"""`gcnsim reproduce`: published tables beside predictions."""

from __future__ import annotations

import json

import click

from gcnsim import api
from gcnsim.cli.outputs import check_outputs, show_and_write
from gcnsim.cli.progress import progress


@click.command("reproduce")
@click.option("--published", type=click.Path(), help="Folder of published tables.  [default: those in the package]")
@click.option("--paper", "papers", multiple=True, metavar="NAME", help="Only the tables of this paper (repeatable).")
@click.option("--csv", "csv_out", type=click.Path(), help="Write one line per table cell to this CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON (schema gcnsim.reproduction/1).")
@click.option("--processes", type=click.IntRange(min=1), help="Processes to use.  [default: one per core]")
def command(
    published: str | None, papers: tuple[str, ...], csv_out: str | None, as_json: bool, processes: int | None
) -> None:
    """Predict every row of published tables and compare.

    Rows with use "calibrate" have a published value and an error; rows with use "predict" have a prediction and its
    interval. Systems that gcnsim cannot describe are listed on stderr and have empty cells in the file.

    \b
    Example:
      gcnsim reproduce --csv cells.csv
      gcnsim reproduce --paper pipegcn
    """
    from gcnsim.report.reproduction import left_out_lines, render_reproduction, write_reproduction

    check_outputs(published, csv=csv_out)
    with progress() as say:
        found = api.reproduce(published, papers=papers, progress=say, processes=processes)
    text = json.dumps(found, indent=2, allow_nan=False) if as_json else render_reproduction(found)
    writes = [lambda: write_reproduction(csv_out, found)] if csv_out else []
    show_and_write(text, *writes, notes=left_out_lines(found))
