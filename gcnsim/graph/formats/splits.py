"""Who trains, validates and tests: masks from masks, from tables of several splits, and from node numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from gcnsim.errors import FileError
from gcnsim.graph.formats.array_names import PARTS, named_like
from gcnsim.graph.formats.arrays import whole_numbers, whole_row
from gcnsim.graph.formats.contents import ArraySource, Contents, Split
from gcnsim.ids import AnyArray, BoolArray, frozen

MASKS = ("train_mask", "val_mask", "test_mask")

_LISTED = 12
"""Names in a message."""


def check_whole(source: ArraySource, held: Contents) -> None:
    """Raises FileError, in the source's own words, where a part of the split in `held` is missing."""
    missing = [part for part in PARTS if part not in held.split]
    if not missing:
        return
    end = ".npy" if source.path.is_dir() else ""
    names = {part: f"{each.name}{end}" for part, each in held.split.items()}
    part, like = next(iter(names.items()))
    needed = [names.get(each) or named_like(like, part, each) for each in PARTS]
    others = [f"{name}{end}" for name in held.unknown]
    unread = f"; not understood: {', '.join(others[:_LISTED])}" if others else ""
    raise FileError(
        f"{source.path}: only {', '.join(names.values())}; all of {', '.join(needed)} are needed, or none{unread}"
    )


def masks_from(source: ArraySource, split: Mapping[str, Split], nodes: int) -> dict[str, AnyArray]:
    """The masks that `split` names, by part (`train_mask`, ...), uint8 or bool [nodes]; of several splits the first.

    Raises FileError for ids that are no node or stand twice, other shapes and values than 0 and 1 of a mask, and parts
    with different numbers of splits.
    """
    found = {f"{part}_mask": _mask(source, each, nodes) for part, each in split.items()}
    counts = {each.name: splits_in(source, each, nodes) for each in split.values()}
    if len(set(counts.values())) > 1:
        held = ", ".join(f"{name} holds {count}" for name, count in counts.items())
        raise FileError(f"{source.path}: {held} splits; equally many are needed")
    return found


def splits_in(source: ArraySource, split: Split, nodes: int) -> int:
    """How many splits the array holds: of a table [S, N] or [N, S] S, else 1. From its header."""
    shape = source.shape(split.name)
    if split.kind == "ids" or len(shape) != 2 or 1 in shape or nodes not in shape:
        return 1
    return shape[0] if shape[1] == nodes else shape[1]


def mask_of(where: str, ids: AnyArray, nodes: int) -> BoolArray:
    """bool[nodes], True at `ids`; a mask bool[nodes] is one already.

    Raises FileError for ids that are no node or stand twice.
    """
    if ids.dtype.kind == "b":
        if ids.shape != (nodes,):
            raise FileError(f"{where} is {ids.dtype}{list(ids.shape)}; a mask needs [{nodes}]")
        return frozen(ids)
    if np.unique(ids).size < ids.size:
        known = " (a mask has bool values, or is named train_mask)" if _looks_like_mask(ids, nodes) else ""
        raise FileError(f"{where} holds a node number more than once; each is allowed once{known}")
    if ids.size and (ids.dtype.kind not in "iu" or ids.min() < 0 or ids.max() >= nodes):
        raise FileError(f"{where}: node ids run from {ids.min()} to {ids.max()}; 0 to {nodes - 1} are allowed")
    mask = np.zeros(nodes, dtype=np.bool_)
    mask[ids.astype(np.int64)] = True
    return frozen(mask)


def masks_of(named: Iterable[tuple[str, AnyArray]], nodes: int) -> dict[str, AnyArray]:
    """The three masks from the ids of train, val and test, each with the name of where they stand."""
    return {name: mask_of(where, ids, nodes) for name, (where, ids) in zip(MASKS, named, strict=True)}


def _mask(source: ArraySource, split: Split, nodes: int) -> AnyArray:
    where, array = source.where(split.name), source.array(split.name)
    if split.kind == "mask" or (split.kind == "either" and _looks_like_mask(array, nodes)):
        return _zeros_and_ones(where, array, nodes)
    if array.dtype.kind == "b":
        return _zeros_and_ones(where, array, nodes)
    ids = array if array.size else np.empty(0, np.int64)
    ids = whole_row(where, ids[0] if ids.ndim == 2 and ids.shape[0] == 1 else ids)
    return mask_of(where, ids, nodes)


def _looks_like_mask(array: AnyArray, nodes: int) -> bool:
    """Whether the values can be a mask alone: as many as nodes, none but 0 and 1."""
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
