"""Reddit as DGL and PyG fetch it: `reddit_data.npz` beside `reddit_graph.npz`, from GraphSAGE.

`reddit_graph.npz` (or `reddit_self_loop_graph.npz`) is a SciPy matrix; `reddit_data.npz` holds `feature` [N, F],
`label` integers[N] and `node_types` integers[N]: 1 train, 2 validation, 3 test. Hamilton, Ying, Leskovec, "Inductive
Representation Learning on Large Graphs" (2017).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from gcnsim.errors import FileError
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.arrays import Archive, class_count, opened
from gcnsim.graph.formats.layouts.layout import check_classes, check_rows, home_of
from gcnsim.graph.formats.node_arrays import Found
from gcnsim.graph.formats.npz import read_npz, stored_size
from gcnsim.graph.formats.source import Size
from gcnsim.ids import AnyArray

DATA, GRAPHS = "reddit_data.npz", ("reddit_graph.npz", "reddit_self_loop_graph.npz")
_READ = ("feature", "label", "node_types")
_TYPES = ("train_mask", "val_mask", "test_mask")


@dataclass(frozen=True, slots=True)
class RedditPair:
    """The two archives. matrix: the one with the graph."""

    data: Path
    matrix: Path

    @classmethod
    def found(cls, folder: Path) -> RedditPair | None:
        """The pair in `folder` or its `raw/`; None when it is not there."""
        for name in GRAPHS:
            home = home_of(folder, DATA, name)
            if home is not None:
                return cls(home / DATA, home / name)
        return None

    def graph(self, name: str) -> Graph:
        """The graph of the matrix; widths from the data."""
        graph = read_npz(self.matrix, name)
        with opened(self.data) as archive:
            shape, labels = archive.shape("feature"), self._labels(archive, graph.nodes)
            unused = tuple(name for name in archive.names() if name not in _READ)
        check_rows(str(self.data), "features", shape, graph.nodes)
        cleaning = replace(graph.cleaning, ignored=(*graph.cleaning.ignored, *unused))
        features = shape[1] if len(shape) == 2 else None
        return replace(graph, features=features, classes=class_count(labels), cleaning=cleaning)

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features, labels, and masks from the node types."""
        found: dict[str, AnyArray] = {}
        with opened(self.data) as archive:
            if "x" in wanted:
                found["x"] = archive.array("feature")
            if "labels" in wanted:
                found["labels"] = self._labels(archive, nodes)
            types = archive.integers("node_types")
        check_rows(f"{self.data}: 'node_types'", "they", types.shape, nodes)
        if types.min() < 0 or types.max() > len(_TYPES):
            raise FileError(
                f"{self.data}: 'node_types' run from {types.min()} to {types.max()}; 1 train, 2 validation, 3 test"
            )
        return Found(found | {name: types == kind for kind, name in enumerate(_TYPES, start=1)})

    def size(self, *, features: bool) -> Size:
        """From the headers of both archives."""
        with opened(self.matrix) as archive:
            entries = stored_size(archive).entries
        with opened(self.data) as archive:
            nodes = archive.shape("label")[0]
            loaded = archive.nbytes("label") + archive.nbytes("node_types")
            return Size(nodes, entries, loaded + (archive.nbytes("feature") if features else 0))

    def _labels(self, archive: Archive, nodes: int) -> AnyArray:
        labels = archive.integers("label")
        check_rows(str(self.data), "labels", labels.shape, nodes)
        check_classes(f"{self.data}: 'label'", labels)
        return labels
