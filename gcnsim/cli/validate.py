"""`gcnsim validate`: predictions beside measured runs."""

from __future__ import annotations

import json
from collections.abc import Callable

import click

from gcnsim import api
from gcnsim.cli.outputs import check_folder, show_and_write
from gcnsim.cli.progress import progress


@click.command("validate")
@click.argument("runs", nargs=-1, required=True, type=click.Path(), metavar="RUN...")
@click.option("--calibration", type=click.Path(), help="Calibration record (gcnsim calibrate).  [default: none]")
@click.option(
    "--measured-compute",
    type=click.Path(),
    multiple=True,
    help="Compute times of runtime.measure; each run uses the file with its graph and parts (repeatable).",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Refuse runs of another machine or version than the calibration, or with bandwidth limited in software.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON (schema gcnsim.validation/1).")
@click.option("--json-out", type=click.Path(), help="Write that JSON to a file.")
@click.option("--out", type=click.Path(), help="Write validation.md, .csv and .html into this folder.")
def command(
    runs: tuple[str, ...],
    calibration: str | None,
    measured_compute: tuple[str, ...],
    strict: bool,
    as_json: bool,
    json_out: str | None,
    out: str | None,
) -> None:
    """Predict recorded runs and compare, phase by phase.

    RUN is a folder that runtime.train wrote, with its access trace in it or where --save-trace put it.
    Runs that the calibration used are refused: an error counts only on runs the model has not seen.

    \b
    Example:
      gcnsim validate runs/* --calibration calibration.json --out report
    """
    check_folder("out", out, ("json-out", json_out), read=(*runs, calibration, *measured_compute))
    with progress() as say:
        found = api.validate(runs, calibration, measured_compute=measured_compute, strict=strict, progress=say)
    writes: list[Callable[[], object]] = []
    # The folder first: the JSON may go into it.
    if out:
        writes.append(lambda: api.write_validation(out, found))
    if json_out:
        writes.append(lambda: api.write_json(json_out, found))
    text = json.dumps(found, indent=2, allow_nan=False) if as_json else api.render_validation(found)
    show_and_write(text, *writes)
