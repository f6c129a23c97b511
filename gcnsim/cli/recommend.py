"""`gcnsim recommend`: which machine and setting to take. Parse, call, print."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from gcnsim.cli.outputs import check_outputs, show_and_write
from gcnsim.cli.progress import notice, progress
from gcnsim.cli.questions import asked, files_read, question_options
from gcnsim.questions import Recommend


@click.command("recommend")
@question_options(Recommend)
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.recommend/1).")
@click.option("--out", type=click.Path(), help="Write the JSON to a file, too.")
@click.option("--csv", type=click.Path(), help="Write the table to a CSV file.")
@click.option("--html", type=click.Path(), help="Write an offline page with figures.")
def command(as_json: bool, out: str | None, csv: str | None, html: str | None, **question: Any) -> None:
    """Search hundreds of machines and settings for one that meets a target.

    A recommended setting meets the target with a chance of at least --confidence. It samples at least
    --min-sampling-rate and has at most --max-staleness, unless recorded runs say what is accurate enough.

    \b
    Examples:
      gcnsim recommend --dataset reddit --target-iteration 0.5s
      gcnsim recommend --device t4,a10g --gpus 2,4,8 --minimise time --budget 500USD/month
    """
    check_outputs(*files_read(Recommend, question), out=out, csv=csv, html=html)
    from gcnsim import api

    given = asked(Recommend, question)
    with progress() as say:
        found = api.recommend(**given, progress=say, notice=notice)
    text = json.dumps(found.payload, indent=2, allow_nan=False) if as_json else str(found)
    writes: list[Callable[[], object]] = [lambda: api.write_json(out, found.payload)] if out else []
    if csv:
        writes.append(lambda: found.to_csv(csv))
    if html:
        writes.append(lambda: found.to_html(html))
    show_and_write(text, *writes)
