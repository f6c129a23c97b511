"""`gcnsim trace profile` and `trace info`: write boundary profiles of partitions, and describe profiles and traces."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from typing import Any

import click

from gcnsim.cli.ids import SizeOption, ids_option, partition_option, read_owners, warn
from gcnsim.cli.outputs import check_outputs, overwrite_option, print_columns, print_table, progress
from gcnsim.core.container import kind_of
from gcnsim.core.errors import ScenarioError
from gcnsim.core.processes import cores
from gcnsim.graph import Graph, graph_notes, load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.describe import partition_scatter
from gcnsim.graph.generate import block_model, surrogate_facts
from gcnsim.graph.load import check_memory, check_partition_memory
from gcnsim.graph.parts import Partitioning, split
from gcnsim.trace import AccessTrace, TraceOrigin, WorkerSummary, read_trace, summarise
from gcnsim.trace.packaged_profiles import Interpolation, interpolation, profile_at
from gcnsim.trace.stored_profile import (
    ProfileOrigin,
    StoredProfile,
    enlarged,
    read_profile,
    stored_profile,
    write_profile,
)
from gcnsim.workload.draws import NODES


@click.command("profile")
@click.argument("graph", required=False, type=click.Path())
@click.option("--dataset", help="Generate the surrogate of this dataset instead of reading GRAPH.")
@click.option("--gpus", type=click.IntRange(min=1), help="Partition into this many parts (METIS, volume).")
@partition_option
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="Seed of METIS.")
@click.option(
    "--scale",
    type=click.FloatRange(0.001, 1.0),
    default=1.0,
    show_default=True,
    help="Generate the surrogate with this share of its nodes and scale the counts up.",
)
@ids_option
@click.option(
    "--max-memory", type=SizeOption(), metavar="SIZE", help="Refuse work that needs more memory than this, e.g. 6GiB."
)
@click.option(
    "--processes", type=click.IntRange(min=1), default=1, show_default=True, help="Parts described at the same time."
)
@click.option("--out", type=click.Path(), required=True, help="Profile file to write.")
@overwrite_option
def profile(
    graph: str | None,
    dataset: str | None,
    gpus: int | None,
    partition: str | None,
    seed: int,
    scale: float,
    max_memory: float | None,
    ids: str,
    ends: tuple[str, str] | None,
    processes: int,
    out: str,
) -> None:
    """Write the boundary profile of GRAPH. It says what each part requests: enough to predict without the graph.

    \b
    Examples:
      gcnsim trace profile amazon_cs.npz --gpus 4 --out amazon_cs.profile
      gcnsim trace profile --dataset yelp --gpus 6 --out yelp-6.profile
    """
    check_outputs(graph, partition, out=out)
    _check(graph, dataset, gpus, partition, scale)
    with progress() as say:
        if dataset is None:
            check_memory(graph or "", max_memory, partition=gpus is not None)
            say(f"loading {graph}")
            loaded = load_graph(graph or "", ids, ends)
        else:
            say(f"generating the surrogate of {dataset}")
            loaded = _drawn(dataset, scale, max_memory)
        notes = graph_notes(loaded) if dataset is None else ()
        say(f"partitioning {loaded.nodes:,} nodes")
        owners = _owners(loaded, gpus, partition, seed)
        parts = split(loaded, owners)
        del loaded
        say(f"describing {len(parts)} parts")
        stored = stored_profile(parts, owners, processes=processes)
    if dataset is not None:
        stored = _of_surrogate(enlarged(stored, scale), dataset)
    write_profile(out, stored)
    print_profile(stored, ("written", out))
    warn(notes)


@click.command("info")
@click.argument("file", required=False, type=click.Path())
@click.option("--dataset", help="The built-in profile of this dataset, instead of FILE.")
@click.option("--gpus", type=click.IntRange(min=1), help="Number of parts, with --dataset.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (gcnsim.trace-info/1 or gcnsim.profile-info/1).")
def info(file: str | None, dataset: str | None, gpus: int | None, as_json: bool) -> None:
    """Describe the trace or boundary profile in FILE. Instead of FILE, --dataset and --gpus name a built-in profile.

    \b
    Examples:
      gcnsim trace info amazon_cs.trace
      gcnsim trace info --dataset reddit --gpus 6 --json
    """
    if (file is None) == (dataset is None):
        raise click.UsageError("give either FILE or --dataset")
    if (dataset is None) != (gpus is None):
        raise click.UsageError("--dataset and --gpus go together")
    if file is not None and _is_trace(file):
        _print_trace(file, as_json)
        return
    if file is not None:
        stored, note = read_profile(file), file
    else:
        assert dataset is not None
        assert gpus is not None
        stored, note = _known(dataset, gpus)
    if as_json:
        between = None if dataset is None or gpus is None else interpolation(dataset, gpus)
        click.echo(json.dumps(_facts(stored, note, between), indent=2))
        return
    print_profile(stored, ("from", note))


def _print_trace(file: str, as_json: bool) -> None:
    """Print the origin of the trace in `file` and what its graphs need."""
    stored = read_trace(file)
    if not as_json:
        print_access_trace(stored)
        return
    facts = {
        "schema": "gcnsim.trace-info/1",
        "origin": asdict(stored.origin),
        "iterations": stored.iterations,
        "parts": stored.parts,
        "expected_rows": stored.expected_rows,
        "workers": [asdict(worker) for worker in summarise(stored)],
    }
    click.echo(json.dumps(facts, indent=2))


def print_access_trace(shown: AccessTrace, *more: tuple[str, str]) -> None:
    """Print the origin of a trace, what its graphs need, and a table of its workers. more: further lines."""
    lines = [
        *_provenance(shown.origin),
        ("graphs", f"{shown.iterations} on {shown.parts} workers"),
        ("rows", f"{shown.expected_rows:,.1f} expected per graph and layer, all workers"),
        *more,
    ]
    print_columns(lines)
    heads = ("worker", "inner", "boundary", "rows needed (mean)", "least..most per owner", "inclusion 10/50/90 %")
    print_table(heads, list(map(_row, summarise(shown))), left=0)


def _provenance(origin: TraceOrigin) -> list[tuple[str, str]]:
    norms = "all 1" if origin.norms_hash is None else f"SHA-256 {origin.norms_hash[:12]}"
    knob = "rate" if origin.sampler == NODES else "epsilon"
    return [
        ("graph", f"{origin.graph_name} (SHA-256 {origin.graph_hash[:12]})"),
        ("partition", f"{origin.partition_method}, seed {origin.partition_seed}"),
        ("sampler", f"{origin.sampler}, {knob} {origin.epsilon:g}, seed {origin.seed}"),
        ("norms", norms),
        ("floored", f"{origin.floored:,} edge probabilities raised to the lowest allowed value"),
    ]


def _row(worker: WorkerSummary) -> tuple[str, ...]:
    others = [rows for owner, rows in enumerate(worker.rows_by_owner) if owner != worker.rank] or [0.0]
    return (
        str(worker.rank),
        *(f"{count:,}" for count in (worker.inner_nodes, worker.boundary_nodes)),
        f"{worker.rows:,.1f}",
        f"{min(others):,.1f}..{max(others):,.1f}",
        f"{worker.inclusion_low:.3f}/{worker.inclusion_median:.3f}/{worker.inclusion_high:.3f}",
    )


def print_profile(stored: StoredProfile, last: tuple[str, str]) -> None:
    """Print the profile as lines, ending with `last`, and a table of its workers."""
    origin, facts = stored.origin, _facts(stored, "")
    scale = "" if origin.scale == 1.0 else f", {100 * origin.scale:g} % of the nodes, counts scaled up"
    missed = ", ".join(f"{100 * error:+.1f} % at {parts} parts" for parts, error in (origin.residuals or {}).items())
    lines = [
        ("graph", _graph(origin, scale)),
        (
            "partition",
            "assumed" if origin.source == "outline" else f"{origin.partition_method}, seed {origin.partition_seed}",
        ),
        *_other_seeds(stored),
        ("parts", f"{stored.parts}"),
        ("inner", f"{facts['inner_nodes_mean']:,.0f} nodes per worker"),
        ("boundary", f"{facts['boundary_nodes_mean']:,.0f} nodes per worker, max {facts['boundary_nodes_max']:,}"),
        ("cross edges", f"{facts['cross_edges_mean']:.1f} per boundary node"),
        ("residuals", f"boundary against published counts: {missed or 'none published'}"),
        last,
    ]
    print_columns(lines)
    sizes = zip(stored.inner_nodes, stored.boundary_nodes, stored.entries, stored.boundary_entries, strict=True)
    rows = [(str(rank), *(f"{count:,}" for count in counts)) for rank, counts in enumerate(sizes)]
    print_table(("worker", "inner", "boundary", "entries", "cross entries"), rows, left=0)


def _scatter(stored: StoredProfile) -> dict[str, tuple[float, float]] | None:
    """Return the 90 % spread of other partitions of the dataset, relative to this one; None for a user's graph."""
    if stored.origin.source not in ("surrogate", "interpolated"):
        return None
    scatter = partition_scatter(stored.origin.name, stored.parts)
    return {name: scatter.factors(name) for name in ("boundary_mean", "boundary_largest", "cross_entries")}


