"""`gcnsim sweep`: predicts thousands of settings of a scenario into a folder, and prints such results."""

from __future__ import annotations

import json
import os
import re
import shlex
from typing import Any

import click

from gcnsim.cli.ids import warn
from gcnsim.cli.outputs import check_outputs, notice, overwrite_option, print_columns, progress
from gcnsim.cli.questions import columns_option, options_as, options_of, with_fields
from gcnsim.core.clock import TimeLeft
from gcnsim.core.errors import ScenarioError, nearest, plural
from gcnsim.planning.sweep_question import INTERVALS, SAMPLES
from gcnsim.planning.sweep_run import LIMIT
from gcnsim.planning.sweep_work import NAMES, STATES
from gcnsim.scenario.question import PRICES, price_book

MEANT = "run"


class SweepGroup(click.Group):
    """A group whose command `run` need not be named: `gcnsim sweep QUESTION.yaml` is `gcnsim sweep run ...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `run` before arguments that name no command. Raises UsageError for a word that is no file either."""
        if args and args[0] not in (*self.commands, "-h", "--help") and not ctx.resilient_parsing:
            if re.fullmatch(r"[A-Za-z_-]+", args[0]) and args[0][0] != "-" and not os.path.exists(args[0]):
                raise click.UsageError(
                    f"{args[0]!r} is neither a command nor a file; {nearest(args[0], self.commands)}"
                )
            args = [MEANT, *args]
        return super().parse_args(ctx, args)


@click.group("sweep", cls=SweepGroup)
def group() -> None:
    """Predict thousands of settings of a scenario: run, resume, look at the results.

    Without a command, it runs `gcnsim sweep run`, whose --help lists the options.

    Example: gcnsim sweep --axis cluster.bandwidth=5Gbps,10Gbps --out FOLDER
    """


class Axes(click.ParamType[tuple[str, str]]):
    """PATH=VALUES."""

    name = "axis"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Return the path and the text of its values. Raises ScenarioError."""
        path, equals, written = str(value).partition("=")
        if not equals or not written.strip():
            raise ScenarioError(f"--axis {value}: write FIELD=VALUES, e.g. cluster.bandwidth=5Gbps,10Gbps")
        return path.strip(), written.strip()


@group.command(MEANT)
@click.argument("question", required=False, type=click.Path())
@click.option("--out", type=click.Path(), help="Folder for the results; an existing one is resumed.")
@click.option("--axis", multiple=True, type=Axes(), metavar="FIELD=VALUES", help="A field that varies (repeatable).")
@options_as("the base scenario's", "overrides", "transport", "measured_compute")
@click.option("--where", multiple=True, metavar="CONDITION", help="Only points that meet this condition (repeatable).")
@click.option(
    "--constraint",
    multiple=True,
    metavar="CONDITION",
    help="A condition as in --where, or the word `fits`: only points that fit into GPU memory (repeatable).",
)
@click.option("--sample", metavar="KIND:N", help=f"Draw N points instead of all: {', '.join(SAMPLES)}.")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Seed of --sample.  [default: 0]")
@click.option(
    "--interval",
    type=click.Choice(INTERVALS),
    help="full: an estimated 90 % interval (what-if simulates it); none: no interval.  [default: full]",
)
@options_of(PRICES)
@click.option("--dry-run", is_flag=True, help="Only count the points.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=LIMIT,
    show_default=True,
    help="Highest number of points without --yes.",
)
@click.option("--yes", is_flag=True, help="Allow any number of points.")
@click.option("--executor", type=click.Choice(NAMES), default=NAMES[0], show_default=True, help="Where points run.")
@click.option("--scheduler", metavar="ADDRESS", help="Address for --executor dask, e.g. tcp://10.0.0.1:8786.")
@click.option("--address", metavar="ADDRESS", help="Address for --executor ray, e.g. 10.0.0.1:6379.")
@click.option(
    "--processes", type=click.IntRange(min=1), help="Processes, with --executor cores.  [default: one per core]"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def run(
    question: str | None,
    out: str | None,
    axis: tuple[tuple[str, str], ...],
    overrides: tuple[str, ...],
    transport: str | None,
    measured_compute: str | None,
    interval: str | None,
    dry_run: bool,
    limit: int,
    yes: bool,
    executor: str,
    scheduler: str | None,
    address: str | None,
    processes: int | None,
    as_json: bool,
    **filters: Any,
) -> None:
    """Predict every point that the folder does not contain yet.

    QUESTION is a YAML file (docs/sweep.md). Instead of it, or to change it, use --axis and --set.

    Values of an axis: 5Gbps,10Gbps; 0..4; linear(1Gbps,100Gbps,25); log(0.01,1,10). Conditions compare fields:
    "method.tau <= 2 if method.epsilon < 1".

    \b
    Examples:
      gcnsim sweep question.yaml --out results
      gcnsim sweep --axis "cluster.bandwidth=log(1Gbps,100Gbps,20)" --axis method.tau=0..4 --out results
    """
    from gcnsim import api

    book = price_book(filters)
    overrides = with_fields(overrides, transport=transport, measured_compute=measured_compute)
    sweep_question = api.ask(_filtered(question, **filters), _each_once(axis), overrides, interval, book)
    warn(api.sweep_warnings(sweep_question))
    most = None if yes else limit
    if dry_run:
        _say_plan(api.plan_sweep(sweep_question), as_json)
        return
    if out is None:
        raise ScenarioError("--out: is not given; allowed: a new folder, that of this question, or --dry-run")
    _refuse_addresses(executor, scheduler, address)
    with progress() as say:
        left = TimeLeft(None)
        results = api.sweep(
            sweep_question.payload(),
            out=out,
            executor=executor,
            address=scheduler or address,
            processes=processes,
            limit=most,
            progress=lambda done, total: say(
                f"{done:,} of {plural(total, 'point')}{left.text(done, total)}", done / total
            ),
            notice=notice,
        )
    _say_status(results, as_json)
    if not as_json:
        click.echo(f"(gcnsim sweep best {shlex.quote(out)} prints the fastest points)")


def _each_once(axis: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the axes by their fields. Raises ScenarioError for a field that is given twice."""
    axes: dict[str, str] = {}
    for path, written in axis:
        if path in axes:
            raise ScenarioError(f"--axis {path}: is given twice; allowed: once, e.g. {path}={axes[path]},{written}")
        axes[path] = written
    return axes


