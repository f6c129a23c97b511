"""Layouts whose graph is not read, because reading it would run what the file says or needs another's library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from gcnsim.errors import FileError
from gcnsim.graph.formats.layouts.layout import home_of
from gcnsim.graph.formats.source import file_text

_PLANETOID = ("x", "tx", "allx", "y", "ty", "ally", "graph")


def refuse_pickles(folder: Path) -> None:
    """Raises FileError when `folder` holds pickles: Planetoid's `ind.NAME.*`, or processed `.pt` files."""
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
    """Raises FileError for a data set `what` of several kinds of nodes. relation: of one kind, which may be read."""
    listed = f" ({', '.join(kinds[:8])}{', ...' if len(kinds) > 8 else ''})" if kinds else ""
    hint = "write the edges between nodes of one kind as an edge list"
    if relation is not None:
        hint = f"give the edges between nodes of one kind alone: {relation}"
    raise FileError(f"{where}: {what} with several kinds of nodes{listed}, which is not read; {hint}")


def refuse_relations(folder: Path) -> None:
    """Raises FileError when `folder` holds relations between several kinds of nodes: OGB's, or MAG240M's."""
    for home in (folder, folder / "raw"):
        counts, relations = home / "num-node-dict.csv.gz", home / "relations"
        if counts.is_file() or relations.is_dir():
            kinds = file_text(counts).decode("utf-8", "replace").split("\n")[0].strip() if counts.is_file() else ""
            named = sorted(item.name.split("___") for item in relations.iterdir()) if relations.is_dir() else []
            same = [relations / "___".join(words) / "edge.csv.gz" for words in named if words[0] == words[-1]]
            refuse_kinds(
                str(home), "an OGB data set", [kind for kind in kinds.split(",") if kind], next(iter(same), None)
            )
    for home in (folder, folder / "processed"):
        named = sorted(item.parent.name.split("___") for item in home.glob("*___*___*/edge_index.npy"))
        if named:
            same = [home / "___".join(words) / "edge_index.npy" for words in named if words[0] == words[-1]]
            kinds_of = sorted({kind for words in named for kind in (words[0], words[-1])})
            refuse_kinds(str(home), "an OGB-LSC data set", kinds_of, next(iter(same), None))
