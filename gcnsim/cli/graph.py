"""`gcnsim graph`: what is in a graph file, how it splits into partitions, and graphs drawn from a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click
import numpy as np

from gcnsim.cli.generate import command as generate
from gcnsim.graph import Graph, load_graph
from gcnsim.partition import (
    METHODS,
    OBJECTIVES,
    PartitionFacts,
    Partitioning,
    Spread,
    partition_facts,
    partition_graph,
    split,
    write_partition,
)


@click.group("graph")
def group() -> None:
    """Inspect, partition and draw graph files (.npz, .mtx, .graph, edge lists; text may be gzip)."""


group.add_command(generate)


@group.command()
@click.argument("file", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.graph-info/1).")
def info(file: str, as_json: bool) -> None:
    """Print what FILE holds and what was cleaned on loading.

    \b
    Example:
      gcnsim graph info amazon_cs.npz
    """
    loaded = load_graph(file)
    facts = _graph_facts(loaded)
    if as_json:
        click.echo(json.dumps({"schema": "gcnsim.graph-info/1", **facts}, indent=2))
        return
    degree = facts["degree"]
    _columns(
        [
            ("name", loaded.name),
            ("nodes", f"{loaded.nodes:,}"),
            ("edges", f"{facts['edges']:,}"),
            ("degree", f"mean {degree['mean']:.1f}, median {degree['median']:g}, {degree['min']}..{degree['max']:,}"),
            ("isolated nodes", f"{degree['isolated']:,}"),
            ("features", _or_unsaid(loaded.features)),
            ("classes", _or_unsaid(loaded.classes)),
            ("cleaning", str(loaded.cleaning)),
            ("content hash", facts["content_hash"]),
        ]
    )


@group.command()
@click.argument("file", type=click.Path())
@click.option("--parts", type=int, required=True, help="Number of partitions, one per GPU.")
@click.option("--method", default="metis", show_default=True, help=f"One of {', '.join(METHODS)}.")
@click.option("--objective", default="vol", show_default=True, help=f"What METIS minimises: {' or '.join(OBJECTIVES)}.")
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    default=0,
    show_default=True,
    help="Seed of METIS or of the random permutation.",
)
@click.option("--out", type=click.Path(), help="Write the partition to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.graph-partition/1).")
def partition(file: str, parts: int, method: str, objective: str, seed: int, out: str | None, as_json: bool) -> None:
    """Partition the graph in FILE and print how even the parts are and how much crosses between them.

    \b
    Example:
      gcnsim graph partition amazon_cs.npz --parts 4 --out amazon_cs.part
    """
    loaded = load_graph(file)
    if sys.stderr.isatty():
        click.echo(f"partitioning {loaded.nodes:,} nodes into {parts} parts ...", err=True)
    owners = partition_graph(loaded, parts, method, objective, seed)
    facts = partition_facts(split(loaded, owners))
    if out is not None:
        write_partition(out, owners)
    if as_json:
        found = {"method": owners.method, "seed": seed, "graph": loaded.name, "graph_hash": owners.graph_hash}
        click.echo(json.dumps({"schema": "gcnsim.graph-partition/1", **found, **asdict(facts), "out": out}, indent=2))
        return
    _columns(_partition_lines(owners, facts, out))


def _partition_lines(owners: Partitioning, facts: PartitionFacts, out: str | None) -> list[tuple[str, str]]:
    lines = [
        ("graph", owners.graph_name),
        ("method", f"{owners.method}, seed {owners.seed}"),
        ("parts", str(facts.parts)),
        ("inner nodes", _spread(facts.inner)),
        ("boundary nodes", _spread(facts.boundary)),
        ("boundary/inner", f"{facts.boundary_per_inner:.2f}"),
        ("replication", f"{facts.replication:.2f} copies per node"),
        ("edges cut", f"{facts.cut_entries // 2:,}"),
        ("volume", f"{facts.communication_volume:,} rows per layer, all workers"),
    ]
    return [*lines, ("written", out)] if out is not None else lines


def _graph_facts(loaded: Graph) -> dict[str, Any]:
    degrees = loaded.degrees
    return {
        "name": loaded.name,
        "nodes": loaded.nodes,
        "edges": loaded.entries // 2,
        "entries": loaded.entries,
        "degree": {
            "mean": float(degrees.mean()),
            "median": float(np.median(degrees)),
            "min": int(degrees.min()),
            "max": int(degrees.max()),
            "isolated": int(np.count_nonzero(degrees == 0)),
        },
        "features": loaded.features,
        "classes": loaded.classes,
        "cleaning": asdict(loaded.cleaning),
        "content_hash": loaded.content_hash(),
    }


def _columns(rows: Sequence[tuple[str, str]]) -> None:
    width = max(len(label) for label, _ in rows)
    for label, value in rows:
        click.echo(f"{label:<{width}}  {value}")


def _or_unsaid(value: int | None) -> str:
    return "not in the file" if value is None else f"{value:,}"


def _spread(found: Spread) -> str:
    return f"{found.mean:,.0f} per part ({found.least:,}..{found.most:,})"
