"""`gcnsim trace`: records which boundary nodes the samples of a partitioned graph need, and describes such a record.

`gcnsim trace cache-curve` prints the hit rates of caches with several policies and sizes on a recorded trace.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from gcnsim.cli.ids import SizeOption, ids_option, partition_option, read_owners, warn
from gcnsim.cli.outputs import bar, check_outputs, overwrite_option, progress, show_and_write
from gcnsim.cli.trace_profile import info, print_access_trace, profile
from gcnsim.core.errors import UnitError
from gcnsim.core.processes import cores
from gcnsim.core.units import fraction
from gcnsim.graph import Graph, graph_notes, load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.load import check_memory
from gcnsim.graph.parts import Partitioning, split
from gcnsim.trace import (
    Replay,
    cache_curve,
    read_trace,
    record_trace,
    write_trace,
)
from gcnsim.workload.samplers import checked_rate, read_norms
from gcnsim.workload.samplers import sampler as sampling_rule


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
    help="static, demand (filled as rows are requested), all, or policies by name (list): random, degree, "
    "degree-ratio, inclusion, inclusion-refresh; fifo, lru, lfu, s3-fifo, sieve, arc, belady (extra `caches`).",
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
    help="Number of graphs between refills of the inclusion-refresh cache.",
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
    help="Order of a graph's requests; matters to demand policies only.",
)
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of random choices and orders."
)
@click.option("--workers", is_flag=True, help="Print a line for each worker too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.cache-curve/1).")
@click.option("--csv", type=click.Path(), help="Write a row for every policy, size and worker.")
@click.option("--html", type=click.Path(), help="Write one offline page with the figure.")
@overwrite_option
def cache_curve_command(
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
    """Replay the trace in FILE; print hit rates of feature caches.

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


@click.group("trace")
def group() -> None:
    """Record and inspect access traces of partitioned graphs."""


for item in (cache_curve_command, profile, info):
    group.add_command(item)


@group.command()
@click.argument("graph", type=click.Path())
@click.option("--parts", type=click.IntRange(min=1), help="Partition GRAPH into this many parts (METIS, volume).")
@partition_option
@click.option("--sampler", default="vr", show_default=True, help="full, uniform, or vr (least variance).")
@click.option("--epsilon", type=float, default=0.1, show_default=True, help="Share of edges kept, in (0, 1].")
@click.option("--iterations", type=click.IntRange(1, 1_000_000), default=30, show_default=True, help="Graphs to draw.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=0,
    show_default=True,
    help="Seed of the partition and of the draws.",
)
@click.option("--norms", type=click.Path(), help="Node norms of a training run, for vr.  [default: all 1]")
@click.option("--processes", type=click.IntRange(min=1), help="Parts drawn at the same time.  [default: one per core]")
@ids_option
@click.option(
    "--max-memory", type=SizeOption(), metavar="SIZE", help="Refuse work that needs more memory than this, e.g. 6GiB."
)
@click.option("--out", type=click.Path(), required=True, help="Trace file to write.")
@overwrite_option
def record(
    graph: str,
    parts: int | None,
    partition: str | None,
    sampler: str,
    epsilon: float,
    iterations: int,
    seed: int,
    norms: str | None,
    processes: int | None,
    max_memory: float | None,
    ids: str,
    ends: tuple[str, str] | None,
    out: str,
) -> None:
    """Record an access trace of GRAPH. Samples graphs and writes which boundary nodes each of them needs.

    \b
    Example:
      gcnsim trace record amazon_cs.npz --parts 4 --epsilon 0.1 --out amazon_cs.trace
    """
    sampling_rule(sampler)
    checked_rate(epsilon)
    check_outputs(graph, partition, norms, out=out)
    if (parts is None) == (partition is None):
        raise click.UsageError("give either --parts or --partition")
    check_memory(graph, max_memory, partition=parts is not None)
    with progress() as say:
        say(f"loading {graph}")
        loaded = load_graph(graph, ids, ends)
        notes = graph_notes(loaded)
        owners = _owners(loaded, parts, partition, seed, say)
        weights = None if norms is None else read_norms(norms, loaded)
        shares = split(loaded, owners)
        entries = loaded.entries
        del loaded
        trace = record_trace(
            shares,
            owners,
            sampler=sampler,
            epsilon=epsilon,
            iterations=iterations,
            seed=seed,
            norms=weights,
            on_entries=bar(f"drawing {iterations:,} graphs", iterations * entries, say),
            processes=processes or cores(),
        )
    write_trace(out, trace)
    print_access_trace(trace, ("written", out))
    warn(notes)


def _owners(
    loaded: Graph, parts: int | None, partition: str | None, seed: int, say: Callable[[str], None]
) -> Partitioning:
    if partition is not None:
        return read_owners(partition, loaded)
    assert parts is not None
    say(f"partitioning {loaded.nodes:,} nodes")
    return partition_graph(loaded, parts, seed=seed)
