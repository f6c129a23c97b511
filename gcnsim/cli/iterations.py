"""Commands about single iterations: `gcnsim simulate` predicts one, `gcnsim compare` shows two side by side, `gcnsim
timeline` draws a recorded run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import click

from gcnsim import api
from gcnsim.api.iterations import SCENARIOS
from gcnsim.api.simulation import WRITTEN
from gcnsim.cli.measuring import MEASURE_NOW, measured_now
from gcnsim.cli.outputs import check_folder, check_outputs, overwrite_option, progress, scenario_files, show_and_write
from gcnsim.cli.questions import WithFaults, options_as, with_fields
from gcnsim.core.errors import ScenarioError
from gcnsim.core.units import format_seconds


@click.command("simulate", cls=WithFaults)
@click.argument("scenario", type=click.Path())
@options_as("the scenario's", "overrides", "implementation", "transport", "measured_compute", "inject")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON (schema gcnsim.result/1).")
@click.option("--out", type=click.Path(), help="Write result.json and spans.parquet into this folder.")
@click.option("--html", type=click.Path(), help="Write an offline page with figures.")
@click.option("--timeline", type=click.Path(), help="Write the run for Perfetto or chrome://tracing.")
@click.option("--timeline-detail", is_flag=True, help="In --timeline: a track per stream, not per kind of work.")
@overwrite_option
def simulate(
    scenario: str,
    overrides: tuple[str, ...],
    implementation: str | None,
    transport: str | None,
    measured_compute: str | None,
    inject: tuple[str, ...],
    as_json: bool,
    out: str | None,
    html: str | None,
    timeline: str | None,
    timeline_detail: bool,
) -> None:
    """Simulate one scenario file (YAML, schema gcnsim.scenario/1).

    \b
    Example:
      gcnsim simulate scenarios/reddit-6xt4.yaml --set cluster.bandwidth=25Gbps
    """
    if timeline_detail and timeline is None:
        raise ScenarioError("--timeline-detail: describes the file of --timeline; allowed: with --timeline FILE")
    overrides = with_fields(
        overrides, implementation=implementation, transport=transport, measured_compute=measured_compute
    )
    read = scenario_files(scenario, overrides)
    check_folder("out", out, ("html", html), ("timeline", timeline), read=read, inside=WRITTEN)
    with progress() as say:
        say(f"simulating {scenario}")
        simulation = api.simulate(scenario, overrides, inject, say)
    writes: list[Callable[[], object]] = []
    # The folder is created first: the timeline may go into it.
    if out:
        writes.append(lambda: api.write_result(simulation, out))
    if timeline:
        writes.append(lambda: api.write_timeline(simulation.result, timeline, detail=timeline_detail))
    if html:
        writes.append(lambda: simulation.to_html(html))
    text = json.dumps(dict(simulation.payload), indent=2, allow_nan=False) if as_json else str(simulation)
    show_and_write(text, *writes)


@click.command("compare")
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option(
    "--names",
    type=click.Path(),
    metavar="FILE",
    help="YAML file that assigns names in a profiler's trace to kinds of work.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON (schema gcnsim.compare/1).")
@click.option("--json-out", type=click.Path(), help="Write that JSON to a file.")
@click.option("--html", type=click.Path(), help="Write an offline page with a figure.")
@overwrite_option
def compare(a: str, b: str, names: str | None, as_json: bool, json_out: str | None, html: str | None) -> None:
    """Compare two iterations, component by component and link by link: where the difference comes from.

    A and B are each a scenario (.yaml), a result of `gcnsim simulate` (--json, or the folder of --out), or a row of
    `gcnsim what-if --json` (FILE#2). They may also be measured: the folder of a recorded run, or an export of the
    PyTorch profiler (.json, .json.gz, or a folder with a file for each rank).

    \b
    Examples:
      gcnsim compare scenarios/reddit-6xt4.yaml scenarios/reddit-6xt4-full-graph.yaml
      gcnsim compare traces/ scenarios/reddit-6xt4.yaml
    """
    check_outputs(*_read(a), *_read(b), names, json_out=json_out, html=html)
    with progress() as say:
        payload = api.compare(a, b, names=names, progress=say)
    text = json.dumps(payload, indent=2, allow_nan=False) if as_json else api.render_comparison(payload)
    writes: list[Callable[[], object]] = [lambda: api.write_json(json_out, payload)] if json_out else []
    if html:
        writes.append(lambda: api.write_comparison(html, payload))
    show_and_write(text, *writes)


def _read(side: str) -> list[str]:
    """Return the files read for one side: FILE of FILE#2, a folder, or a scenario and the files that it names."""
    if side.endswith(SCENARIOS) and os.path.isfile(side):
        return scenario_files(side)
    return [side, side.rpartition("#")[0]]


@click.command("timeline")
@click.argument("run", type=click.Path())
@click.option("--out", type=click.Path(), help="Write both, aligned, for Perfetto or chrome://tracing.")
@click.option("--html", type=click.Path(), help="Write an offline page with one steady iteration of each.")
@click.option("--calibration", type=click.Path(), help="Predict with this record.  [default: the catalogue's figures]")
@click.option(
    "--measured-compute",
    type=click.Path(),
    multiple=True,
    help="Compute times of runtime.measure: a file or a folder (repeatable); runs recorded on CPU cores need them.",
)
@click.option("--measure-now", is_flag=True, help=MEASURE_NOW)
@click.option("--timeline-detail", is_flag=True, help="A track per stream, not per kind of work.")
@overwrite_option
def timeline(
    run: str,
    out: str | None,
    html: str | None,
    calibration: str | None,
    measured_compute: tuple[str, ...],
    measure_now: bool,
    timeline_detail: bool,
) -> None:
    """Show a recorded run and its prediction as timelines.

    RUN is a folder that runtime.train wrote.

    \b
    Example:
      gcnsim timeline RUN --out both.json
    """
    from gcnsim import api
    from gcnsim.report.page.sections import DrawnTimeline, write_timelines

    if timeline_detail and not out:
        raise ScenarioError("--timeline-detail: describes a file; allowed: with --out FILE")
    check_outputs(run, calibration, *measured_compute, out=out, html=html)
    if measure_now:
        measured_compute = (*measured_compute, measured_now([run]))
    with progress() as say:
        run_timeline = api.run_timeline(run, calibration, say, measured_compute)
        named = run_timeline.data()
    lines = [
        f"{name:<10} {format_seconds(mean)} an iteration; steady: iteration {named[name].iteration}"
        for name, mean in run_timeline.times().items()
    ]
    drawns = [DrawnTimeline(name, data) for name, data in named.items()]
    writes = [
        (out, lambda path: run_timeline.write(path, detail=timeline_detail)),
        (html, lambda path: write_timelines(path, run_timeline.title, drawns)),
    ]
    show_and_write(
        "\n".join(lines),
        *(lambda path=path, write=write: write(path) for path, write in writes if path),
        notes=[run_timeline.reason] if run_timeline.reason else [],
    )
