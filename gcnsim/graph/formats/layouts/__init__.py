"""Folders in which data sets are published: read as they are, without a download and without a pickle."""

from __future__ import annotations

from pathlib import Path

from gcnsim.errors import FileError
from gcnsim.graph.formats.layouts.closed import refuse_pickles
from gcnsim.graph.formats.layouts.dgl import DglFacts, DglFolder
from gcnsim.graph.formats.layouts.layout import Layout
from gcnsim.graph.formats.layouts.ogb import OgbFolder
from gcnsim.graph.formats.layouts.reddit import RedditPair
from gcnsim.graph.formats.layouts.saint import SaintFolder

__all__ = ["DglFacts", "DglFolder", "Layout", "layout_of"]

_READ: tuple[type[RedditPair] | type[OgbFolder] | type[SaintFolder] | type[DglFolder], ...] = (
    RedditPair,
    OgbFolder,
    SaintFolder,
    DglFolder,
)


def layout_of(folder: Path) -> Layout:
    """The layout of the files in `folder`, or in its `raw/`.

    Raises FileError when none is there, and for one that is pickles, which are never opened.
    """
    for kind in _READ:
        found = kind.found(folder)
        if found is not None:
            return found
    refuse_pickles(folder)
    raise FileError(
        f"{folder}: not a known data set; known: reddit_data.npz with reddit_graph.npz, OGB's raw/edge.csv.gz or "
        "raw/data.npz, GraphSAINT's adj_full.npz, DGL's partitions"
    )
