"""Folders with one array per file: the Illinois Graph Benchmark's, GNNLab's, and those with common names.

Illinois Graph Benchmark, papers: `paper__cites__paper/edge_index.npy` and `paper/node_*.npy`; all may also lie in one
folder. `edge_index.npy` is [E, 2], `node_feat.npy` [N, F], `node_label_19.npy` and `node_label_2K.npy` [N], whole
numbers stored as floats. Where no other file holds a split, the rule of the project's own loader applies. The first 60
% of the nodes train, the next 20 % validate, the rest test. Khatua et al., "IGB" (2023); format: igb/dataloader.py of
the project.

GNNLab: `meta.txt`, `indptr.bin`, `indices.bin`, and further `.bin` files of the nodes. `meta.txt` has a name and a
number per line: NUM_NODE, NUM_EDGE, FEAT_DIM, NUM_CLASS, NUM_TRAIN_SET, NUM_VALID_SET, NUM_TEST_SET. The `.bin` files
have no header: `indptr`, `indices` and the sets are uint32, `feat` is float32, `label` uint64. Each must have exactly
the bytes that the counts of `meta.txt` require. Yang et al., "GNNLab" (2022); format: datagen/README.md of the project.

Common names: a folder of `.npy` files named as in `contents`, one each for edges, features, labels and split.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray
from gcnsim.graph.csr import Graph, build_csr, from_csr
from gcnsim.graph.formats.arrays import NpyFiles, class_count, npy_shape, read_npy, read_raw, whole_numbers
from gcnsim.graph.formats.contents import contents_of
from gcnsim.graph.formats.layouts.layout import home_of, refuse_kinds
from gcnsim.graph.formats.node_arrays import Found, masks_of, node_arrays
from gcnsim.graph.formats.npz import graph_of_arrays, stored_size, widths_of
from gcnsim.graph.formats.source import GraphSize, file_text

_EDGES, _LABELS = "edge_index.npy", ("node_label_19.npy", "node_label_2K.npy")
_TRAIN, _VAL = 0.6, 0.2


@dataclass(frozen=True, slots=True)
class IgbFolder:
    """An IGB folder. nodes: arrays of the papers. edges: the file of the citations. unused: labels of other classes,
    and other files.
    """

    nodes: NpyFiles
    edges: Path
    unused: tuple[str, ...]

    @classmethod
    def found(cls, folder: Path) -> IgbFolder | None:
        """The layout in `folder`, its `processed/`, or flat; None for another layout.

        Raises FileError if there are relations between other kinds of nodes.
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
        """The citation graph; the number of nodes is the number of rows of features or labels."""
        table = whole_numbers(str(self.edges), self._table())
        rows = self._rows()
        nodes = rows[0] if rows else int(table.max(initial=-1)) + 1
        widths = widths_of(self.nodes, nodes)
        unused = (*widths.unused, *self.unused)
        graph = build_csr(table[:, 0], table[:, 1], nodes, name, ignored=unused, where=str(self.edges))
        return replace(graph, features=widths.features, classes=widths.classes)

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features and labels; the split follows the loader's rule."""
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

    def size(self, *, features: bool) -> GraphSize:
        """From headers."""
        edges = npy_shape(self.edges)
        held = contents_of(self.nodes)
        rows = self._rows()
        loaded = sum(self.nodes.nbytes(key) for key in (held.labels, held.features if features else None) if key)
        return GraphSize(rows[0] if rows else 2 * edges[0], 2 * edges[0] if edges else 0, loaded)

    def _rows(self) -> list[int]:
        """The numbers of rows of features and labels, if present."""
        held = contents_of(self.nodes)
        return [shape[0] for key in (held.features, held.labels) if key and (shape := self.nodes.shape(key))]

    def _table(self) -> AnyArray:
        """The citations, [E, 2] for any E."""
        table = read_npy(self.edges)
        if table.ndim != 2 or table.shape[1] != 2:
            raise FileError(f"{self.edges} is {table.dtype}{list(table.shape)}; [E, 2] is needed")
        return table