def _filtered(question: str | None, **filters: Any) -> dict[str, Any]:
    """Return the question with the filters and the sample from the options."""
    from gcnsim.planning.sweep_question import load_question

    found = {} if question is None else load_question(question)
    for option, key in (("where", "where"), ("constraint", "constraints")):
        if filters[option]:
            before = found.get(key, [])
            found[key] = [*before, *filters[option]] if isinstance(before, list) else before
    if filters["sample"] is not None:
        kind, _, count = filters["sample"].partition(":")
        if not re.fullmatch("[0-9]{1,9}", count):
            raise ScenarioError(f"--sample: {filters['sample']!r} is not KIND:N, e.g. {SAMPLES[1]}:500")
        found["sample"] = {"kind": kind, "points": int(count), "seed": filters["seed"] or 0}
    elif filters["seed"] is not None:
        raise ScenarioError("--seed: only valid with --sample; for a scenario's seed, use --set run.seed=N")
    return found


def _refuse_addresses(executor: str, scheduler: str | None, address: str | None) -> None:
    for option, value, name in (("--scheduler", scheduler, "dask"), ("--address", address, "ray")):
        if value is not None and executor != name:
            raise ScenarioError(f"{option}: only valid with --executor {name}; it is {executor}")


def _say_plan(planned: Any, as_json: bool) -> None:
    points = len(planned.points)
    if as_json:
        click.echo(json.dumps({"points": points, "refused": planned.refused}, indent=2))
        return
    refused = f" ({planned.refused:,} contradict themselves)" if planned.refused else ""
    print_columns([("points", f"{points:,}{refused}")])


