"""`gcnsim simulate`: one scenario file, one result."""

from __future__ import annotations

import json
import os

import click

from gcnsim import api
from gcnsim.api.simulation import WRITTEN
from gcnsim.cli.faults import FAULTS
from gcnsim.cli.outputs import check_outputs, refuse_read, scenario_files
from gcnsim.cli.progress import progress
from gcnsim.errors import FileError


@click.command("simulate", epilog=FAULTS)
@click.argument("scenario", type=click.Path())
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Override a scenario field (repeatable).")
@click.option("--inject", multiple=True, metavar="KIND:...", help="Fault, e.g. pause:worker=0,seconds=2s (repeatable).")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON (schema gcnsim.result/1).")
@click.option("--out", type=click.Path(), help="Write result.json and spans.parquet into this folder.")
@click.option("--timeline", type=click.Path(), help="Write the run for chrome://tracing or Perfetto.")
def command(
    scenario: str,
    overrides: tuple[str, ...],
    inject: tuple[str, ...],
    as_json: bool,
    out: str | None,
    timeline: str | None,
) -> None:
    """Simulate one scenario file (YAML, schema gcnsim.scenario/1).

    \b
    Example:
      gcnsim simulate scenarios/reddit-6xt4.yaml --set cluster.bandwidth=25Gbps
    """
    read = scenario_files(scenario, overrides)
    check_outputs(*read, timeline=timeline)
    if out is not None and os.path.exists(out) and not os.path.isdir(out):
        raise FileError(f"{out}: is a file; --out takes a folder")
    for name in WRITTEN:
        if out is not None:
            refuse_read(os.path.join(out, name), read)
    with progress() as say:
        say(f"simulating {scenario}")
        simulation = api.simulate(scenario, overrides, inject, say)
        if out:
            api.write_result(simulation, out)
        if timeline:
            api.write_timeline(simulation.result, timeline)
    click.echo(
        json.dumps(dict(simulation.payload), indent=2, allow_nan=False) if as_json else str(simulation), nl=as_json
    )
