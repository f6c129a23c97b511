"""`gcnsim simulate`: one scenario file, one result."""

from __future__ import annotations

import json
from collections.abc import Callable

import click

from gcnsim import api
from gcnsim.api.simulation import WRITTEN
from gcnsim.cli.outputs import check_folder, progress, scenario_files, show_and_write
from gcnsim.cli.questions import WithFaults, options_as, with_fields
from gcnsim.core.errors import ScenarioError


@click.command("simulate", cls=WithFaults)
@click.argument("scenario", type=click.Path())
@options_as("the scenario's", "overrides", "implementation", "transport", "measured_compute", "inject")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON (schema gcnsim.result/1).")
@click.option("--out", type=click.Path(), help="Write result.json and spans.parquet into this folder.")
@click.option("--html", type=click.Path(), help="Write an offline page with figures.")
@click.option("--timeline", type=click.Path(), help="Write the run for Perfetto or chrome://tracing.")
@click.option("--timeline-detail", is_flag=True, help="In --timeline: a track per stream, not per kind of work.")
def command(
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
