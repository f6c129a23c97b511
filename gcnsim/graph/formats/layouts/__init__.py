"""Folders of published datasets, read in their original form, without a download and without pickle."""

from __future__ import annotations

from pathlib import Path

from gcnsim.core.errors import FileError
from gcnsim.graph.formats.layouts.array_folders import ArrayFolder
from gcnsim.graph.formats.layouts.dgl import DglFacts, DglFolder
from gcnsim.graph.formats.layouts.layout import Layout, refuse_known, refuse_pickles, refuse_relations
from gcnsim.graph.formats.layouts.ogb import OgbFolder

__all__ = ["DglFacts", "DglFolder", "Layout", "layout_of"]

_READ = (OgbFolder, DglFolder, ArrayFolder)

_LOOKED_FOR = "OGB (raw/edge.csv.gz or raw/data.npz), DGL's partitions (NAME.json with part0/), arrays (edge_index.npy)"
_MOST_LISTED = 8


def layout_of(folder: Path) -> Layout:
    """The layout of the files in `folder`, or in its `raw/`.

    Raises FileError if there is none, for layouts that are not read, for several kinds of nodes, and for pickles, which
    are never opened.
    """
    for kind in _READ:
        layout: Layout | None = kind.found(folder)
        if layout is not None:
            return layout
    refuse_known(folder)
    refuse_relations(folder)
    refuse_pickles(folder)
    raise FileError(f"{folder}: no graph in this folder, which holds {_listed(folder)}; looked for: {_LOOKED_FOR}")


def _listed(folder: Path) -> str:
    """The contents of the folder, the first few by name."""
    try:
        names = sorted(f"{item.name}/" if item.is_dir() else item.name for item in folder.iterdir())
    except OSError as error:
        raise FileError(f"{folder}: cannot be listed: {error.strerror}") from None
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return (", ".join(names[:_MOST_LISTED]) or "nothing") + more
