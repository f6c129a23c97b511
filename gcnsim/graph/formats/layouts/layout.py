"""What every layout of a published data set can do, and the small steps they share."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from gcnsim.errors import FileError
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.node_arrays import Found
from gcnsim.graph.formats.size import Size
from gcnsim.ids import AnyArray


class Layout(Protocol):
    """The files of one data set, as whoever publishes it lays them out."""

    def graph(self, name: str) -> Graph:
        """The graph, with the widths of features and labels. Raises FileError, GraphError as `load_graph`."""

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Those of the `wanted` arrays, named as in `gcnsim.graph.formats.nodes`, that the files hold.

        Raises FileError.
        """

    def size(self, *, features: bool) -> Size:
        """What `graph` reads and, with `features`, `arrays` too; from headers where there are any."""


def home_of(folder: Path, *names: str) -> Path | None:
    """The folder, or its `raw/`, that holds all the files `names`."""
    for home in (folder, folder / "raw"):
        if all((home / name).is_file() for name in names):
            return home
    return None


def check_rows(where: str, what: str, shape: tuple[int, ...], nodes: int) -> None:
    """Raises FileError unless `shape` has a row for each node."""
    if not shape or shape[0] != nodes:
        raise FileError(f"{where}: {what} have shape {list(shape)}; {nodes} rows, one for each node, are needed")


def check_classes(where: str, labels: AnyArray) -> None:
    """Raises FileError for a class below 0, which these files have no use for."""
    if labels.size and labels.min() < 0:
        raise FileError(f"{where}: a class of {labels.min()}; whole numbers from 0 are allowed")