def _other_seeds(stored: StoredProfile) -> list[tuple[str, str]]:
    scatter = _scatter(stored)
    if scatter is None:
        return []
    low, high = (100 * (factor - 1.0) for factor in scatter["boundary_largest"])
    return [
        ("other seeds", f"{low:+.0f} % to {high:+.0f} % boundary nodes of the largest worker, in 90 % of partitions")
    ]


def _graph(origin: ProfileOrigin, scale: str) -> str:
    if origin.source == "graph":
        return f"{origin.name} (SHA-256 {origin.graph_hash[:12]}{scale})"
    if origin.source == "interpolated":
        return f"surrogate of {origin.name}, interpolated, not partitioned{scale}"
    whole = f"{origin.source} of {origin.name}"
    return f"{whole} (SHA-256 {origin.graph_hash[:12]}{scale})" if origin.graph_hash else f"{whole}, not drawn"


def _facts(stored: StoredProfile, note: str, between: Interpolation | None = None) -> dict[str, Any]:
    boundary = stored.boundary_nodes
    return {
        "schema": "gcnsim.profile-info/1",
        "parts": stored.parts,
        "inner_nodes_mean": float(stored.inner_nodes.mean()),
        "boundary_nodes_mean": float(boundary.mean()),
        "boundary_nodes_max": int(boundary.max()),
        "cross_edges_mean": stored.cross_edges_mean,
        "cross_entries_mean": float(stored.boundary_entries.mean()),
        "entries_mean": float(stored.entries.mean()),
        "source": stored.origin.source,
        "note": note,
        "interpolated": None if between is None else asdict(between),
        "residuals": dict(stored.origin.residuals or {}),
        "origin": asdict(stored.origin),
        "other_partitions": _scatter(stored),
    }


