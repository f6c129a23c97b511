"""Shared options of commands that read a graph file (ids and columns of an edge list, `--partition`); `graph generate`.

Notes on what was read are printed as warnings. `--partition` takes an existing partition in any supported format. A
graph is generated from a model, or as the surrogate of a published dataset.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from gcnsim.cli.outputs import check_outputs, overwrite_option, print_columns, progress
from gcnsim.core.errors import FileError, GraphError, ScenarioError, UnitError, nearest
from gcnsim.core.processes import cores
from gcnsim.core.units import format_bytes, nbytes
from gcnsim.graph import IDS, Graph, two_columns
from gcnsim.graph.generate import (
    BlockModel,
    block_model,
    memory_needed,
    surrogate,
    surrogate_facts,
    surrogates,
)
from gcnsim.graph.load import write_ids, write_npz
from gcnsim.graph.owners import open_partition
from gcnsim.graph.parts import Partitioning

Function = TypeVar("Function", bound=Callable[..., Any])

ENDS = "Columns of an edge list that hold the two ends, by name or number from 1.  [default: by the header]"
HELP = "Node ids in an edge list: numbers, compact (integers with gaps, to be renumbered), or names."


class EndColumns(click.ParamType[tuple[str, str]]):
    """Two columns of an edge list, as in `source,target` or `1,3`."""

    name = "columns"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """Both columns. Raises ScenarioError naming the option."""
        return two_columns(str(value), "--ends")


def ids_option(function: Function) -> Function:
    """Add --ids and --ends to a command."""
    with_ends = click.option("--ends", type=EndColumns(), metavar="COLUMN,COLUMN", help=ENDS)(function)
    return click.option("--ids", type=click.Choice(IDS), default=IDS[0], show_default=True, help=HELP)(with_ends)


def ids_options(default: str = "none") -> Callable[[Function], Function]:
    """Return a decorator that adds --ids, --ends and --ids-map. default: where the map is written without --ids-map, in
    words.
    """
    words = f"Write the node number of each id, as CSV.  [default: {default}]"

    def with_both(function: Function) -> Function:
        return ids_option(click.option("--ids-map", type=click.Path(), help=words)(function))

    return with_both


def map_path(ids: str, ids_map: str | None, out: str | None = None) -> str | None:
    """Return where to write the map: --ids-map, else next to `out`. Raises ScenarioError if there are no ids to map."""
    if ids == IDS[0]:
        if ids_map is not None:
            raise ScenarioError(
                f"--ids-map: only valid with --ids {' or '.join(IDS[1:])}; node numbers stay as they are"
            )
        return None
    return ids_map if ids_map is not None or out is None else f"{out}.ids.csv"


def write_map(path: str | None, graph: Graph) -> None:
    """Write the map of a renumbered graph. Raises FileError."""
    if path is not None and graph.original_ids is not None:
        write_ids(path, graph.original_ids)


def warn(lines: Iterable[str]) -> None:
    """Print each line as a note on stderr."""
    for line in lines:
        click.echo(f"note: {line}", err=True)


partition_option: Final = click.option(
    "--partition",
    type=click.Path(),
    help="Partition to use: from gcnsim graph partition, owners (.npy, or one per line), or a DGL folder.",
)


def read_owners(path: str, graph: Graph) -> Partitioning:
    """Return the partition of `graph` stored at `path`; print the reader's notes on stderr. Raises FileError."""
    partitioning = open_partition(path, graph)
    warn([partitioning.note] * bool(partitioning.note))
    return partitioning


_NUMBERS = {"int": "a whole number", "float": "a number"}
BLOCK = "block"


class SizeOption(click.ParamType[float]):
    """A number of bytes, written with its unit."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The bytes. Raises UnitError naming the option."""
        try:
            return nbytes(value)
        except UnitError as error:
            raise UnitError(f"--max-memory: {error}") from None


