"""Layouts whose graph is not read, because reading it would run what the file says or needs another's library."""

from __future__ import annotations

from pathlib import Path

from gcnsim.errors import FileError
from gcnsim.graph.formats.layouts.layout import home_of

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
