"""Node arrays of an archive or a folder, under the names that all formats share (see `nodes`).

The split may be given by masks, by tables of several splits, or by node numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from gcnsim.core.errors import FileError, plural
from gcnsim.core.ids import AnyArray, BoolArray, frozen
from gcnsim.graph.formats.arrays import whole_numbers, whole_row
from gcnsim.graph.formats.contents import PARTS, ArraySource, Contents, SplitArrays, contents_of, named_like

MASKS = ("train_mask", "val_mask", "test_mask")

_LISTED = 12
"""The most names in a message."""


def check_whole(source: ArraySource, held: Contents) -> None:
    """Raise FileError, with the source's names, if a part of the split in `held` is missing."""
    missing = [part for part in PARTS if part not in held.split]
    if not missing:
        return
    end = ".npy" if source.path.is_dir() else ""
    names = {part: f"{value.name}{end}" for part, value in held.split.items()}
    part, like = next(iter(names.items()))
    needed = [names.get(item) or named_like(like, part, item) for item in PARTS]
    others = [f"{name}{end}" for name in held.unknown]
    unread = f"; not understood: {', '.join(others[:_LISTED])}" if others else ""
    raise FileError(
        f"{source.path}: only {', '.join(names.values())}; all of {', '.join(needed)} are needed, or none{unread}"
    )


def masks_from(source: ArraySource, split: Mapping[str, SplitArrays], nodes: int) -> dict[str, AnyArray]:
    """The masks of `split` by part (`train_mask`, ...), uint8 or bool [nodes]; of several splits the first.

    Raises FileError for invalid or duplicate ids, for masks of other shapes or values than 0 and 1, and for parts with
    different numbers of splits.
    """
    found = {f"{part}_mask": _mask(source, value, nodes) for part, value in split.items()}
    counts = {item.name: splits_in(source, item, nodes) for item in split.values()}
    if len(set(counts.values())) > 1:
        held = ", ".join(f"{name} holds {count}" for name, count in counts.items())
        raise FileError(f"{source.path}: {held} splits; equally many are needed")
    return found


def splits_in(source: ArraySource, split: SplitArrays, nodes: int) -> int:
    """The number of splits in the array, from its header: S for a table [S, N] or [N, S], otherwise 1."""
    shape = source.shape(split.name)
    if split.kind == "ids" or len(shape) != 2 or 1 in shape or nodes not in shape:
        return 1
    return shape[0] if shape[1] == nodes else shape[1]


def mask_of(where: str, ids: AnyArray, nodes: int) -> BoolArray:
    """bool[nodes], True at `ids`. Raises FileError for invalid or duplicate ids."""
    if np.unique(ids).size < ids.size:
        known = " (a mask has bool values, or is named train_mask)" if _looks_like_mask(ids, nodes) else ""
        raise FileError(f"{where} holds a node number more than once; each is allowed once{known}")
    if ids.size and (ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= nodes):
        raise FileError(f"{where}: node ids run from {ids.min()} to {ids.max()}; 0 to {nodes - 1} are allowed")
    mask = np.zeros(nodes, dtype=np.bool_)
    mask[ids.astype(np.int64)] = True
    return frozen(mask)


def masks_of(named: Iterable[tuple[str, AnyArray]], nodes: int) -> dict[str, AnyArray]:
    """The three masks from the ids of train, val and test, each with its name for messages."""
    return {name: mask_of(where, ids, nodes) for name, (where, ids) in zip(MASKS, named, strict=True)}


def _mask(source: ArraySource, split: SplitArrays, nodes: int) -> AnyArray:
    where, array = source.where(split.name), source.array(split.name)
    if split.kind == "mask" or (split.kind == "either" and _looks_like_mask(array, nodes)):
        return _zeros_and_ones(where, array, nodes)
    if array.dtype.kind == "b":
        return _zeros_and_ones(where, array, nodes)
    ids = array if array.size else np.empty(0, np.int64)
    ids = whole_row(where, ids[0] if ids.ndim == 2 and ids.shape[0] == 1 else ids)
    return mask_of(where, ids, nodes)


def _looks_like_mask(array: AnyArray, nodes: int) -> bool:
    """Whether the values can only be a mask: one per node, all 0 or 1."""
    if array.dtype.kind == "b" or array.ndim == 2:
        return True
    return array.shape == (nodes,) and array.dtype.kind in "iuf" and bool(np.isin(array, (0, 1)).all())


