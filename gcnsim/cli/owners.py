"""The option `--partition`: an existing partition, in any readable format."""

from __future__ import annotations

from typing import Final

import click

from gcnsim.cli.ids import warn
from gcnsim.graph import Graph
from gcnsim.partition import Partitioning, open_partition

partition_option: Final = click.option(
    "--partition",
    type=click.Path(),
    help="Partition to use: a file of graph partition --out, owners (.npy, or one per line), or DGL folder.",
)


def read_owners(path: str, graph: Graph) -> Partitioning:
    """The partition of `graph` at `path`; what its reader assumed goes to stderr. Raises FileError."""
    found = open_partition(path, graph)
    warn([found.note] * bool(found.note))
    return found
