"""`gcnsim calibrate`: micro-benchmarks and a few runs in, a calibration record out."""

from __future__ import annotations

import click

from gcnsim import api
from gcnsim.cli.outputs import check_outputs, show_and_write
from gcnsim.cli.progress import progress


@click.command("calibrate")
@click.argument("measurements", type=click.Path())
@click.option("--runs", multiple=True, type=click.Path(), help="Run folder for refining the fit (repeatable).")
@click.option(
    "--measured-compute",
    multiple=True,
    type=click.Path(),
    help="Measured compute times of the runs' parts (runtime.measure), instead of fitted kernels (repeatable).",
)
@click.option("--out", type=click.Path(), default="calibration.json", show_default=True, help="The record to write.")
def command(measurements: str, runs: tuple[str, ...], measured_compute: tuple[str, ...], out: str) -> None:
    """Fit the simulator's figures to this machine.

    MEASUREMENTS is what `python -m runtime.profile` or `python -m runtime.measure --links` wrote. Runs given here are
    seen by the model and cannot be used to validate it.

    \b
    Examples:
      gcnsim calibrate profile.json
      gcnsim calibrate profile.json --runs runs/a --runs runs/b --out calibration.json
      gcnsim calibrate links.json --out links-calibration.json
    """
    check_outputs(measurements, *runs, *measured_compute, out=out)
    notes: list[str] = []
    with progress() as say:
        record = api.calibrate(measurements, runs, measured_compute=measured_compute, progress=say, warn=notes.append)
    show_and_write(api.render_calibration(record, out), lambda: api.write_calibration(out, record), notes=notes)