@click.command("generate")
@click.argument("model")
@click.option("--nodes", type=click.IntRange(2, 2**31 - 1), help="Number of nodes (block).")
@click.option("--edges", type=click.IntRange(min=1), help="Exact number of undirected edges (block).")
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="A parameter (block; repeatable).")
@click.option("--seed", type=click.IntRange(0, 2**31 - 1), help="Random seed.  [default: the surrogate's own, else 0]")
@click.option(
    "--max-memory", type=SizeOption(), metavar="SIZE", help="Refuse work that needs more memory than this, e.g. 6GiB."
)
@click.option("--out", type=click.Path(), required=True, help="Graph file to write (.npz).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON (schema gcnsim.graph-generate/1).")
@overwrite_option
def generate(
    model: str,
    nodes: int | None,
    edges: int | None,
    settings: Sequence[str],
    seed: int | None,
    max_memory: float | None,
    out: str,
    as_json: bool,
) -> None:
    """Generate a graph from MODEL and write it. MODEL is block, or the name of a dataset, for its surrogate.

    The same seed gives the same graph. Parameters and surrogates: docs/surrogates.md.

    \b
    Example:
      gcnsim graph generate block --nodes 10000 --edges 200000 --set communities=16 --out drawn.npz
    """
    check_outputs(out=out)
    if Path(out).suffix.lower() != ".npz":
        raise FileError(f"{out}: cannot write {Path(out).suffix!r}; allowed: .npz (gcnsim graph convert writes others)")
    sizes = {"--nodes": nodes, "--edges": edges, "--set": settings or None}
    _refuse_unused(model, [name for name, value in sizes.items() if value is not None])
    with progress() as say:
        if model == BLOCK:
            assert nodes is not None
            assert edges is not None
            blocks = _with(BlockModel(nodes, edges), settings)
            graph = block_model(blocks, seed or 0, max_memory=max_memory, processes=cores(), say=say)
        else:
            seed = surrogate_facts(model).seed if seed is None else seed
            graph = surrogate(model, seed, max_memory=max_memory, processes=cores(), say=say)
        say(f"writing {out}")
        write_npz(out, graph)
    _print(graph, model, seed or 0, out, as_json)


def _refuse_unused(model: str, options: Sequence[str]) -> None:
    """Raises GraphError for an unknown model, ScenarioError for an option that `model` does not have."""
    if model not in (BLOCK, *surrogates()):
        raise GraphError(f"unknown model {model!r}; {nearest(model, [BLOCK, *surrogates()])}")
    allowed = ["--nodes", "--edges", "--set"] if model == BLOCK else []
    for option in allowed[:2]:
        if option not in options:
            raise ScenarioError(f"{option}: {model} needs it")
    for option in options:
        if option not in allowed:
            raise ScenarioError(f"{option}: {model} does not take it; allowed: {', '.join(allowed) or 'none'}")


def _with(model: BlockModel, settings: Sequence[str]) -> BlockModel:
    """Return `model` with NAME=VALUE settings. Raises ScenarioError naming the setting."""
    known = {field.name: field.type for field in fields(model) if field.name not in ("nodes", "edges")}
    changes: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if name not in known:
            raise ScenarioError(f"--set: {setting!r} is not NAME=VALUE; {nearest(name, known)}")
        if not equals:
            raise ScenarioError(f"--set {name}: no value; allowed: {name}=VALUE, {_NUMBERS[str(known[name])]}")
        try:
            changes[name] = int(value) if known[name] == "int" else float(value)
        except ValueError:
            raise ScenarioError(f"--set {name}: {value!r} is not {_NUMBERS[str(known[name])]}") from None
    return replace(model, **changes)


def _print(graph: Graph, model: str, seed: int, out: str, as_json: bool) -> None:
    facts = {
        "model": model,
        "seed": seed,
        "nodes": graph.nodes,
        "edges": graph.entries // 2,
        "entries": graph.entries,
        "mean_degree": graph.entries / graph.nodes,
        "max_degree": int(graph.degrees.max()),
        "cleaning": asdict(graph.cleaning),
        "content_hash": graph.content_hash(),
        "out": out,
    }
    if as_json:
        click.echo(json.dumps({"schema": "gcnsim.graph-generate/1", **facts}, indent=2))
        return
    needed = format_bytes(memory_needed(graph.nodes, graph.entries // 2))
    print_columns(
        [
            ("model", f"{model}, seed {seed}"),
            ("nodes", f"{graph.nodes:,}"),
            ("edges", f"{graph.entries // 2:,}"),
            ("degree", f"mean {facts['mean_degree']:.1f}, max {facts['max_degree']:,}"),
            ("content hash", graph.content_hash()),
            ("memory", f"about {needed} at most while generating"),
            ("written", out),
        ]
    )
