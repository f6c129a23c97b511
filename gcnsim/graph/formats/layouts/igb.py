"""The Illinois Graph Benchmark's papers: `paper__cites__paper/edge_index.npy` and `paper/node_*.npy`.

`edge_index.npy` is [E, 2], `node_feat.npy` [N, F], `node_label_19.npy` and `node_label_2K.npy` [N], whole numbers
stored as floats; all may also lie in one folder. The files hold no split: the project's own loader trains the first
60 % of the nodes, validates the next 20 % and tests the rest. Khatua et al., "IGB" (2023); format: igb/dataloader.py of
the project.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gcnsim.errors import FileError
from gcnsim.graph.build import build_csr
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.array_sources import NpyFiles
from gcnsim.graph.formats.arrays import npy_shape, read_npy, whole_numbers
from gcnsim.graph.formats.layouts.closed import refuse_kinds
from gcnsim.graph.formats.node_arrays import Found, node_arrays
from gcnsim.graph.formats.npz import widths_of
from gcnsim.graph.formats.size import Size
from gcnsim.ids import AnyArray

_EDGES, _FEATURES, _LABELS = "edge_index.npy", "node_feat.npy", ("node_label_19.npy", "node_label_2K.npy")
_TRAIN, _VAL = 0.6, 0.2


@dataclass(frozen=True, slots=True)
class IgbFolder:
    """nodes: what the papers have, as arrays; edges: the file of the citations; unused: labels of other classes."""

    nodes: NpyFiles
    edges: Path
    unused: tuple[str, ...]

    @classmethod
    def found(cls, folder: Path) -> IgbFolder | None:
        """The layout in `folder`, its `processed/`, or flat; None when it is another.

        Raises FileError where relations between other kinds of nodes lie beside.
        """
        for home in (folder, folder / "processed"):
            cites, papers = home / "paper__cites__paper" / _EDGES, home / "paper"
            if cites.is_file() and (papers / _FEATURES).is_file():
                kinds = {
                    kind for item in home.iterdir() if (item / _EDGES).is_file() for kind in item.name.split("__")[::2]
                }
                if len(kinds) > 1:
                    refuse_kinds(str(home), "the Illinois Graph Benchmark", sorted(kinds), cites)
                return cls._of(folder, papers, cites)
        if (folder / _EDGES).is_file() and any((folder / name).is_file() for name in _LABELS):
            return cls._of(folder, folder, folder / _EDGES)
        return None

    @classmethod
    def _of(cls, folder: Path, papers: Path, cites: Path) -> IgbFolder:
        labels = [papers / name for name in _LABELS if (papers / name).is_file()]
        files = {"node_feat": papers / _FEATURES} | ({"node_label": labels[0]} if labels else {})
        there = {name: path for name, path in files.items() if path.is_file()}
        return cls(NpyFiles(folder, there), cites, tuple(path.stem for path in labels[1:]))

    def graph(self, name: str) -> Graph:
        """The citations; the nodes are as many as there are rows of features or labels."""
        table = whole_numbers(str(self.edges), self._table())
        rows = self._rows()
        nodes = rows[0] if rows else int(table.max(initial=-1)) + 1
        widths = widths_of(self.nodes, nodes)
        unused = (*widths.unused, *self.unused)
        graph = build_csr(table[:, 0], table[:, 1], nodes, name, ignored=unused, where=str(self.edges))
        return replace(graph, features=widths.features, classes=widths.classes)

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features and labels; the split is the loader's rule."""
        found = node_arrays(self.nodes, nodes, wanted)
        train, val = int(nodes * _TRAIN), int(nodes * _VAL)
        place = np.arange(nodes)
        masks: dict[str, AnyArray] = {
            "train_mask": place < train,
            "val_mask": (place >= train) & (place < train + val),
            "test_mask": place >= train + val,
        }
        rule = "split by IGB's own rule: the first 60 % of the nodes train, the next 20 % validate, the rest test"
        return replace(found, arrays=found.arrays | masks, notes=(*found.notes, rule))

    def size(self, *, features: bool) -> Size:
        """From headers."""
        edges = npy_shape(self.edges)
        wanted = ["node_label", *(["node_feat"] if features else [])]
        rows = self._rows()
        loaded = sum(self.nodes.nbytes(key) for key in wanted)
        return Size(rows[0] if rows else 2 * edges[0], 2 * edges[0] if edges else 0, loaded)

    def _rows(self) -> list[int]:
        """Of features and of labels, as far as they are there."""
        return [shape[0] for shape in map(self.nodes.shape, self.nodes.names()) if shape]

    def _table(self) -> AnyArray:
        """The citations, [E, 2] whatever their number."""
        table = read_npy(self.edges)
        if table.ndim != 2 or table.shape[1] != 2:
            raise FileError(f"{self.edges} is {table.dtype}{list(table.shape)}; [E, 2] is needed")
        return table