def _zeros_and_ones(where: str, array: AnyArray, nodes: int) -> AnyArray:
    """The mask [nodes]; the first column or row of a table."""
    refusal = FileError(f"{where} is {array.dtype}{list(array.shape)}; [{nodes}] of zeros and ones is needed")
    if array.ndim == 2:
        sides = array.shape
        if sides.count(nodes) != 1:
            if sides == (nodes, nodes) and nodes > 1:
                raise FileError(f"{where} is {nodes} x {nodes}: which side is the nodes is not known; give one split")
            raise refusal
        array = array[0] if sides[1] == nodes else array[:, 0]
    if array.shape != (nodes,) or array.dtype.kind not in "biuf" or not np.isin(array, (0, 1)).all():
        raise refusal
    return whole_numbers(where, array)


_SURE_ROWS = 3
"""The least rows of a table of classes for recognising it as one-hot."""


@dataclass(frozen=True, slots=True)
class Found:
    """The arrays under the shared names. spelled: their names in the file. notes: one line per choice made while
    reading.
    """

    arrays: dict[str, AnyArray]
    spelled: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def node_arrays(source: ArraySource, nodes: int, wanted: Collection[str]) -> Found:
    """The `wanted` arrays in `source`, under the shared names; the others are not read.

    Raises FileError for damage, and for invalid labels and splits.
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
        spelled |= {f"{part}_mask": value.name for part, value in held.split.items()}
        several = max(splits_in(source, split, nodes) for split in held.split.values())
        names_of = ", ".join(split.name for split in held.split.values())
        notes += [f"the first of {several} splits in {names_of}"] if several > 1 else []
    return Found(arrays, spelled, tuple(notes))


def labels_of(source: ArraySource, name: str) -> tuple[AnyArray, str]:
    """The labels: integers[N], -1 without a label, or the table [N, C]; and a note if their reading was a choice.

    Raises FileError for anything other than whole numbers or a table.
    """
    where, labels = source.where(name), source.array(name)
    if labels.ndim == 2 and labels.shape[1] > 1:
        return _of_table(labels, name)
    if labels.ndim == 2 and not labels.shape[1]:
        return labels, ""
    if labels.dtype.kind == "f":
        labels = np.where(np.isnan(labels), -1, labels)
    none = unlabelled(labels)
    if none is None:
        return whole_row(where, labels), ""
    labels = np.where(labels == none, -1, labels.astype(np.int64))
    return whole_row(where, labels), f"{none} in {name} is not a class: such nodes have no label"


def unlabelled(labels: AnyArray) -> int | None:
    """The value for no label in unsigned integers of 1 or 2 bytes; None if there is none.

    It is the largest value of the type if no class is near it (255 with classes 0 to 40).
    """
    if labels.dtype.kind != "u" or labels.dtype.itemsize > 2 or not labels.size:
        return None
    most = np.iinfo(labels.dtype).max
    others = labels[labels != most]
    if others.size == labels.size or (others.size and int(others.max()) > most // 2):
        return None
    return int(most)


def _of_table(table: AnyArray, name: str) -> tuple[AnyArray, str]:
    """One class per node if most rows have exactly one 1 and the others none (unknown), else the table; and a note."""
    if table.dtype.kind not in "biuf" or table.shape[0] < _SURE_ROWS:
        return table, ""
    values = np.where(np.isnan(table).all(axis=1, keepdims=True), 0, table) if table.dtype.kind == "f" else table
    ones = np.count_nonzero(values == 1, axis=1)
    if np.count_nonzero(values) != ones.sum():
        return table, ""
    none, several = int(np.count_nonzero(ones == 0)), int(np.count_nonzero(ones > 1))
    if 2 * (none + several) >= ones.size:
        return table, ""
    if several:
        have = "node has" if several == 1 else "nodes have"
        return table, f"{name} is taken for several classes a node: {several:,} {have} more than one"
    classes = np.where(ones == 1, np.argmax(values == 1, axis=1), -1).astype(np.int64)
    unknown = f"; no label: {plural(none, 'node')} without a 1" if none else ""
    return frozen(classes), f"{name} is one-hot: one class a node{unknown}"


def skipped(source: ArraySource, held: Contents, nodes: int) -> tuple[str, ...]:
    """The unused contents: arrays without a meaning, and all but the first of several splits."""
    several = [split for split in held.split.values() if splits_in(source, split, nodes) > 1]
    if not several:
        return held.unknown
    count = splits_in(source, several[0], nodes)
    rest = "split 2" if count == 2 else f"splits 2 to {count}"
    return (*held.unknown, f"{rest} of {', '.join(split.name for split in several)}")


def feature_shape(source: ArraySource, held: Contents) -> tuple[int, ...] | None:
    """[N, F] from headers; None without features."""
    if "shape" in held.sparse:
        return tuple(source.numbers(held.sparse["shape"], 2))
    return None if held.features is None else source.shape(held.features)


def stated_rows(source: ArraySource, held: Contents) -> int | None:
    """The number of nodes that the node arrays imply; None without any. Raises FileError for a bad count."""
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
