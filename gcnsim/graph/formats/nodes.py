"""The node data of a graph file: features, labels, and the split into training, validation and test nodes.

Every format returns arrays under these names, and all are checked here: `x` [N, F] or the compressed rows `x_data`,
`x_indices`, `x_indptr`, `x_shape`; `labels` integers[N] (negative: unknown) or [N, C] in 0..1 for several classes per
node; `train_mask`, `val_mask`, `test_mask` [N] of 0 and 1.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.core.errors import FileError, plural
from gcnsim.core.ids import AnyArray, BoolArray, frozen
from gcnsim.graph.formats.arrays import opened, whole_row
from gcnsim.graph.formats.contents import contents_of
from gcnsim.graph.formats.layouts import layout_of
from gcnsim.graph.formats.node_arrays import MASKS, Found, node_arrays
from gcnsim.graph.formats.npz import MOST_CLASSES, MOST_WIDTH
from gcnsim.graph.formats.source import limits_named

__all__ = ["MASKS", "SPARSE", "NodeArrays", "check_features", "named_arrays", "read_nodes"]

SPARSE = ("x_data", "x_indices", "x_indptr", "x_shape")


@dataclass(frozen=True, slots=True)
class NodeArrays:
    """Checked arrays of the N nodes; None for data that the source lacks.

    features: float32[N, F], or a canonical scipy csr_array of float32. labels: int64[N], -1 unknown; or float32[N, C]
    in 0..1. masks: train, val, test, bool[N], disjoint. notes: one line per choice made while reading, such as the
    first of several splits.
    """

    features: Any | None = None
    labels: AnyArray | None = None
    masks: tuple[BoolArray, BoolArray, BoolArray] | None = None
    notes: tuple[str, ...] = ()


def read_nodes(path: str | Path, nodes: int, *, features: bool = True, labels: bool = True) -> NodeArrays:
    """The node data at `path` for its graph of `nodes` nodes; empty for a format without node data.

    features, labels: False skips them. Raises FileError for damage and for arrays of other shapes, types or values than
    the module's docstring states.
    """
    wanted = [*MASKS, *(("x", *SPARSE) if features else ()), *(("labels",) if labels else ())]
    where, source = str(path), Path(path)
    with limits_named(source):
        if source.is_dir():
            found = layout_of(source).arrays(nodes, wanted)
        elif zipfile.is_zipfile(source):
            with opened(source) as archive:
                found = node_arrays(archive, nodes, wanted)
        else:
            return NodeArrays()
        arrays = _Given(where, found)
        return NodeArrays(_features(arrays, nodes), _labels(arrays, nodes), _masks(arrays, nodes), found.notes)


def check_features(path: str | Path) -> None:
    """Check the features of the archive at `path` without storing them; other formats are skipped.

    Raises FileError for damage and values that are not finite.
    """
    if Path(path).is_dir() or not zipfile.is_zipfile(path):
        return
    with opened(Path(path)) as archive:
        held = contents_of(archive)
        for name in (held.features, held.sparse.get("data")):
            if name is not None:
                archive.check_finite(name)


def named_arrays(held: NodeArrays) -> dict[str, AnyArray]:
    """`held` under the names of the module's docstring, masks as bytes; `read_nodes` restores it."""
    arrays: dict[str, AnyArray] = {}
    if isinstance(held.features, np.ndarray):
        arrays["x"] = held.features
    elif held.features is not None:
        matrix = held.features
        parts = (matrix.data, matrix.indices, matrix.indptr, np.array(matrix.shape, np.int64))
        arrays.update(zip(SPARSE, parts, strict=True))
    if held.labels is not None:
        arrays["labels"] = held.labels
    if held.masks is not None:
        arrays.update({name: mask.astype(np.uint8) for name, mask in zip(MASKS, held.masks, strict=True)})
    return arrays


@dataclass(frozen=True, slots=True)
class _Given:
    """The arrays of the source at `path`, with their original names."""

    path: str
    found: Found

    def __contains__(self, name: str) -> bool:
        return name in self.found.arrays

    def __getitem__(self, name: str) -> AnyArray:
        return self.found.arrays[name]

    def spelled(self, name: str) -> str:
        """The source's own name of the array."""
        return self.found.spelled.get(name, name)

    def where(self, name: str) -> str:
        """The start of messages about the array."""
        return f"{self.path}: {self.spelled(name)!r}"


