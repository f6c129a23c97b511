"""The Illinois Graph Benchmark's papers: `paper__cites__paper/edge_index.npy` and `paper/node_*.npy`.

`edge_index.npy` is [E, 2], `node_feat.npy` [N, F], `node_label_19.npy` and `node_label_2K.npy` [N], whole numbers
stored as floats; all may also lie in one folder. Where no other file holds a split, the rule of the project's own
loader counts: the first 60 % of the nodes train, the next 20 % validate, the rest test. Khatua et al., "IGB" (2023);
format: igb/dataloader.py of the project.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gcnsim.errors import FileError
from gcnsim.graph.build import build_csr
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.arrays import NpyFiles, npy_shape, read_npy, whole_numbers
from gcnsim.graph.formats.contents import contents_of
from gcnsim.graph.formats.layouts.layout import refuse_kinds
from gcnsim.graph.formats.node_arrays import Found, node_arrays
from gcnsim.graph.formats.npz import widths_of
from gcnsim.graph.formats.source import Size
from gcnsim.ids import AnyArray

_EDGES, _LABELS = "edge_index.npy", ("node_label_19.npy", "node_label_2K.npy")
_TRAIN, _VAL = 0.6, 0.2


@dataclass(frozen=True, slots=True)
class IgbFolder:
    """nodes: what the papers have, as arrays; edges: the file of the citations; unused: labels of other classes, and
    what lies beside."""

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
            if cites.is_file() and papers.is_dir():
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
        there = NpyFiles.in_folder(papers).files
        held = {name: path for name, path in there.items() if path not in (cites, *(papers / name for name in _LABELS))}
        labels = [papers / name for name in _LABELS if (papers / name).is_file()]
        files = ({"node_label": labels[0]} if labels else {}) | held
        known = contents_of(NpyFiles(folder, files))
        unused = (*(path.stem for path in labels[1:]), *known.unknown)
        used = {name: path for name, path in files.items() if name not in known.unknown}
        return cls(NpyFiles(folder, used), cites, unused)

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
        if contents_of(self.nodes).split:
            return found
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
        held = contents_of(self.nodes)
        rows = self._rows()
        loaded = sum(self.nodes.nbytes(key) for key in (held.labels, held.features if features else None) if key)
        return Size(rows[0] if rows else 2 * edges[0], 2 * edges[0] if edges else 0, loaded)

    def _rows(self) -> list[int]:
        """Of features and of labels, as far as they are there."""
        held = contents_of(self.nodes)
        return [shape[0] for key in (held.features, held.labels) if key and (shape := self.nodes.shape(key))]

    def _table(self) -> AnyArray:
        """The citations, [E, 2] whatever their number."""
        table = read_npy(self.edges)
        if table.ndim != 2 or table.shape[1] != 2:
            raise FileError(f"{self.edges} is {table.dtype}{list(table.shape)}; [E, 2] is needed")
        return table