_META, _SETS = "meta.txt", {"train_set": "NUM_TRAIN_SET", "valid_set": "NUM_VALID_SET", "test_set": "NUM_TEST_SET"}


@dataclass(frozen=True, slots=True)
class GnnLabFolder:
    """A GNNLab folder. home: the folder of the files."""

    home: Path

    @classmethod
    def found(cls, folder: Path) -> GnnLabFolder | None:
        """The layout in `folder`; None when it is another."""
        home = home_of(folder, _META, "indptr.bin", "indices.bin")
        return None if home is None else cls(home)

    def graph(self, name: str) -> Graph:
        """The graph, with the widths from `meta.txt` and the labels."""
        text = self._said()
        nodes, edges = self._count(text, "NUM_NODE"), self._count(text, "NUM_EDGE")
        indptr = read_raw(self.home / "indptr.bin", np.uint32, (nodes + 1,))
        indices = read_raw(self.home / "indices.bin", np.uint32, (edges,))
        features, labels, sets = self._features(text, nodes), self._labels(nodes), self._sets(text)
        classes = text.get("NUM_CLASS") or (None if labels is None else class_count(labels))
        read = {"indptr.bin", "indices.bin", "feat.bin", "label.bin", *(file.name for file in sets)}
        return from_csr(
            indptr,
            indices,
            name,
            features=None if features is None else features.shape[1],
            classes=classes,
            ignored=tuple(sorted(item.name for item in self.home.glob("*.bin") if item.name not in read)),
            where=str(self.home),
        )

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features, labels and masks, if the files exist and `meta.txt` has their sizes."""
        text = self._said()
        features = self._features(text, nodes) if "x" in wanted else None
        labels = self._labels(nodes) if "labels" in wanted else None
        found = {name: array for name, array in (("x", features), ("labels", labels)) if array is not None}
        sets = self._sets(text)
        if sets:
            ids = [(str(file), read_raw(file, np.uint32, (count,))) for file, count in sets.items()]
            found |= masks_of(ids, nodes)
        return Found(found)

    def size(self, *, features: bool) -> GraphSize:
        """From `meta.txt`."""
        text = self._said()
        nodes = self._count(text, "NUM_NODE")
        return GraphSize(
            nodes, self._count(text, "NUM_EDGE"), 8 * nodes + 4 * nodes * text.get("FEAT_DIM", 0) * features
        )

    def _said(self) -> dict[str, int]:
        """The counts in `meta.txt`. Raises FileError for a line that is not a name and a whole number."""
        document: dict[str, int] = {}
        for number, line in enumerate(file_text(self.home / _META).decode("utf-8", "replace").splitlines(), start=1):
            words = line.split()
            if not words:
                continue
            if len(words) != 2 or not words[1].isdecimal() or len(words[1]) > 18:
                raise FileError(
                    f"{self.home / _META}: line {number}: {line[:40]!r}; a name and a whole number are needed"
                )
            document[words[0]] = int(words[1])
        return document

    def _count(self, document: dict[str, int], key: str) -> int:
        if key not in document:
            raise FileError(f"{self.home / _META}: {key} is missing; a .bin file does not say its own size")
        return document[key]

    def _features(self, document: dict[str, int], nodes: int) -> AnyArray | None:
        file = self.home / "feat.bin"
        return read_raw(file, np.float32, (nodes, self._count(document, "FEAT_DIM"))) if file.is_file() else None

    def _labels(self, nodes: int) -> AnyArray | None:
        file = self.home / "label.bin"
        return read_raw(file, np.uint64, (nodes,)) if file.is_file() else None

    def _sets(self, document: dict[str, int]) -> dict[Path, int]:
        """The files of train, validation and test with their counts; empty unless all three exist."""
        files = {self.home / f"{part}.bin": key for part, key in _SETS.items()}
        if not all(file.is_file() for file in files):
            return {}
        return {file: self._count(document, key) for file, key in files.items()}


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
