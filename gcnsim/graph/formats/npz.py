"""Graphs in NumPy archives: `indptr` and `indices` with optional features and labels, or a SciPy sparse matrix.

Only the structure is read in full. Feature arrays can be a hundred times larger, so of `x` just the header is parsed
inside the zip; no object array is ever opened, since that would run a pickle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gcnsim.errors import FileError
from gcnsim.graph.build import build_csr, from_csr
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.arrays import Archive, class_count, opened
from gcnsim.graph.formats.size import Size
from gcnsim.ids import AnyArray


def read_npz(path: Path, name: str) -> Graph:
    """The graph in the archive at `path`.

    Either `indptr` integers[N + 1], `indices` integers[nnz] and, optionally, `x` [N, F] or `x_shape`, and `labels` [N]
    (class numbers, negative: unknown) or [N, C]; or what `scipy.sparse.save_npz` writes (csr, csc, coo), of which every
    stored entry is an edge. Raises FileError when the archive is damaged, lacks a key or has a wrong dtype; GraphError
    as `build_csr` does.
    """
    with opened(path) as archive:
        found = _scipy_matrix(archive) if "format" in archive else _compressed_rows(archive)
    first, second, where = found.first, found.second, str(path)
    if found.coordinates:
        return build_csr(first, second, found.nodes, name, ignored=found.ignored, where=where)
    return from_csr(
        first,
        second,
        name,
        features=found.features,
        classes=found.classes,
        ignored=found.ignored,
        where=where,
    )


def stored_size(archive: Archive, *, features: bool = False) -> Size:
    """What `read_npz` reads of the archive and, with `features`, the node arrays too; from headers alone."""
    rows = 2 * archive.shape("row")[0] if "row" in archive else archive.shape("indices")[0]
    nodes = int(archive.shape("indptr")[0]) - 1 if "indptr" in archive else archive.numbers("shape", 2)[0]
    wide = ("x", "x_data", "x_indices", "x_indptr") if features else ()
    return Size(nodes, rows, sum(archive.nbytes(key) for key in ("labels", "data", *wide)))


MOST_WIDTH = 2**31 - 1
"""Of features: columns are counted in 32 bits."""

MOST_CLASSES = 1_000_000
"""Of labels: a class of a higher number is no class."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What an archive holds: indptr and indices, or with `coordinates` the rows and columns of its entries."""

    first: AnyArray
    second: AnyArray
    nodes: int
    coordinates: bool = False
    ignored: tuple[str, ...] = ()
    features: int | None = None
    classes: int | None = None


def _compressed_rows(archive: Archive) -> _Found:
    indptr, indices = archive.integers("indptr"), archive.integers("indices")
    nodes = max(indptr.size - 1, 0)
    return _Found(indptr, indices, nodes, features=_features(archive, nodes), classes=_classes(archive, nodes))


def _features(archive: Archive, nodes: int) -> int | None:
    if "x_shape" in archive:
        shape = tuple(archive.numbers("x_shape", 2))
    elif "x" in archive:
        shape = archive.shape("x")
    else:
        return None
    if len(shape) != 2 or shape[0] != nodes or not 0 <= shape[1] <= MOST_WIDTH:
        needed = f"[{nodes}, width] is needed, width 0 to {MOST_WIDTH:,}"
        raise FileError(f"{archive.path}: features have shape {list(shape)}; {needed}")
    return int(shape[1])


def _classes(archive: Archive, nodes: int) -> int | None:
    if "labels" not in archive:
        return None
    shape = archive.shape("labels")
    if len(shape) not in (1, 2) or shape[0] != nodes:
        raise FileError(f"{archive.path}: labels have shape {list(shape)}; [{nodes}] or [{nodes}, classes] is needed")
    if len(shape) == 2:
        return int(shape[1])
    known = class_count(archive.integers("labels"))
    if known is not None and known > MOST_CLASSES:
        raise FileError(f"{archive.path}: 'labels' run up to {known - 1}; at most {MOST_CLASSES} classes are allowed")
    return known


def _scipy_matrix(archive: Archive) -> _Found:
    if math.prod(archive.shape("format")) != 1:
        raise FileError(f"{archive.path}: 'format' has shape {list(archive.shape('format'))}; one name is needed")
    layout = archive.array("format").item()
    layout = layout.decode("ascii") if isinstance(layout, bytes) else str(layout)
    shape = archive.numbers("shape", 2)
    if shape[0] != shape[1]:
        raise FileError(f"{archive.path}: an adjacency matrix must be square, not {' x '.join(map(str, shape))}")
    ignored = ("weights",) if "data" in archive and np.any(archive.array("data") != 1) else ()
    if layout == "coo":
        return _Found(archive.integers("row"), archive.integers("col"), shape[0], coordinates=True, ignored=ignored)
    if layout not in ("csr", "csc"):
        raise FileError(f"{archive.path}: unknown sparse format {layout!r}; supported: csr, csc, coo")
    indptr = archive.integers("indptr")
    if indptr.size != shape[0] + 1:
        raise FileError(f"{archive.path}: indptr has {indptr.size} values; {shape[0]} rows need {shape[0] + 1}")
    # A column-compressed matrix is its transpose's rows, and the graph has both directions anyway.
    return _Found(indptr, archive.integers("indices"), shape[0], ignored=ignored)
