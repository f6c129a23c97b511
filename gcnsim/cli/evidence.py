"""The commands `gcnsim calibrate`, `gcnsim validate` and `gcnsim reproduce`, which compare predictions with
measurements.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import click

from gcnsim import api
from gcnsim.cli.measuring import MEASURE_NOW, measured_now
from gcnsim.cli.outputs import check_folder, check_outputs, overwrite_option, progress, show_and_write
from gcnsim.core.errors import FileError


@click.command("calibrate")
@click.argument("measurements", type=click.Path())
@click.option("--runs", multiple=True, type=click.Path(), help="Run folder for refining the fit (repeatable).")
@click.option(
    "--measured-compute",
    multiple=True,
    type=click.Path(),
    help="Compute times of the runs' parts (runtime.measure): a file or a folder (repeatable); runs recorded on CPU "
    "cores need them.",
)
@click.option("--out", type=click.Path(), default="calibration.json", show_default=True, help="The record to write.")
@overwrite_option
def calibrate(measurements: str, runs: tuple[str, ...], measured_compute: tuple[str, ...], out: str) -> None:
    """Fit the simulator's parameters to measurements of a machine.

    MEASUREMENTS is the file of `python -m runtime.profile` (GPUs) or `python -m runtime.measure --links` (messages), or
    profile.json in the folder of `python -m runtime.survey`.
    Runs given here cannot be used to validate the result.

    \b
    Examples:
      gcnsim calibrate profile.json
      gcnsim calibrate links.json --out links-calibration.json
      gcnsim calibrate links.json --runs runs/a --runs runs/b --measured-compute measured
    """
    check_outputs(measurements, *runs, *measured_compute, out=out)
    notes: list[str] = []
    with progress() as say:
        record = api.calibrate(measurements, runs, measured_compute=measured_compute, progress=say, warn=notes.append)
    show_and_write(api.render_calibration(record, out), lambda: api.write_calibration(out, record), notes=notes)


@click.command("validate")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
@click.option("--calibration", type=click.Path(), help="Calibration record (gcnsim calibrate).  [default: none]")
@click.option(
    "--measured-compute",
    type=click.Path(),
    multiple=True,
    help="Compute times of runtime.measure: a file or a folder (repeatable). Each run uses those of its graph and "
    "parts; runs recorded on CPU cores need them.",
)
@click.option("--measure-now", is_flag=True, help=MEASURE_NOW)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON (schema gcnsim.validation/1).")
@click.option("--json-out", type=click.Path(), help="Write that JSON to a file.")
@click.option("--out", type=click.Path(), help="Write validation.md, .csv and .html into this folder.")
@overwrite_option
def validate(
    runs: tuple[str, ...],
    calibration: str | None,
    measured_compute: tuple[str, ...],
    measure_now: bool,
    as_json: bool,
    json_out: str | None,
    out: str | None,
) -> None:
    """Predict recorded runs and compare, phase by phase.

    RUN is a folder that runtime.train wrote. Its access trace is in that folder, or where --save-trace wrote it.
    Runs that the calibration used are refused, because errors count only on unseen runs.

    \b
    Example:
      gcnsim validate runs/* --calibration calibration.json --measured-compute measured --out report
    """
    pages = [f"validation.{kind}" for kind in ("md", "csv", "html")]
    check_folder("out", out, ("json-out", json_out), read=(*runs, calibration, *measured_compute), inside=pages)
    if measure_now:
        measured_compute = (*measured_compute, measured_now(runs))
    with progress() as say:
        payload = api.validate(runs, calibration, measured_compute=measured_compute, progress=say)
    writes: list[Callable[[], object]] = []
    # The folder is created first: the JSON may go into it.
    if out:
        writes.append(lambda: api.write_validation(out, payload))
    if json_out:
        writes.append(lambda: api.write_json(json_out, payload))
    text = json.dumps(payload, indent=2, allow_nan=False) if as_json else api.render_validation(payload)
    show_and_write(text, *writes)


@click.command("reproduce")
@click.option("--published", type=click.Path(), help="Folder of published tables.  [default: those in the package]")
@click.option("--paper", "papers", multiple=True, metavar="NAME", help="Only the tables of this paper (repeatable).")
@click.option("--csv", "csv_out", type=click.Path(), help="Write one line per table cell to this CSV file.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON (schema gcnsim.reproduction/1).")
@click.option("--processes", type=click.IntRange(min=1), help="Processes to use.  [default: one per core]")
@overwrite_option
def reproduce(
    published: str | None, papers: tuple[str, ...], csv_out: str | None, as_json: bool, processes: int | None
) -> None:
    """Predict every row of published tables and compare.

    Rows marked "calibrate" may have been used in a fit; rows marked "predict" were not. Systems that gcnsim cannot
    describe are listed on stderr and have empty cells in the file. Exit code 2 if a score of the bundled tables is not
    the frozen one: a median that moved by 2 points, or a cell lost.

    \b
    Examples:
      gcnsim reproduce --csv cells.csv
      gcnsim reproduce --paper pipegcn
    """
    from gcnsim.evidence.frozen_score import drift
    from gcnsim.report.evidence import left_out_lines, render_reproduction, write_reproduction

    check_outputs(published, csv=csv_out)
    with progress() as say:
        payload = api.reproduce(published, papers=papers, progress=say, processes=processes)
    text = json.dumps(payload, indent=2, allow_nan=False) if as_json else render_reproduction(payload)
    writes = [lambda: write_reproduction(csv_out, payload)] if csv_out else []
    show_and_write(text, *writes, notes=left_out_lines(payload))
    moved = drift(payload) if published is None else []
    if moved:
        raise FileError("; ".join(["the score is not the frozen one", *moved]))
