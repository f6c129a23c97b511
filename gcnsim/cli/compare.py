"""`gcnsim compare`: two iterations side by side."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import click

from gcnsim import api
from gcnsim.api.comparison import SCENARIOS
from gcnsim.cli.outputs import check_outputs, scenario_files, show_and_write
from gcnsim.cli.progress import progress


@click.command("compare")
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option(
    "--names", type=click.Path(), metavar="FILE", help="YAML file that assigns names in a profiler's trace to parts."
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON (schema gcnsim.compare/1).")
@click.option("--json-out", type=click.Path(), help="Write that JSON to a file.")
@click.option("--html", type=click.Path(), help="Write an offline page with a figure.")
def command(a: str, b: str, names: str | None, as_json: bool, json_out: str | None, html: str | None) -> None:
    """Compare two iterations, part by part and link by link: where the difference comes from.

    A and B are each a scenario (.yaml), an answer of `gcnsim simulate` (--json, or the folder of --out), or a row of
    `gcnsim what-if --json` (FILE#2). They may also be measured: the folder of a recorded run, or an export of the
    PyTorch profiler (.json, .json.gz, or a folder with a file for each rank).

    \b
    Examples:
      gcnsim compare scenarios/reddit-6xt4.yaml scenarios/reddit-6xt4-full-graph.yaml
      gcnsim compare traces/ scenarios/reddit-6xt4.yaml
    """
    check_outputs(*_read(a), *_read(b), names, json_out=json_out, html=html)
    with progress() as say:
        found = api.compare(a, b, names=names, progress=say)
    text = json.dumps(found, indent=2, allow_nan=False) if as_json else api.render_comparison(found)
    writes: list[Callable[[], object]] = [lambda: api.write_json(json_out, found)] if json_out else []
    if html:
        writes.append(lambda: api.write_comparison(html, found))
    show_and_write(text, *writes)


def _read(side: str) -> list[str]:
    """What is read of one side: FILE of FILE#2, a folder, a scenario and the files that it names."""
    if side.endswith(SCENARIOS) and os.path.isfile(side):
        return scenario_files(side)
    return [side, side.rpartition("#")[0]]