def _say_status(sweep_state: Any, as_json: bool) -> None:
    counts = sweep_state.status()
    if as_json:
        click.echo(json.dumps(counts, indent=2))
        return
    lines = [("points", f"{counts['points']:,}"), *((state, f"{counts[state]:,}") for state in STATES if counts[state])]
    if counts["left"]:
        lines.append(("left", f"{counts['left']:,}"))
    print_columns(lines)
    for reason, count in list(counts["reasons"].items())[:5]:
        click.echo(f"  {plural(count, 'point')}: {reason}")


@group.command()
@click.argument("folder", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(folder: str, as_json: bool) -> None:
    """Count the points of a sweep by state.

    States: done, refused (with the reasons), does not fit (into GPU memory), lost (its process died several times).

    Example: gcnsim sweep status results
    """
    from gcnsim import api

    _say_status(api.open_sweep(folder), as_json)


_columns = columns_option("Print these columns (as in what-if).")


@group.command()
@click.argument("folder", type=click.Path())
@click.option("--point", type=click.IntRange(min=0), help="Print everything about this point.")
@click.option(
    "--first", type=click.IntRange(min=0), default=0, help="Number of the first point to print.  [default: 0]"
)
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="Print at most this many.")
@_columns
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(folder: str, point: int | None, first: int, top: int, columns: list[str] | None, as_json: bool) -> None:
    """Print the points of a sweep in order, or one of them.

    Example: gcnsim sweep show results --point 7
    """
    from gcnsim import api

    sweep = api.open_sweep(folder)
    if point is not None:
        one = sweep.point(point)
        if as_json:
            click.echo(json.dumps(one, indent=2))
        else:
            print_columns([(name, "-" if value is None else str(value)) for name, value in one.items()])
        return
    records = [entry for entry in sweep.to_arrow().to_pylist() if entry["point"] >= first]
    _print_records(sweep, records[:top], len(records), columns, as_json)


@group.command()
@click.argument("folder", type=click.Path())
@click.option("--by", default="iteration_s", show_default=True, help="Column to sort by.")
@click.option("--descending", is_flag=True, help="Largest value first.")
@click.option("--where", multiple=True, metavar="CONDITION", help="Only points that meet this condition (repeatable).")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Print at most this many.")
@_columns
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--html", type=click.Path(), help="Write an offline page with figures of all points.")
@overwrite_option
def best(
    folder: str,
    by: str,
    descending: bool,
    where: tuple[str, ...],
    top: int,
    columns: list[str] | None,
    as_json: bool,
    html: str | None,
) -> None:
    """Print the fastest points, or the best by another column.

    Conditions compare varying fields or columns: "iteration_s < 0.5".

    Example: gcnsim sweep best results --by cost_per_1000_iterations --top 5
    """
    from gcnsim import api

    check_outputs(folder, html=html)
    sweep = api.open_sweep(folder)
    every = sweep.best(None, by, descending=descending, where=where)
    count = len(every) if where else sweep.status()["done"]
    _print_records(sweep, every[:top], count, columns, as_json)
    if html:
        sweep.to_html(html, by, descending=descending, where=where)


def _print_records(
    results: Any, records: list[dict[str, Any]], count: int, columns: list[str] | None, as_json: bool
) -> None:
    from gcnsim.planning.sweep_work import DONE
    from gcnsim.report.answer.columns import checked
    from gcnsim.report.result import render_points

    keys = None if columns is None else checked(columns)
    if as_json:
        click.echo(json.dumps(records, indent=2))
        return
    done = [record for record in records if record["state"] == DONE]
    click.echo(render_points(done, [axis.path for axis in results.question.axes], keys))
    for record in records:
        if record["state"] != DONE:
            click.echo(f"point {record['point']}: {record['state']}: {record['reason']}")
    if count > len(records):
        click.echo(f"({plural(count - len(records), 'more point')})")


@group.command()
@click.argument("folder", type=click.Path())
@click.option("--to", required=True, type=click.Path(), help="File to write: .csv, .json or .parquet.")
@overwrite_option
def export(folder: str, to: str) -> None:
    """Write the points of a sweep to a file for other programs.

    Example: gcnsim sweep export results --to points.csv
    """
    from gcnsim import api

    check_outputs(os.path.join(folder, "results.parquet"), to=to)
    api.open_sweep(folder).export(to)