def _features(arrays: _Given, nodes: int) -> Any | None:
    if any(name in arrays for name in SPARSE[:3]):
        matrix = _sparse(arrays, nodes)
        values = matrix.data
    elif "x" in arrays:
        matrix = values = _float32(arrays, "x")
    else:
        return None
    if matrix.ndim != 2 or matrix.shape[0] != nodes or matrix.shape[1] < 1:
        raise FileError(f"{arrays.path}: features have shape {list(matrix.shape)}; [{nodes}, 1 or more] is needed")
    if not np.isfinite(values).all():
        raise FileError(f"{arrays.path}: the features hold values that are not finite in float32")
    return matrix


def _float32(arrays: _Given, name: str) -> AnyArray:
    array = arrays[name]
    if array.dtype.kind not in "fiub":
        raise FileError(f"{arrays.where(name)} is {array.dtype}{list(array.shape)}; numbers are needed")
    with np.errstate(over="ignore"):  # reported later as values that are not finite
        return frozen(array.astype(np.float32, copy=False))


def _sparse(arrays: _Given, nodes: int) -> Any:
    """The scipy csr_array with sorted columns and no duplicates, after the checks that scipy omits."""
    from scipy.sparse import csr_array

    path, missing = arrays.path, [name for name in SPARSE if name not in arrays]
    if missing:
        raise FileError(f"{path}: sparse features need {', '.join(SPARSE)}; missing: {', '.join(missing)}")
    data = _float32(arrays, "x_data")
    indices, indptr, shape = (whole_row(arrays.where(name), arrays[name]) for name in SPARSE[1:])
    if shape.size != 2 or shape[0] != nodes or not 0 < shape[1] <= MOST_WIDTH:
        raise FileError(f"{arrays.where('x_shape')} is {shape.tolist()}; [{nodes}, 1 or more] is needed")
    if indptr.size != nodes + 1 or indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
        raise FileError(f"{arrays.where('x_indptr')} must rise from 0 to {indices.size} in {nodes + 1} values")
    if indices.size and not (indices.min() >= 0 and indices.max() < shape[1]):
        run = f"run from {indices.min()} to {indices.max()}"
        raise FileError(f"{arrays.where('x_indices')} {run}; {shape[1]} columns are there")
    if data.shape != indices.shape:
        raise FileError(f"{arrays.where('x_data')} has shape {list(data.shape)}; {list(indices.shape)} is needed")
    rows = (data, indices.astype(np.int32, copy=False), indptr.astype(np.int64, copy=False))
    matrix = csr_array(rows, shape=(nodes, int(shape[1])))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _labels(arrays: _Given, nodes: int) -> AnyArray | None:
    """As in `NodeArrays`; None if there are no labels or all are unknown."""
    if "labels" not in arrays:
        return None
    labels, path, where = arrays["labels"], arrays.path, arrays.where("labels")
    if labels.ndim == 2 and labels.shape[0] == nodes and labels.shape[1] > 0:
        several = _float32(arrays, "labels")
        if not ((several >= 0) & (several <= 1)).all():
            raise FileError(f"{where} of several classes per node must be 0 to 1")
        return several
    if labels.shape != (nodes,):
        raise FileError(f"{path}: labels have shape {list(labels.shape)}; [{nodes}] or [{nodes}, classes] is needed")
    known = whole_row(where, labels)
    if known.max() >= MOST_CLASSES:
        raise FileError(f"{where} run up to {known.max()}; at most {MOST_CLASSES} classes are allowed")
    return frozen(np.maximum(known.astype(np.int64), -1)) if known.max() >= 0 else None


def _masks(arrays: _Given, nodes: int) -> tuple[BoolArray, BoolArray, BoolArray] | None:
    if not any(name in arrays for name in MASKS):
        return None
    for name in MASKS:
        mask = arrays[name]
        if mask.shape != (nodes,) or mask.dtype.kind not in "iub" or mask.min() < 0 or mask.max() > 1:
            raise FileError(
                f"{arrays.where(name)} is {mask.dtype}{list(mask.shape)}; [{nodes}] of zeros and ones is needed"
            )
    train, val, test = (frozen(arrays[name].astype(np.bool_)) for name in MASKS)
    for first, second, here in ((0, 1, train & val), (0, 2, train & test), (1, 2, val & test)):
        if here.any():
            shared = plural(int(np.count_nonzero(here)), "node")
            both = f"{arrays.spelled(MASKS[first])} and {arrays.spelled(MASKS[second])}"
            raise FileError(f"{arrays.path}: {both} have {shared} in common; allowed: none")
    return train, val, test
