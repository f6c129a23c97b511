"""Shared options of commands that read a graph file: ids and columns of an edge list, and `--partition`.

Notes on what was read are printed as warnings. `--partition` takes an existing partition in any supported format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import click

from gcnsim.core.errors import ScenarioError
from gcnsim.graph import IDS, Graph, two_columns
from gcnsim.graph.load import write_ids
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
