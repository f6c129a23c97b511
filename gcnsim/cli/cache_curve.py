"""`gcnsim trace cache-curve`: what caches of several rules and sizes would have answered of a recorded trace."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from gcnsim.cli.outputs import check_outputs, show_and_write
from gcnsim.cli.progress import progress
from gcnsim.errors import UnitError
from gcnsim.trace import Replay, cache_curve, read_trace
from gcnsim.units import fraction


class Listed(click.ParamType[list[Any]]):
    """Values separated by commas."""

    name = "list"

    def __init__(self, kind: Callable[[str], Any]) -> None:
        self.kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[Any]:
        """The values of the list. Raises UnitError naming the option."""
        try:
            return [self.kind(text.strip()) for text in str(value).split(",")]
        except UnitError as error:
            raise UnitError(f"{param.opts[0] if param else ''}: {error}") from None


@click.command("cache-curve")
@click.argument("file", type=click.Path())
@click.option(
    "--policy",
    type=Listed(str),
    default="static",
    show_default=True,
    help="static, demand, all, or rules (list): random, degree, degree-ratio, inclusion, inclusion-refresh; fifo, lru,"
    " lfu, s3-fifo, sieve, arc, belady (need the extra gcnsim[caches]).",
)
@click.option(
    "--size",
    type=Listed(fraction),
    default="1%,5%,10%,30%,50%",
    show_default=True,
    help="Cached share of every worker's boundary nodes (list).",
)
@click.option(
    "--refresh",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Graphs after which inclusion-refresh fills its cache again.",
)
@click.option(
    "--warm-up",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Graphs at the start that are not counted.",
)
@click.option(
    "--order",
    type=click.Choice(["random", "index"]),
    default="random",
    show_default=True,
    help="Order of the requests of a graph, for demand policies.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of random choices and orders."
)
@click.option("--workers", is_flag=True, help="Print a line for each worker too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.cache-curve/1).")
@click.option("--csv", type=click.Path(), help="Write a row for every rule, size and worker.")
@click.option("--html", type=click.Path(), help="Write one offline page with the figure.")
def command(
    file: str,
    policy: list[str],
    size: list[float],
    refresh: int,
    warm_up: int,
    order: str,
    seed: int,
    workers: bool,
    as_json: bool,
    csv: str | None,
    html: str | None,
) -> None:
    """Replay the trace in FILE against feature caches and print their hit rates.

    \b
    Examples:
      gcnsim trace cache-curve amazon_cs.trace
      gcnsim trace cache-curve amazon_cs.trace --policy all --size 10%,30% --html curve.html
    """
    from gcnsim.report.cache_curve import (
        cache_curve_payload,
        render_cache_curve,
        write_cache_curve_csv,
        write_cache_curve_html,
    )

    check_outputs(file, csv=csv, html=html)
    how = Replay(refresh=refresh, warm_up=warm_up, order=order, seed=seed)
    stored = read_trace(file)
    with progress() as say:
        curve = cache_curve(
            stored, policy, size, how, path=file, on_worker=lambda rank: say(f"worker {rank} of {stored.parts}")
        )
    writes: list[Callable[[], object]] = []
    if csv:
        writes.append(lambda: write_cache_curve_csv(csv, curve))
    if html:
        writes.append(lambda: write_cache_curve_html(html, curve))
    if as_json:
        text = json.dumps(cache_curve_payload(curve), indent=2, allow_nan=False)
    else:
        text = render_cache_curve(curve, workers=workers)
    show_and_write(text, *writes)
