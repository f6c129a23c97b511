"""`gcnsim timeline`: a recorded run for Perfetto, beside its prediction."""

from __future__ import annotations

import click

from gcnsim.cli.outputs import check_outputs, show_and_write
from gcnsim.cli.progress import progress
from gcnsim.errors import ScenarioError
from gcnsim.units import format_seconds


@click.command("timeline")
@click.argument("run", type=click.Path())
@click.option("--out", type=click.Path(), help="Write the recorded run for Perfetto or chrome://tracing.")
@click.option("--predicted", type=click.Path(), help="Write the prediction of the run, with the same tracks.")
@click.option("--html", type=click.Path(), help="Write an offline page with one steady iteration of both.")
@click.option("--calibration", type=click.Path(), help="Predict with this record.  [default: the catalogue's figures]")
@click.option("--timeline-detail", is_flag=True, help="A track per stream, not per kind of work.")
def command(
    run: str,
    out: str | None,
    predicted: str | None,
    html: str | None,
    calibration: str | None,
    timeline_detail: bool,
) -> None:
    """Show a recorded run and its prediction as timelines.

    RUN is a folder that runtime.train wrote.

    \b
    Example:
      gcnsim timeline RUN --out measured.json --predicted predicted.json
    """
    from gcnsim import api
    from gcnsim.report.page.sections import Drawn, write_timelines

    if timeline_detail and not (out or predicted):
        raise ScenarioError("--timeline-detail: is of files; allowed: with --out FILE or --predicted FILE")
    check_outputs(run, calibration, out=out, predicted=predicted, html=html)
    with progress() as say:
        found = api.run_timeline(run, calibration, say)
        measured, other = found.data()
    named = (("measured", measured, found.run.iteration_s), ("predicted", other, found.predicted.metrics.iteration_s))
    lines = [
        f"{name:<10} {format_seconds(mean)} an iteration; steady: iteration {data.iteration}"
        for name, data, mean in named
    ]
    drawn = [Drawn(name, data) for name, data, _ in named]
    writes = [
        (out, lambda path: found.write_measured(path, detail=timeline_detail)),
        (predicted, lambda path: api.write_timeline(found.predicted, path, detail=timeline_detail)),
        (html, lambda path: write_timelines(path, found.title, drawn)),
    ]
    show_and_write("\n".join(lines), *(lambda path=path, write=write: write(path) for path, write in writes if path))
