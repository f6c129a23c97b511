"""Datasets whose graph is a matrix that SciPy saved: GraphSAINT's, DGL's and PyG's Reddit, PaGraph's.

GraphSAINT (Flickr, Yelp, Reddit, Amazon, PPI; DGL and PyG read them too): `adj_full.npz` is a SciPy matrix of the whole
graph, `feats.npy` is [N, F]. `class_map.json` gives each node id its class or a list of 0 and 1; `role.json` lists the
node ids of `tr`, `va` and `te`. `adj_train.npz` is the training nodes' part of the same graph and is not read. Zeng et
al., "GraphSAINT" (2020).

Reddit as DGL and PyG download it, from GraphSAGE: `reddit_graph.npz` (or `reddit_self_loop_graph.npz`) is a SciPy
matrix. `reddit_data.npz` holds `feature` [N, F], `label` integers[N] and `node_types` integers[N]: 1 train, 2
validation, 3 test. Hamilton, Ying, Leskovec, "Inductive Representation Learning on Large Graphs" (2017).

PaGraph's training folder: `adj.npz` of SciPy, `feat.npy` [N, F], `labels.npy` [N]. `train.npy`, `val.npy` and
`test.npy` are masks [N] or node numbers. Lin et al., "PaGraph: Scaling GNN Training on Large Graphs via
Computation-aware Caching" (2020); format: PaGraph/data of the project.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray
from gcnsim.core.json_files import each_once
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.arrays import Archive, NpyFiles, class_count, npy_shape, opened, read_npy
from gcnsim.graph.formats.contents import contents_of
from gcnsim.graph.formats.layouts.layout import check_classes, check_rows, home_of
from gcnsim.graph.formats.node_arrays import Found, masks_of, node_arrays
from gcnsim.graph.formats.npz import read_npz, stored_size, widths_of
from gcnsim.graph.formats.source import GraphSize, file_text

MATRIX, FEATURES, CLASSES, ROLES = "adj_full.npz", "feats.npy", "class_map.json", "role.json"
_ROLES = ("tr", "va", "te")


@dataclass(frozen=True, slots=True)
class SaintFolder:
    """A GraphSAINT folder. home: the folder of the four files."""

    home: Path

    @classmethod
    def found(cls, folder: Path) -> SaintFolder | None:
        """The layout in `folder` or its `raw/`; None when it is another."""
        home = home_of(folder, MATRIX)
        return None if home is None else cls(home)

    def graph(self, name: str) -> Graph:
        """The whole graph; widths from the other files if they exist."""
        graph = read_npz(self.home / MATRIX, name)
        features = classes = None
        if (self.home / FEATURES).is_file():
            shape = npy_shape(self.home / FEATURES)
            check_rows(str(self.home / FEATURES), "features", shape, graph.nodes)
            features = shape[1] if len(shape) == 2 else None
        if (self.home / CLASSES).is_file():
            classes = class_count(_labels(self.home / CLASSES, graph.nodes))
        return replace(graph, features=features, classes=classes)

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features, labels and masks, if present."""
        found: dict[str, AnyArray] = {}
        if "x" in wanted and (self.home / FEATURES).is_file():
            found["x"] = read_npy(self.home / FEATURES)
            check_rows(str(self.home / FEATURES), "features", found["x"].shape, nodes)
        if "labels" in wanted and (self.home / CLASSES).is_file():
            found["labels"] = _labels(self.home / CLASSES, nodes)
        if (self.home / ROLES).is_file():
            found |= _masks(self.home / ROLES, nodes)
        return Found(found)

    def size(self, *, features: bool) -> GraphSize:
        """From headers; JSON by the bytes of its text, whose objects need several times as much."""
        with opened(self.home / MATRIX) as archive:
            size = stored_size(archive)
        texts = [self.home / name for name in (CLASSES, ROLES)]
        loaded = sum(12 * path.stat().st_size for path in texts if path.is_file())
        wide = self.home / FEATURES
        return replace(size, loaded=size.loaded + loaded + (wide.stat().st_size if features and wide.is_file() else 0))


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(file_text(path), object_pairs_hook=each_once)
    except (KeyError, ValueError, RecursionError) as error:
        raise FileError(f"{path}: truncated or altered: {' '.join(str(error.args[0]).split())}") from None
    if not isinstance(found, dict):
        raise FileError(f"{path}: a JSON object is needed, not a {type(found).__name__}")
    return found


