"""`gcnsim recommend`: which machine and setting to take. Parse, call, print."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from gcnsim.cli.outputs import MEASURED, check_outputs, machine_files, overridden, show_and_write
from gcnsim.cli.pricing import price_book, price_options
from gcnsim.cli.progress import notice, progress
from gcnsim.cli.what_if import Needed, Share, _text, _whole, named, option, rule_options, size_options, sizes_of
from gcnsim.methods import COMPARED


@click.command("recommend")
@click.option("--minimise", default="cost", show_default=True, help="cost, gpus or time.")
@click.option("--target-iteration", metavar="TIME", help="An iteration takes at most this, e.g. 0.5s.")
@click.option("--target-epoch", metavar="TIME", help="An epoch takes at most this.")
@click.option("--target-hours", metavar="TIME", help="The training to --target-accuracy takes at most this, e.g. 10h.")
@click.option("--confidence", metavar="SHARE", help="Chance of meeting the target, at least.  [default: 90%]")
@click.option("--budget", metavar="PRICE", help="The machine costs at most this, e.g. 500USD/month, 10USD/hour.")
@click.option("--hours-per-day", type=float, help="Hours that --budget pays for on each day.  [default: 24]")
@click.option("--max-cost", metavar="AMOUNT", help="The training costs at most this, e.g. 100USD.")
@named("dataset", "Built-in dataset (list: gcnsim catalog list datasets).  [default: reddit]")
@click.option("--graph", type=click.Path(), help="Your own graph file instead.")
@size_options
@option("host", _text, "a host", "Instances of the catalogue, or files (list).  [default: all that have a price]")
@click.option("--measured-compute", type=click.Path(), help=MEASURED)
@option("gpus", _whole, "a whole number", "GPUs (list).  [default: 1 up to four instances, at most 32]")
@option("device", _text, "a device", "GPUs instead of instances (list).")
@option("bandwidth", _text, "a bandwidth", "NIC of a server, with --device (list).  [default: 15Gbps]")
@click.option("--gpus-per-server", type=int, help="With --device, or fewer of an instance's.")
@option("method", _text, "a method", f"all, or methods of the catalogue (list).  [default: {','.join(COMPARED)}]")
@option("tau", _whole, "a whole number of iterations", "Staleness to choose from (list).  [default: 0 to 2]")
@option("epsilon", _text, "a share (0.1 or 10%)", "Sampling rates to choose from (list).  [default: 0.1 to 1]")
@option("cache", _text, "a share (30% or 0.3) or bytes (2GiB)", "Caches to choose from (list).  [default: 0%,10%,30%]")
@rule_options
@named("model", "gcn or graphsage.  [default: the dataset's, else gcn]")
@click.option("--layers", type=int, help="Graph convolutions.  [default: the dataset's, else 4]")
@click.option("--hidden", type=int, help="Hidden width.  [default: the dataset's, else 256]")
@click.option("--target-accuracy", type=Share(), help="Validation accuracy to be reached, e.g. 90%.")
@click.option("--runs", multiple=True, type=click.Path(), help="Recorded run to take iterations from (repeatable).")
@click.option(
    "--target-iterations",
    multiple=True,
    type=Needed(),
    metavar="METHOD=N",
    help="Published or assumed iterations to it, for methods without a run (repeatable).",
)
@named("transport", "Rows between GPUs: direct (NCCL), or staged through the host (gloo).  [default: direct, assumed]")
@price_options
@click.option("--iterations", type=int, default=30, show_default=True, help="Sampled graphs, iterations measured.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of every random draw.")
@click.option("--limit", type=int, default=2000, show_default=True, help="Most settings looked at (Optuna picks).")
@click.option("--processes", type=click.IntRange(min=1), help="Processes to use.  [default: one per core]")
@click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Override a scenario field (repeatable).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.recommend/1).")
@click.option("--out", type=click.Path(), help="Write the JSON to a file, too.")
@click.option("--csv", type=click.Path(), help="Write the table to a CSV file.")
@click.option("--html", type=click.Path(), help="Write an offline page with figures.")
def command(as_json: bool, out: str | None, csv: str | None, html: str | None, **question: Any) -> None:
    """Which machine and setting to take for a target, of hundreds, and how sure that is.

    A recommended setting meets the target with a chance of at least --confidence. It samples no less than
    --min-sampling-rate and is no staler than --max-staleness, unless recorded runs say what is accurate enough.

    \b
    Examples:
      gcnsim recommend --dataset reddit --target-iteration 0.5s
      gcnsim recommend --device t4,a10g --gpus 2,4,8 --minimise time --budget 500USD/month
    """
    read = [question["graph"], question["measured_compute"], *question["runs"], question["prices"]]
    read += [*machine_files(question["device"], question["host"]), *overridden(question["overrides"])]
    check_outputs(*read, out=out, csv=csv, html=html)
    from gcnsim import api

    book = price_book(question)
    needed, sizes = dict(question.pop("target_iterations")), sizes_of(question)
    with progress() as say:
        found = api.recommend(
            **question, sizes=sizes, target_iterations=needed, prices=book, progress=say, notice=notice
        )
    text = json.dumps(found.payload, indent=2, allow_nan=False) if as_json else str(found)
    writes: list[Callable[[], object]] = [lambda: api.write_json(out, found.payload)] if out else []
    if csv:
        writes.append(lambda: found.to_csv(csv))
    if html:
        writes.append(lambda: found.to_html(html))
    show_and_write(text, *writes)
