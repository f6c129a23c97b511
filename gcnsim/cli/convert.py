"""`gcnsim graph convert`: any readable graph as a NumPy archive with what its nodes carry, or as an edge list."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np

from gcnsim.cli.generate import Size
from gcnsim.cli.ids import ids_options, map_path, warn, write_map
from gcnsim.cli.outputs import check_outputs
from gcnsim.cli.progress import progress
from gcnsim.cli.tables import print_columns
from gcnsim.errors import FileError
from gcnsim.graph import Graph, graph_warnings, load_graph
from gcnsim.graph.formats.nodes import MASKS, NodeArrays, named_arrays, read_nodes
from gcnsim.graph.formats.write import write_edges, write_npz
from gcnsim.graph.memory import check_memory
from gcnsim.units import format_bytes

_SEPARATORS = {".txt": " ", ".edges": " ", ".tsv": "\t", ".csv": ","}


@click.command("convert")
@click.argument("source", type=click.Path())
@click.argument("out", type=click.Path())
@click.option("--structure", is_flag=True, help="Omit features, labels and split.")
@click.option("--max-memory", type=Size(), metavar="SIZE", help="Refuse what would take more memory, e.g. 6GiB.")
@ids_options("OUT.ids.csv")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.graph-convert/1).")
def command(
    source: str,
    out: str,
    structure: bool,
    max_memory: float | None,
    ids: str,
    ends: tuple[str, str] | None,
    ids_map: str | None,
    as_json: bool,
) -> None:
    """Write the graph in SOURCE, a file or the folder of a published data set, to OUT.

    OUT is .npz, with features, labels and split as training reads them, or an edge list (.txt, .edges, .tsv, .csv),
    which holds the edges alone. Formats: docs/files.md.

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
    nodes_too = suffix == ".npz" and not structure
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
