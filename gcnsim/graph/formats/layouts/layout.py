"""The protocol of a published dataset's layout, and shared checks and readers.

Some layouts are known by name but not read: a recipe in docs/files.md converts them. Others are refused, because
reading them would execute the file's content or needs another library.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final, NoReturn, Protocol

import numpy as np
from numpy.typing import DTypeLike

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.node_arrays import Found
from gcnsim.graph.formats.source import GraphSize, file_text, plain_bytes


class Layout(Protocol):
    """The files of one dataset, in the layout of its publisher."""

    def graph(self, name: str) -> Graph:
        """The graph, with the widths of features and labels. Raises FileError, GraphError as `load_graph`."""

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """The `wanted` arrays, named as in `gcnsim.graph.formats.nodes`, that the files contain.

        Raises FileError.
        """

    def size(self, *, features: bool) -> GraphSize:
        """The size of what `graph` reads and, with `features`, of `arrays`; from headers if there are any."""


def home_of(folder: Path, *names: str) -> Path | None:
    """The folder, or its `raw/`, that contains all the files `names`."""
    for home in (folder, folder / "raw"):
        if all((home / name).is_file() for name in names):
            return home
    return None


def check_rows(where: str, what: str, shape: tuple[int, ...], nodes: int) -> None:
    """Raise FileError unless `shape` has one row per node."""
    if not shape or shape[0] != nodes:
        raise FileError(f"{where}: {what} have shape {list(shape)}; {nodes} rows, one for each node, are needed")


KNOWN: Final = {
    "reddit_data.npz": "Reddit as DGL and PyG download it",
    "adj_full.npz": "GraphSAINT's layout",
    "adj.npz": "PaGraph's layout",
    "metadata.yaml": "GraphBolt's layout",
    "meta.yaml": "DGL's CSV layout",
    "indptr.bin": "GNNLab's layout",
    "paper__cites__paper": "the Illinois Graph Benchmark's layout",
}
"""Layouts that are not read, by a file or folder that each has."""


def refuse_known(folder: Path) -> None:
    """Raise FileError if `folder`, its `raw/` or its `processed/` has a layout of `KNOWN`."""
    for home in (folder, folder / "raw", folder / "processed"):
        for name, layout in KNOWN.items():
            if (home / name).exists():
                raise FileError(f"{home}: {layout} ({name}), not read; convert it to .npz as docs/files.md shows")


_PLANETOID = ("x", "tx", "allx", "y", "ty", "ally", "graph")


def refuse_pickles(folder: Path) -> None:
    """Raise FileError if `folder` contains pickles: Planetoid's `ind.NAME.*`, or processed `.pt` files."""
    for home in (folder, folder / "raw"):
        names = sorted({item.name.split(".")[1] for item in home.glob("ind.*.graph") if item.name.count(".") == 2})
        if names and home_of(home, *(f"ind.{names[0]}.{part}" for part in _PLANETOID)):
            raise FileError(
                f"{home}: ind.{names[0]}.* are pickles, which run code when they are read and are never opened; "
                "convert files that you trust to .npz as docs/files.md shows"
            )
    for home in (folder, folder / "processed"):
        found = sorted(item.name for item in home.glob("*.pt"))
        if found:
            raise FileError(
                f"{home / found[0]}: a pickle of PyTorch, which runs code when it is read and is never opened; "
                "give the folder of the original files, or convert it to .npz as docs/files.md shows"
            )


def refuse_kinds(where: str, what: str, kinds: Sequence[str], relation: Path | None = None) -> NoReturn:
    """Raise FileError for a dataset `what` with several kinds of nodes. relation: a readable one with a single kind."""
    listed = f" ({', '.join(kinds[:8])}{', ...' if len(kinds) > 8 else ''})" if kinds else ""
    hint = "write the edges between nodes of one kind as an edge list"
    if relation is not None:
        hint = f"give the edges between nodes of one kind alone: {relation}"
    raise FileError(f"{where}: {what} with several kinds of nodes{listed}, which is not read; {hint}")


def refuse_relations(folder: Path) -> None:
    """Raise FileError if `folder` has relations between several kinds of nodes: OGB's, or MAG240M's."""
    for home in (folder, folder / "raw"):
        counts, relations = home / "num-node-dict.csv.gz", home / "relations"
        if counts.is_file() or relations.is_dir():
            kinds = file_text(counts).decode("utf-8", "replace").split("\n")[0].strip() if counts.is_file() else ""
            named = sorted(item.name.split("___") for item in relations.iterdir()) if relations.is_dir() else []
            same = [relations / "___".join(words) / "edge.csv.gz" for words in named if words[0] == words[-1]]
            refuse_kinds(
                str(home), "an OGB dataset", [kind for kind in kinds.split(",") if kind], next(iter(same), None)
            )
    for home in (folder, folder / "processed"):
        named = sorted(item.parent.name.split("___") for item in home.glob("*___*___*/edge_index.npy"))
        if named:
            same = [home / "___".join(words) / "edge_index.npy" for words in named if words[0] == words[-1]]
            kinds_of = sorted({kind for words in named for kind in (words[0], words[-1])})
            refuse_kinds(str(home), "an OGB-LSC dataset", kinds_of, next(iter(same), None))


def read_numbers(path: Path, dtype: DTypeLike) -> AnyArray:
    """The table at `path`, [rows, columns] of `dtype`; an empty file is [0, 0].

    Raises FileError, starting with the path, if it is unreadable, truncated, or contains anything but equally long rows
    of such numbers.
    """
    try:
        with plain_bytes(path) as file, warnings.catch_warnings():
            warnings.simplefilter("error")  # a whole number like `1.5` is only a deprecation to NumPy
            warnings.filterwarnings("ignore", "loadtxt: input contained no data")
            table = np.loadtxt(file, dtype, delimiter=",", ndmin=2, encoding="latin-1")
    except (ValueError, OverflowError, Warning) as error:
        raise FileError(f"{path}: {' '.join(str(error).split())}") from None
    return table if table.size else table.reshape(0, 0)


def read_column(path: Path, dtype: DTypeLike) -> AnyArray:
    """The only column of the table at `path`. Raises FileError as in `read_numbers`, and for more columns."""
    table = read_numbers(path, dtype)
    if table.size and table.shape[1] != 1:
        raise FileError(f"{path}: {table.shape[1]} columns; 1 is needed")
    return table.ravel()


def columns_of(path: Path) -> int:
    """The number of columns in the first line at `path`; 0 for an empty file. Raises FileError if it is unreadable."""
    with plain_bytes(path) as file:
        line = file.readline(2**26)
    return line.count(b",") + 1 if line.strip() else 0
