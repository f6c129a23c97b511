"""Graphs in NumPy archives: `indptr` and `indices` with optional features and labels, or a SciPy sparse matrix.

Only the structure is read in full. Feature arrays can be a hundred times larger, so of `x` just the header is parsed
inside the zip; no object array is ever opened, since that would run a pickle.
"""

from __future__ import annotations

import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

import numpy as np

from gcnsim.errors import FileError
from gcnsim.graph.build import build_csr, from_csr
from gcnsim.graph.csr import Graph
from gcnsim.ids import AnyArray

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
    MemoryError,
)
"""What zipfile and the .npy header parser raise on bytes that are not what they claim to be."""


def read_npz(path: Path, name: str) -> Graph:
    """The graph in the archive at `path`.

    Either `indptr` integers[N + 1], `indices` integers[nnz] and, optionally, `x` [N, F] or `x_shape`, and `labels` [N]
    (class numbers, negative: unknown) or [N, C]; or what `scipy.sparse.save_npz` writes (csr, csc, coo), of which every
    stored entry is an edge. Raises FileError when the archive is damaged, lacks a key or has a wrong dtype; GraphError
    as `build_csr` does.
    """
    with _opened(path) as archive:
        found = _scipy_matrix(archive) if "format" in archive else _compressed_rows(archive)
    first, second, where = found.first, found.second, str(path)
    if found.coordinates:
        return build_csr(first, second, found.nodes, name, weights_ignored=found.weights, where=where)
    return from_csr(
        first,
        second,
        name,
        features=found.features,
        classes=found.classes,
        weights_ignored=found.weights,
        where=where,
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """What an archive holds: indptr and indices, or with `coordinates` the rows and columns of its entries."""

    first: AnyArray
    second: AnyArray
    nodes: int
    coordinates: bool = False
    weights: bool = False
    features: int | None = None
    classes: int | None = None


@dataclass(frozen=True, slots=True)
class _Archive:
    """An open .npz; its methods read one array each, checked against the zip's checksum."""

    path: Path
    zip: zipfile.ZipFile

    def __contains__(self, key: str) -> bool:
        return f"{key}.npy" in self.zip.namelist()

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape in the array's header; the data stays unread."""
        with self.zip.open(f"{key}.npy") as file:
            return self._header(key, file)[0]

    def array(self, key: str) -> AnyArray:
        """The whole array, read-only."""
        if key not in self:
            found = ", ".join(sorted(item.removesuffix(".npy") for item in self.zip.namelist())) or "nothing"
            raise FileError(f"{self.path}: key {key!r} is missing (found: {found})")
        raw = self.zip.read(f"{key}.npy")
        file = BytesIO(raw)
        shape, fortran, dtype = self._header(key, file)
        begin = file.tell()
        if math.prod(shape) * dtype.itemsize != len(raw) - begin:
            raise FileError(f"{self.path}: truncated or altered: {key!r} is not {dtype}{list(shape)}")
        return np.ndarray(shape, dtype, raw, begin, order="F" if fortran else "C")

    def integers(self, key: str) -> AnyArray:
        """The array, refused unless it is a row of integers."""
        array = self.array(key)
        if array.dtype.kind not in "iu" or array.ndim != 1:
            raise FileError(f"{self.path}: {key!r} is {array.dtype}{list(array.shape)}; a row of integers is needed")
        return array

    def _header(self, key: str, file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise FileError(f"{self.path}: {key!r} has .npy version {version}; 1.0 and 2.0 are read")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.hasobject:
            raise FileError(f"{self.path}: {key!r} is an object array (a pickle), which is never opened")
        return shape, fortran, dtype


@contextmanager
def _opened(path: Path) -> Iterator[_Archive]:
    try:
        with zipfile.ZipFile(path) as archive:
            yield _Archive(path, archive)
    except _DAMAGE as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise FileError(f"{path}: truncated or altered: {why}") from None


def _compressed_rows(archive: _Archive) -> _Found:
    indptr, indices = archive.integers("indptr"), archive.integers("indices")
    nodes = max(indptr.size - 1, 0)
    return _Found(indptr, indices, nodes, features=_features(archive, nodes), classes=_classes(archive, nodes))


def _features(archive: _Archive, nodes: int) -> int | None:
    if "x_shape" in archive:
        shape = tuple(archive.integers("x_shape").tolist())
    elif "x" in archive:
        shape = archive.shape("x")
    else:
        return None
    if len(shape) != 2 or shape[0] != nodes or shape[1] < 0:
        raise FileError(f"{archive.path}: features have shape {list(shape)}; [{nodes}, width] is needed")
    return int(shape[1])


def _classes(archive: _Archive, nodes: int) -> int | None:
    if "labels" not in archive:
        return None
    shape = archive.shape("labels")
    if len(shape) not in (1, 2) or shape[0] != nodes:
        raise FileError(f"{archive.path}: labels have shape {list(shape)}; [{nodes}] or [{nodes}, classes] is needed")
    if len(shape) == 2:
        return int(shape[1])
    labels = archive.integers("labels")
    known = int(labels.max(initial=-1)) + 1
    return known if known > 0 else None


def _scipy_matrix(archive: _Archive) -> _Found:
    layout = archive.array("format").item()
    layout = layout.decode("ascii") if isinstance(layout, bytes) else str(layout)
    shape = archive.integers("shape").tolist()
    if len(shape) != 2 or shape[0] != shape[1]:
        raise FileError(f"{archive.path}: a matrix of shape {shape} is no adjacency; it must be square")
    weights = "data" in archive and bool(np.any(archive.array("data") != 1))
    if layout == "coo":
        return _Found(archive.integers("row"), archive.integers("col"), shape[0], coordinates=True, weights=weights)
    if layout not in ("csr", "csc"):
        raise FileError(f"{archive.path}: sparse format {layout!r}; csr, csc and coo are read")
    indptr = archive.integers("indptr")
    if indptr.size != shape[0] + 1:
        raise FileError(f"{archive.path}: indptr has {indptr.size} values; {shape[0]} rows need {shape[0] + 1}")
    # A column-compressed matrix is its transpose's rows, and the graph has both directions anyway.
    return _Found(indptr, archive.integers("indices"), shape[0], weights=weights)
