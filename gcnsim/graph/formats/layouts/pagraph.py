"""The folder that PaGraph trains from: `adj.npz` of SciPy, and `.npy` files of the nodes.

`feat.npy` [N, F], `labels.npy` [N], and `train.npy`, `val.npy`, `test.npy`: masks [N] or node numbers. Lin et al.,
"PaGraph: Scaling GNN Training on Large Graphs via Computation-aware Caching" (2020); format: PaGraph/data of the
project.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.arrays import NpyFiles, opened
from gcnsim.graph.formats.contents import contents_of
from gcnsim.graph.formats.layouts.layout import home_of
from gcnsim.graph.formats.node_arrays import Found, node_arrays
from gcnsim.graph.formats.npz import read_npz, stored_size, widths_of
from gcnsim.graph.formats.source import Size

MATRIX = "adj.npz"


@dataclass(frozen=True, slots=True)
class PaGraphFolder:
    """source: the files of the nodes, beside the matrix."""

    source: NpyFiles

    @classmethod
    def found(cls, folder: Path) -> PaGraphFolder | None:
        """The layout in `folder` or its `raw/`; None when it is another."""
        home = home_of(folder, MATRIX)
        return None if home is None else cls(NpyFiles.in_folder(home))

    def graph(self, name: str) -> Graph:
        """The graph of the matrix; widths from the files beside it."""
        graph = read_npz(self.source.path / MATRIX, name)
        widths = widths_of(self.source, graph.nodes)
        cleaning = replace(graph.cleaning, ignored=(*graph.cleaning.ignored, *widths.unused))
        return replace(graph, features=widths.features, classes=widths.classes, cleaning=cleaning)

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features, labels and masks as far as they are there."""
        return node_arrays(self.source, nodes, wanted)

    def size(self, *, features: bool) -> Size:
        """From headers."""
        with opened(self.source.path / MATRIX) as archive:
            size = stored_size(archive)
        held = contents_of(self.source)
        beside = [held.labels, held.features if features else None]
        return replace(size, loaded=size.loaded + sum(self.source.nbytes(name) for name in beside if name is not None))
