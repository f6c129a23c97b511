"""The arrays of the nodes in an archive or a folder, under the names that all formats share (see `nodes`)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from gcnsim.errors import FileError
from gcnsim.graph.formats.arrays import whole_row
from gcnsim.graph.formats.contents import ArraySource, Contents, contents_of
from gcnsim.graph.formats.splits import check_whole, masks_from, splits_in
from gcnsim.ids import AnyArray, frozen

_SURE_ROWS = 3
"""Rows that a table of classes has at least, before it can be known to be one-hot."""


@dataclass(frozen=True, slots=True)
class Found:
    """arrays: by the shared names. spelled: how the file calls them. notes: a line for each reading that was chosen."""

    arrays: dict[str, AnyArray]
    spelled: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def node_arrays(source: ArraySource, nodes: int, wanted: Collection[str]) -> Found:
    """Those of the `wanted` arrays that `source` holds, under the shared names; the others stay unread.

    Raises FileError for damage, and for labels and splits that cannot be read as such.
    """
    held = contents_of(source)
    arrays: dict[str, AnyArray] = {}
    spelled: dict[str, str] = {}
    notes: list[str] = []
    if "x" in wanted:
        names = {f"x_{part}": name for part, name in held.sparse.items()}
        names |= {} if held.features is None else {"x": held.features}
        arrays |= {key: source.array(name) for key, name in names.items()}
        spelled |= names
    if "labels" in wanted and held.labels is not None:
        arrays["labels"], chosen = labels_of(source, held.labels)
        spelled["labels"] = held.labels
        notes += [chosen] if chosen else []
    if "train_mask" in wanted and held.split:
        check_whole(source, held)
        arrays |= masks_from(source, held.split, nodes)
        spelled |= {f"{part}_mask": each.name for part, each in held.split.items()}
        several = max(splits_in(source, each, nodes) for each in held.split.values())
        names_of = ", ".join(each.name for each in held.split.values())
        notes += [f"the first of {several} splits in {names_of}"] if several > 1 else []
    return Found(arrays, spelled, tuple(notes))


def labels_of(source: ArraySource, name: str) -> tuple[AnyArray, str]:
    """The labels: integers[N], -1 where a node has none, or the table [N, C]; and how they were read, where that was a
    choice: a note, else nothing.

    Raises FileError for what is neither whole numbers nor a table.
    """
    where, labels = source.where(name), source.array(name)
    if labels.ndim == 2 and labels.shape[1] > 1:
        if not _one_hot(labels):
            return labels, ""
        return frozen(np.argmax(labels, axis=1).astype(np.int64)), f"{name} is one-hot: one class a node"
    if labels.ndim == 2 and not labels.shape[1]:
        return labels, ""
    if labels.dtype.kind == "f":
        labels = np.where(np.isnan(labels), -1, labels)
    none = unlabelled(labels)
    if none is None:
        return whole_row(where, labels), ""
    labels = np.where(labels == none, -1, labels.astype(np.int64))
    return whole_row(where, labels), f"{none} in {name} is no class: such nodes have no label"


def unlabelled(labels: AnyArray) -> int | None:
    """What stands for no label among unsigned integers of 1 or 2 bytes, which have no -1: the largest value of their
    type, where no class is near it (255 beside classes 0 to 40); None where nothing does.
    """
    if labels.dtype.kind != "u" or labels.dtype.itemsize > 2 or not labels.size:
        return None
    most = np.iinfo(labels.dtype).max
    others = labels[labels != most]
    if others.size == labels.size or (others.size and int(others.max()) > most // 2):
        return None
    return int(most)


def _one_hot(table: AnyArray) -> bool:
    """Whether every row has exactly one 1, all else 0: one class a node then says the same as several do."""
    if table.dtype.kind not in "biuf" or table.shape[0] < _SURE_ROWS:
        return False
    ones = np.count_nonzero(table == 1, axis=1)
    return bool((ones == 1).all() and np.count_nonzero(table) == table.shape[0])


def skipped(source: ArraySource, held: Contents, nodes: int) -> tuple[str, ...]:
    """What of the source is not used: arrays without a meaning, and all but the first of several splits."""
    several = [each for each in held.split.values() if splits_in(source, each, nodes) > 1]
    if not several:
        return held.unknown
    count = splits_in(source, several[0], nodes)
    rest = "split 2" if count == 2 else f"splits 2 to {count}"
    return (*held.unknown, f"{rest} of {', '.join(each.name for each in several)}")


def feature_shape(source: ArraySource, held: Contents) -> tuple[int, ...] | None:
    """[N, F] from headers; None without features."""
    if "shape" in held.sparse:
        return tuple(source.numbers(held.sparse["shape"], 2))
    return None if held.features is None else source.shape(held.features)


def rows_said(source: ArraySource, held: Contents) -> int | None:
    """How many nodes the arrays of the nodes say there are; None where none says. Raises FileError for a bad count."""
    if held.count is not None:
        count = source.array(held.count).ravel()
        if count.dtype.kind not in "iu" or count[0] < 0:
            raise FileError(f"{source.where(held.count)} is {count[0]}; a whole number of nodes is needed")
        return int(count[0])
    shape = feature_shape(source, held)
    if shape:
        return int(shape[0])
    if held.labels is not None and source.shape(held.labels):
        return source.shape(held.labels)[0]
    for split in held.split.values():
        if split.kind == "mask" and len(source.shape(split.name)) == 1:
            return source.shape(split.name)[0]
    return None
