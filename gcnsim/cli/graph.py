"""`gcnsim graph`: inspects a graph file, partitions it, converts it, and draws graphs from a model.

`gcnsim graph convert` writes any readable graph as a NumPy archive with the arrays of its nodes, or as an edge list.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from gcnsim.cli.ids import SizeOption, generate, ids_options, map_path, warn, write_map
from gcnsim.cli.outputs import check_outputs, overwrite_option, print_columns, print_table, progress
from gcnsim.cli.partition import command as partition
from gcnsim.core.errors import FileError
from gcnsim.core.units import format_bytes
from gcnsim.graph import Graph, graph_warnings, load_graph
from gcnsim.graph.describe import components, degree_bins, degree_percentiles, homophily
from gcnsim.graph.formats.layouts import DglFacts, DglFolder
from gcnsim.graph.formats.nodes import MASKS, NodeArrays, check_features, named_arrays, read_nodes
from gcnsim.graph.load import check_memory, write_edges, write_npz

_SEPARATORS = {".txt": " ", ".edges": " ", ".tsv": "\t", ".csv": ","}


@click.command("convert")
@click.argument("source", type=click.Path())
@click.argument("out", type=click.Path())
@click.option(
    "--max-memory", type=SizeOption(), metavar="SIZE", help="Refuse work that needs more memory than this, e.g. 6GiB."
)
@ids_options("OUT.ids.csv")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.graph-convert/1).")
@overwrite_option
def convert(
    source: str,
    out: str,
    max_memory: float | None,
    ids: str,
    ends: tuple[str, str] | None,
    ids_map: str | None,
    as_json: bool,
) -> None:
    """Convert the graph in SOURCE to OUT. SOURCE is a file or the folder of a published dataset.

    OUT is .npz, with the features, labels and split that training reads, or an edge list (.txt, .edges, .tsv, .csv)
    without them. Formats: docs/files.md.

    \b
    Examples:
      gcnsim graph convert ogbn_products ogbn_products.npz
      gcnsim graph convert friends.csv friends.npz --ids names --ids-map names.csv
    """
    suffix = Path(out).suffix.lower()
    if suffix not in (".npz", *_SEPARATORS):
        raise FileError(f"{out}: cannot write {suffix!r}; known: {', '.join(sorted(['.npz', *_SEPARATORS]))}")
    named = map_path(ids, ids_map, out)
    check_outputs(source, out=out, ids_map=named)
    nodes_too = suffix == ".npz"
    check_memory(source, max_memory, features=nodes_too)
    with progress() as say:
        say(f"loading {source}")
        loaded = load_graph(source, ids, ends)
        held = read_nodes(source, loaded.nodes) if nodes_too else NodeArrays()
        say(f"writing {out}")
        if suffix == ".npz":
            write_npz(out, loaded, named_arrays(held))
        else:
            write_edges(out, loaded, separator=_SEPARATORS[suffix])
        write_map(named, loaded)
    _print(loaded, held, nodes_too, out, named, as_json)
    warn(graph_warnings(loaded))


def _print(loaded: Graph, held: NodeArrays, nodes_too: bool, out: str, named: str | None, as_json: bool) -> None:
    features, labels = held.features, held.labels
    facts: dict[str, Any] = {
        "name": loaded.name,
        "nodes": loaded.nodes,
        "edges": loaded.entries // 2,
        "features": None if features is None else int(features.shape[1]),
        "labels": None if labels is None else [int(size) for size in labels.shape],
        "masks": None
        if held.masks is None
        else {name: int(np.count_nonzero(mask)) for name, mask in zip(MASKS, held.masks, strict=True)},
        "cleaning": asdict(loaded.cleaning),
        "content_hash": loaded.content_hash(),
        "out": out,
        "ids_map": named,
        "bytes": os.stat(out).st_size,
    }
    if as_json:
        click.echo(json.dumps({"schema": "gcnsim.graph-convert/1", **facts}, indent=2))
        return
    absent = "not in the source" if nodes_too else "left out"
    sparse = "" if features is None or isinstance(features, np.ndarray) else f", sparse, {features.nnz:,} values"
    masks = facts["masks"]
    print_columns(
        [
            ("name", loaded.name),
            ("nodes", f"{loaded.nodes:,}"),
            ("edges", f"{facts['edges']:,}"),
            ("features", absent if features is None else f"{facts['features']:,} per node{sparse}"),
            ("labels", absent if labels is None else f"{'several' if labels.ndim == 2 else 'one'} per node"),
            ("split", absent if masks is None else ", ".join(f"{name[:-5]} {n:,}" for name, n in masks.items())),
            *([("read as", "; ".join(held.notes))] if held.notes else []),
            ("cleaning", str(loaded.cleaning)),
            ("content hash", facts["content_hash"]),
            ("written", f"{out}, {format_bytes(facts['bytes'])}"),
            *([] if named is None else [("ids", named)]),
        ]
    )


@click.group("graph")
def group() -> None:
    """Inspect, partition, convert and generate graphs.

    Reads arrays, edge lists, .mtx, .graph and folders of published datasets."""


@group.command()
@click.argument("file", type=click.Path())
@click.option(
    "--max-memory", type=SizeOption(), metavar="SIZE", help="Refuse work that needs more memory than this, e.g. 6GiB."
)
@ids_options()
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.graph-info/1).")
@overwrite_option
def info(
    file: str, max_memory: float | None, ids: str, ends: tuple[str, str] | None, ids_map: str | None, as_json: bool
) -> None:
    """Describe the graph in FILE, and what loading changed. FILE may be the folder of a published dataset.

    Prints degrees, connected components, and homophily if each node has one class. For a folder that DGL partitioned,
    prints the contents of its JSON file.

    \b
    Examples:
      gcnsim graph info amazon_cs.npz
      gcnsim graph info friends.csv --ids names
    """
    named = map_path(ids, ids_map)
    parted = DglFolder.found(Path(file)) if Path(file).is_dir() else None
    if parted is not None:
        _print_dgl(parted.facts(), as_json)
        return
    check_outputs(file, ids_map=named)
    check_memory(file, max_memory)
    with progress() as say:
        say(f"loading {file}")
        loaded = load_graph(file, ids, ends)
        held = read_nodes(file, loaded.nodes, features=False)
        check_features(file)
        say("counting components")
        facts = _graph_facts(loaded, held)
    if as_json:
        click.echo(json.dumps({"schema": "gcnsim.graph-info/1", **facts}, indent=2))
    else:
        _print_graph(loaded, facts)
    warn(facts["warnings"])
    write_map(named, loaded)


for item in (partition, convert, generate):
    group.add_command(item)


def _graph_facts(loaded: Graph, held: NodeArrays) -> dict[str, Any]:
    degrees = loaded.degrees
    single = held.labels if held.labels is not None and held.labels.ndim == 1 else None
    alike = homophily(loaded, single) if single is not None else None
    masks = dict(zip(MASKS, held.masks, strict=True)) if held.masks is not None else None
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
        "degree_percentiles": degree_percentiles(loaded),
        "degree_distribution": [asdict(degree_bin) for degree_bin in degree_bins(loaded)],
        "components": asdict(components(loaded)),
        "features": loaded.features,
        "classes": loaded.classes,
        "homophily": asdict(alike) if alike is not None else None,
        "masks": {name: int(np.count_nonzero(mask)) for name, mask in masks.items()} if masks is not None else None,
        "notes": list(held.notes),
        "cleaning": asdict(loaded.cleaning),
        "unused_ids": loaded.unused_ids,
        "warnings": list(graph_warnings(loaded)),
        "content_hash": loaded.content_hash(),
    }


def _print_graph(loaded: Graph, facts: dict[str, Any]) -> None:
    degree, pieces, masks = facts["degree"], facts["components"], facts["masks"]
    print_columns(
        [
            ("name", loaded.name),
            ("nodes", f"{loaded.nodes:,}"),
            ("edges", f"{facts['edges']:,}"),
            ("degree", f"mean {degree['mean']:.1f}, median {degree['median']:g}, {degree['min']}..{degree['max']:,}"),
            ("isolated nodes", f"{degree['isolated']:,}"),
            ("components", f"{pieces['count']:,}, the largest with {pieces['largest']:,} nodes"),
            ("features", _or_unknown(loaded.features)),
            ("classes", _or_unknown(loaded.classes)),
            ("homophily", _homophily(facts)),
            ("split", ", ".join(f"{name[:-5]} {n:,}" for name, n in masks.items()) if masks else "not in the file"),
            *([("read as", "; ".join(facts["notes"]))] if facts["notes"] else []),
            ("cleaning", str(loaded.cleaning)),
            ("content hash", facts["content_hash"]),
        ]
    )
    click.echo()
    rows = [
        (
            f"{entry['least']:,}" if entry["least"] == entry["most"] else f"{entry['least']:,}..{entry['most']:,}",
            f"{entry['nodes']:,}",
            f"{entry['nodes'] / loaded.nodes:.1%}",
            f"{entry['entries'] / loaded.entries:.1%}",
        )
        for entry in facts["degree_distribution"]
    ]
    print_table(("degree", "nodes", "of nodes", "of entries"), rows)


def _homophily(facts: dict[str, Any]) -> str:
    measured = facts["homophily"]
    if measured is None:
        return "unknown: no classes" if facts["classes"] is None else "not computed: needs one class per node"
    beyond = "" if measured["adjusted"] is None else f", {measured['adjusted']:.3f} adjusted for class sizes"
    return f"{measured['edge']:.3f} of {measured['edges']:,} edges{beyond}"


def _print_dgl(facts: DglFacts, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"schema": "gcnsim.graph-dgl/1", **asdict(facts)}, indent=2))
        return
    print_columns(
        [
            ("name", facts.name),
            ("layout", f"partitioned by DGL ({facts.method}), {facts.halo_hops} hops of other parts' nodes"),
            ("nodes", f"{facts.nodes:,}"),
            ("edges", f"{facts.edges:,}, each direction counted"),
            ("parts", str(facts.parts)),
            ("inner nodes", _owned(facts.inner_nodes, "node_map")),
            ("edges owned", _owned(facts.inner_edges, "edge_map")),
            ("missing", ", ".join(facts.missing) or "nothing"),
            ("boundary nodes", f"in {facts.edges_in}"),
        ]
    )


def _owned(counts: tuple[int, ...] | None, key: str) -> str:
    return f"in the file that {key} names" if counts is None else ", ".join(f"{count:,}" for count in counts)


def _or_unknown(value: int | None) -> str:
    return "not in the file" if value is None else f"{value:,}"
