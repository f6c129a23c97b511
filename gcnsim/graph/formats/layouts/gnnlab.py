"""GNNLab's folder of plain numbers: `meta.txt`, `indptr.bin`, `indices.bin`, and further `.bin` files of the nodes.

`meta.txt` has a name and a number a line: NUM_NODE, NUM_EDGE, FEAT_DIM, NUM_CLASS, NUM_TRAIN_SET, NUM_VALID_SET,
NUM_TEST_SET. The files have no header: `indptr`, `indices` and the sets are uint32, `feat` is float32, `label` uint64,
as datagen/README.md of the project says; each must have exactly the bytes that the counts of `meta.txt` ask for. Yang
et al., "GNNLab" (2022).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gcnsim.errors import FileError
from gcnsim.graph.build import from_csr
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.arrays import class_count, read_raw
from gcnsim.graph.formats.layouts.layout import home_of
from gcnsim.graph.formats.node_arrays import Found, masks_of
from gcnsim.graph.formats.source import Size, file_text
from gcnsim.ids import AnyArray

_META, _SETS = "meta.txt", {"train_set": "NUM_TRAIN_SET", "valid_set": "NUM_VALID_SET", "test_set": "NUM_TEST_SET"}


@dataclass(frozen=True, slots=True)
class GnnLabFolder:
    """home: the folder of the files."""

    home: Path

    @classmethod
    def found(cls, folder: Path) -> GnnLabFolder | None:
        """The layout in `folder`; None when it is another."""
        home = home_of(folder, _META, "indptr.bin", "indices.bin")
        return None if home is None else cls(home)

    def graph(self, name: str) -> Graph:
        """The graph, with the widths that `meta.txt` and the labels say."""
        said = self._said()
        nodes, edges = self._count(said, "NUM_NODE"), self._count(said, "NUM_EDGE")
        indptr = read_raw(self.home / "indptr.bin", np.uint32, (nodes + 1,))
        indices = read_raw(self.home / "indices.bin", np.uint32, (edges,))
        features, labels, sets = self._features(said, nodes), self._labels(nodes), self._sets(said)
        classes = said.get("NUM_CLASS") or (None if labels is None else class_count(labels))
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
        """Features, labels and masks as far as the files are there and `meta.txt` says their sizes."""
        said = self._said()
        features = self._features(said, nodes) if "x" in wanted else None
        labels = self._labels(nodes) if "labels" in wanted else None
        found = {name: array for name, array in (("x", features), ("labels", labels)) if array is not None}
        sets = self._sets(said)
        if sets:
            ids = [(str(file), read_raw(file, np.uint32, (count,))) for file, count in sets.items()]
            found |= masks_of(ids, nodes)
        return Found(found)

    def size(self, *, features: bool) -> Size:
        """From `meta.txt`."""
        said = self._said()
        nodes = self._count(said, "NUM_NODE")
        return Size(nodes, self._count(said, "NUM_EDGE"), 8 * nodes + 4 * nodes * said.get("FEAT_DIM", 0) * features)

    def _said(self) -> dict[str, int]:
        """The counts of `meta.txt`. Raises FileError for a line that is not a name and whole number."""
        said: dict[str, int] = {}
        for number, line in enumerate(file_text(self.home / _META).decode("utf-8", "replace").splitlines(), start=1):
            words = line.split()
            if not words:
                continue
            if len(words) != 2 or not words[1].isdecimal() or len(words[1]) > 18:
                raise FileError(
                    f"{self.home / _META}: line {number}: {line[:40]!r}; a name and a whole number are needed"
                )
            said[words[0]] = int(words[1])
        return said

    def _count(self, said: dict[str, int], key: str) -> int:
        if key not in said:
            raise FileError(f"{self.home / _META}: {key} is missing; a .bin file does not say its own size")
        return said[key]

    def _features(self, said: dict[str, int], nodes: int) -> AnyArray | None:
        file = self.home / "feat.bin"
        return read_raw(file, np.float32, (nodes, self._count(said, "FEAT_DIM"))) if file.is_file() else None

    def _labels(self, nodes: int) -> AnyArray | None:
        file = self.home / "label.bin"
        return read_raw(file, np.uint64, (nodes,)) if file.is_file() else None

    def _sets(self, said: dict[str, int]) -> dict[Path, int]:
        """The files of train, validation and test with their counts; none unless all three are there."""
        files = {self.home / f"{part}.bin": key for part, key in _SETS.items()}
        if not all(file.is_file() for file in files):
            return {}
        return {file: self._count(said, key) for file, key in files.items()}