def _known(dataset: str, gpus: int) -> tuple[StoredProfile, str]:
    """Return the shipped profile. Raises ScenarioError, with the available names, if there is none."""
    from gcnsim.workload import dataset as published

    published(dataset)
    return profile_at(dataset, gpus)


def _is_trace(file: str) -> bool:
    return kind_of(file) != "profile"


def _check(graph: str | None, dataset: str | None, gpus: int | None, partition: str | None, scale: float) -> None:
    if math.isnan(scale):
        raise ScenarioError("--scale: nan is not allowed; 0.001 to 1")
    if (graph is None) == (dataset is None):
        raise click.UsageError("give either GRAPH or --dataset")
    if (gpus is None) == (partition is None):
        raise click.UsageError("give either --gpus or --partition")
    if dataset is not None and partition is not None:
        raise ScenarioError("--partition: only valid with GRAPH; --gpus partitions a surrogate")
    if dataset is None and scale != 1.0:
        raise ScenarioError(f"--scale: {scale:g} is only valid with --dataset, for a surrogate")


def _drawn(dataset: str, scale: float, max_memory: float | None) -> Graph:
    """Return the surrogate with a share of its nodes: the same degrees and communities."""
    facts = surrogate_facts(dataset)
    model = replace(facts.model, nodes=round(facts.model.nodes * scale), edges=round(facts.model.edges * scale))
    check_partition_memory(f"{dataset}-surrogate", model.nodes, 2 * model.edges, max_memory)
    return block_model(model, facts.seed, f"{dataset}-surrogate", max_memory=max_memory, processes=cores())


def _owners(loaded: Graph, gpus: int | None, partition: str | None, seed: int) -> Partitioning:
    if partition is not None:
        return read_owners(partition, loaded)
    assert gpus is not None
    return partition_graph(loaded, gpus, seed=seed)


def _of_surrogate(stored: StoredProfile, dataset: str) -> StoredProfile:
    facts = surrogate_facts(dataset)
    degree = 2.0 * facts.model.edges / facts.model.nodes
    share = stored.cross_edges_mean / degree
    residuals = {str(row.parts): row.residual for row in facts.rows}
    for row in facts.rows:
        if row.parts == stored.parts:
            residuals[str(row.parts)] = float(stored.boundary_nodes.mean()) / row.published - 1.0
    origin = replace(
        stored.origin,
        source="surrogate",
        name=dataset,
        surrogate_seed=facts.seed,
        model=asdict(facts.model),
        residuals={parts: round(error, 4) for parts, error in residuals.items()},
        cross_range=(min(1.0, facts.cross_edges.low / share), max(1.0, facts.cross_edges.high / share)),
    )
    return replace(stored, origin=origin)
