"""Node property data of the Open Graph Benchmark: `raw/` as text or archives, `split/NAME/` as text.

Text: `edge.csv.gz` (source, target), `num-node-list.csv.gz` (one number), `node-feat.csv.gz` [N, F],
`node-label.csv.gz` [N, tasks]; archives: `data.npz` (`edge_index` [2, E], `num_nodes_list`, `node_feat`),
`node-label.npz` (`node_label`). `split/NAME/{train,valid,test}.csv.gz` hold node ids. One task is a class a node (no
number: unknown), more are 0 or 1 each. Hu et al., "Open Graph Benchmark" (2020); format: ogb/io/README.md of the
project. Its processed `.pt` files are pickles and stay unread.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray
from gcnsim.graph.csr import Graph, build_csr
from gcnsim.graph.formats.arrays import class_count, opened
from gcnsim.graph.formats.layouts.layout import check_rows, columns_of, home_of, read_column, read_numbers
from gcnsim.graph.formats.node_arrays import Found, masks_of
from gcnsim.graph.formats.source import GraphSize, text_size

_PARTS = ("train", "valid", "test")
_TEXTS = ("edge", "num-node-list", "num-edge-list", "node-feat", "node-label")
_ARRAYS = ("edge_index", "num_nodes_list", "num_edges_list", "node_feat")


@dataclass(frozen=True, slots=True)
class OgbFolder:
    """An OGB folder. raw: the folder of the files; archived: whether they are `data.npz` and `node-label.npz`."""

    raw: Path
    archived: bool

    @classmethod
    def found(cls, folder: Path) -> OgbFolder | None:
        """The layout in `folder` or its `raw/`; None when it is another."""
        home = home_of(folder, "edge.csv.gz", "num-node-list.csv.gz")
        if home is not None:
            return cls(home, False)
        home = home_of(folder, "data.npz")
        return None if home is None else cls(home, True)

    def graph(self, name: str) -> Graph:
        """One graph of one kind of node."""
        nodes = self._nodes()
        if self.archived:
            with opened(self.raw / "data.npz") as archive:
                edges, where = archive.array("edge_index"), self.raw / "data.npz"
            sides, edges = edges.shape[0] if edges.ndim == 2 else 0, edges.T
        else:
            where = self.raw / "edge.csv.gz"
            edges = read_numbers(where, np.int64)
            sides = edges.shape[1] if edges.size else 2
        if sides != 2:
            raise FileError(f"{where}: edges have {sides} ends; 2 are needed")
        shape, labels = self._feature_shape(), self._labels(nodes)
        if shape is not None:
            check_rows(str(self.raw), "features", shape, nodes)
        return build_csr(
            edges[:, 0] if edges.size else np.empty(0, np.int64),
            edges[:, 1] if edges.size else np.empty(0, np.int64),
            nodes,
            name,
            features=None if shape is None else shape[-1],
            classes=None if labels is None else class_count(labels),
            ignored=self._unread(),
            where=str(where),
        )

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features and labels, if present; masks of the only split."""
        found: dict[str, AnyArray] = {}
        if "x" in wanted and self._feature_shape() is not None:
            found["x"] = self._features()
            check_rows(str(self.raw), "features", found["x"].shape, nodes)
        labels = self._labels(nodes) if "labels" in wanted else None
        if labels is not None:
            found["labels"] = labels
        split = self._split()
        if split is not None:
            files = [_either(split, part) for part in _PARTS]
            found |= masks_of([(str(file), read_column(file, np.int64)) for file in files], nodes)
        return Found(found)

    def size(self, *, features: bool) -> GraphSize:
        """From the headers of the archives; text is counted."""
        nodes = self._nodes()
        if self.archived:
            with opened(self.raw / "data.npz") as archive:
                wide = archive.nbytes("node_feat") if features else 0
                return GraphSize(nodes, 2 * archive.shape("edge_index")[-1], wide + 8 * nodes)
        file = self.raw / "node-feat.csv.gz"
        width = columns_of(file) if features and file.is_file() else 0
        lines, text = text_size(self.raw / "edge.csv.gz")
        return GraphSize(nodes, 2 * lines, text + 4 * nodes * width + 8 * nodes)

    def _unread(self) -> tuple[str, ...]:
        """Files, or arrays of the archive, whose contents are not read."""
        if self.archived:
            with opened(self.raw / "data.npz") as archive:
                return tuple(name for name in archive.names() if name not in _ARRAYS)
        names = sorted(item.name for item in self.raw.glob("*.csv.gz"))
        return tuple(name for name in names if name.removesuffix(".csv.gz") not in _TEXTS)

    def _nodes(self) -> int:
        if self.archived:
            where = self.raw / "data.npz"
            with opened(where) as archive:
                counts = archive.array("num_nodes_list").ravel()
        else:
            where = self.raw / "num-node-list.csv.gz"
            counts = read_column(where, np.int64)
        if counts.size != 1 or counts.dtype.kind not in "iu":
            raise FileError(f"{where}: {counts.size} graphs; 1 is allowed")
        return int(counts[0])

    def _feature_shape(self) -> tuple[int, ...] | None:
        """The shape of the features, None without them.

        In text, rows are counted, because a mismatch must be detected.
        """
        if self.archived:
            with opened(self.raw / "data.npz") as archive:
                return archive.shape("node_feat") if "node_feat" in archive else None
        file = self.raw / "node-feat.csv.gz"
        return (text_size(file)[0], columns_of(file)) if file.is_file() else None

    def _features(self) -> AnyArray:
        if not self.archived:
            return read_numbers(self.raw / "node-feat.csv.gz", np.float32)
        with opened(self.raw / "data.npz") as archive:
            return archive.array("node_feat")

    def _labels(self, nodes: int) -> AnyArray | None:
        file = self.raw / ("node-label.npz" if self.archived else "node-label.csv.gz")
        if not file.is_file():
            return None
        if self.archived:
            with opened(file) as archive:
                labels = archive.array("node_label")
        else:
            labels = read_numbers(file, np.float64)
        check_rows(str(file), "labels", labels.shape, nodes)
        return _one_task(str(file), labels) if labels.ndim == 1 or labels.shape[1] == 1 else labels

    def _split(self) -> Path | None:
        """The folder of the split; None if there is none."""
        root = (self.raw.parent if self.raw.name == "raw" else self.raw) / "split"
        splits = sorted(item for item in root.iterdir() if item.is_dir()) if root.is_dir() else []
        if len(splits) > 1:
            raise FileError(f"{root}: {len(splits)} splits ({', '.join(item.name for item in splits)}); 1 is allowed")
        return splits[0] if splits else None


def _either(split: Path, part: str) -> Path:
    zipped, plain = split / f"{part}.csv.gz", split / f"{part}.csv"
    return plain if plain.is_file() and not zipped.is_file() else zipped


def _one_task(where: str, labels: AnyArray) -> AnyArray:
    """int64[N], -1 for a missing number."""
    column = labels.ravel()
    if column.dtype.kind not in "fiu":
        raise FileError(f"{where}: labels are {column.dtype}; numbers are needed")
    known = ~np.isnan(column)
    with np.errstate(invalid="ignore"):  # inf has a remainder of NaN, which is not a class
        wrong = known & ~((column >= 0) & (column < 2**31) & (column % 1 == 0))
    if wrong.any():
        raise FileError(f"{where}: class labels must be whole numbers from 0, or nan, not {column[wrong][0]}")
    return np.where(known, column, -1).astype(np.int64)
