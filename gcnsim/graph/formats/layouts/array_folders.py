"""A folder of `.npy` files named as in `contents`, one each for edges, features, labels and split."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.arrays import NpyFiles
from gcnsim.graph.formats.contents import contents_of
from gcnsim.graph.formats.node_arrays import Found, node_arrays
from gcnsim.graph.formats.npz import graph_of_arrays, stored_size
from gcnsim.graph.formats.source import GraphSize


@dataclass(frozen=True, slots=True)
class ArrayFolder:
    """A folder of `.npy` files. source: the files."""

    source: NpyFiles

    @classmethod
    def found(cls, folder: Path) -> ArrayFolder | None:
        """The layout in `folder` or its `raw/`; None if no file is named like edges."""
        for home in (folder, folder / "raw"):
            source = NpyFiles.in_folder(home)
            if contents_of(source).edges is not None:
                return cls(source)
        return None

    def graph(self, name: str) -> Graph:
        """The graph, with the widths of features and labels."""
        return graph_of_arrays(self.source, name)

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features, labels and masks, if present."""
        return node_arrays(self.source, nodes, wanted)

    def size(self, *, features: bool) -> GraphSize:
        """From headers."""
        return stored_size(self.source, features=features)