def _labels(path: Path, nodes: int) -> AnyArray:
    """int64[N], -1 if the map has no class; or the lists of 0 and 1, [N, C], which must be complete."""
    given = _json(path)
    try:
        ids = np.array([int(key) for key in given], np.int64)
        classes = np.array(list(given.values()))
    except (ValueError, OverflowError):
        raise FileError(f"{path}: it must map node ids to classes, or to equally long lists of 0 and 1") from None
    if not ids.size or classes.dtype.kind not in "iu" or classes.ndim > 2:
        raise FileError(f"{path}: it must map node ids to classes, or to equally long lists of 0 and 1")
    if ids.min() < 0 or ids.max() >= nodes or np.unique(ids).size != ids.size:
        raise FileError(
            f"{path}: node ids run from {ids.min()} to {ids.max()}; 0 to {nodes - 1}, each once, are allowed"
        )
    if classes.ndim == 2 and ids.size != nodes:
        raise FileError(f"{path}: classes of {ids.size} nodes; {nodes} are needed")
    check_classes(str(path), classes)
    labels = np.full((nodes, *classes.shape[1:]), -1, np.int64)
    labels[ids] = classes
    return labels


def _masks(path: Path, nodes: int) -> dict[str, AnyArray]:
    given = _json(path)
    named = []
    for role in _ROLES:
        if not isinstance(given.get(role), list):
            raise FileError(f"{path}: {role!r} is missing; lists of node ids under {', '.join(_ROLES)} are needed")
        try:
            ids = np.array(given[role], np.int64 if not given[role] else None)
        except (ValueError, OverflowError):
            ids = np.empty(0)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise FileError(f"{path}: {role!r} must be a list of node ids")
        named.append((f"{path}: {role!r}", ids))
    return masks_of(named, nodes)


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
        """The pair in `folder` or its `raw/`; None if it does not exist."""
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

    def size(self, *, features: bool) -> GraphSize:
        """From the headers of both archives."""
        with opened(self.matrix) as archive:
            entries = stored_size(archive).entries
        with opened(self.data) as archive:
            nodes = archive.shape("label")[0]
            loaded = archive.nbytes("label") + archive.nbytes("node_types")
            return GraphSize(nodes, entries, loaded + (archive.nbytes("feature") if features else 0))

    def _labels(self, archive: Archive, nodes: int) -> AnyArray:
        labels = archive.integers("label")
        check_rows(str(self.data), "labels", labels.shape, nodes)
        check_classes(f"{self.data}: 'label'", labels)
        return labels


ADJACENCY = "adj.npz"


@dataclass(frozen=True, slots=True)
class PaGraphFolder:
    """A PaGraph folder. source: the files of the nodes."""

    source: NpyFiles

    @classmethod
    def found(cls, folder: Path) -> PaGraphFolder | None:
        """The layout in `folder` or its `raw/`; None when it is another."""
        home = home_of(folder, ADJACENCY)
        return None if home is None else cls(NpyFiles.in_folder(home))

    def graph(self, name: str) -> Graph:
        """The graph of the matrix; widths from the other files."""
        graph = read_npz(self.source.path / ADJACENCY, name)
        widths = widths_of(self.source, graph.nodes)
        cleaning = replace(graph.cleaning, ignored=(*graph.cleaning.ignored, *widths.unused))
        return replace(graph, features=widths.features, classes=widths.classes, cleaning=cleaning)

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features, labels and masks, if present."""
        return node_arrays(self.source, nodes, wanted)

    def size(self, *, features: bool) -> GraphSize:
        """From headers."""
        with opened(self.source.path / ADJACENCY) as archive:
            size = stored_size(archive)
        held = contents_of(self.source)
        beside = [held.labels, held.features if features else None]
        return replace(size, loaded=size.loaded + sum(self.source.nbytes(name) for name in beside if name is not None))
