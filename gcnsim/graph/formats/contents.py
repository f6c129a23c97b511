"""The role of each array of a graph file: edges, features, labels, split, or unknown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from gcnsim.graph.formats import array_names as known
from gcnsim.graph.formats.array_names import first_of, plain
from gcnsim.ids import AnyArray

_SCIPY = ("format", "shape", "data", "row", "col", "indptr", "indices", "isarray")
"""By plain name, what `scipy.sparse.save_npz` writes."""


_ONLY_SPLITS = ("train", "training", "test", "testing")
"""By plain name, what is part of a split even where no other part is there."""


class ArraySource(Protocol):
    """Named arrays, each read when it is asked for: an archive, or a folder of `.npy` files."""

    @property
    def path(self) -> Path:
        """Of the archive or the folder, for messages."""

    def names(self) -> tuple[str, ...]:
        """The names of all arrays."""

    def where(self, key: str) -> str:
        """How messages begin that are about the array."""

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape in the array's header; the data stays unread."""

    def nbytes(self, key: str) -> int:
        """Bytes of the array; 0 when it is not there."""

    def array(self, key: str) -> AnyArray:
        """The whole array, read-only. Raises FileError for damage and for an object array."""

    def integers(self, key: str) -> AnyArray:
        """The array, refused unless it is a row of whole numbers."""

    def numbers(self, key: str, count: int) -> list[int]:
        """`count` integers, refused before they are read where there are more or fewer."""


@dataclass(frozen=True, slots=True)
class Edges:
    """How the edges are stored, and the names of their arrays.

    scipy: what `scipy.sparse.save_npz` writes, no names. rows: where rows begin, and columns. table: one array of both
    ends. ends: sources and targets. shape, weights: further arrays of the same matrix.
    """

    form: Literal["scipy", "rows", "table", "ends"]
    names: tuple[str, ...] = ()
    shape: str | None = None
    weights: str | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """One part of the split: its array, and whether the name says mask, node numbers, or neither."""

    name: str
    kind: Literal["mask", "ids", "either"]


@dataclass(frozen=True, slots=True)
class Contents:
    """The names of the arrays by what they hold; None or empty where there is none.

    sparse: of data, indices, indptr and shape those that are there, by these words; the shape may stand alone. split:
    train, val and test, or those of them that are there. unknown: all that has no meaning here.
    """

    edges: Edges | None
    features: str | None
    sparse: dict[str, str]
    labels: str | None
    count: str | None
    split: dict[str, Split]
    unknown: tuple[str, ...]


def contents_of(source: ArraySource) -> Contents:
    """What the arrays of `source` are, by their names alone; no array is read."""
    held: dict[str, str] = {}
    for name in source.names():
        held.setdefault(plain(name), name)
    edges = _edges(held)
    # What names the edges is nothing else besides: `row`, `col`, `val` of a matrix are no split.
    left = {key: name for key, name in held.items() if edges is None or name not in (*edges.names, edges.weights)}
    if edges is not None and edges.form == "scipy":
        left = {key: name for key, name in left.items() if key not in _SCIPY}
    features, sparse = _features(left)
    labels, split = first_of(known.LABELS, left), _split(left)
    count = first_of(known.COUNTS, left)
    if count is not None and math.prod(source.shape(count)) != 1:
        count = None
    used = {features, labels, count, *sparse.values(), *(part.name for part in split.values())}
    if edges is not None:
        used |= {*edges.names, edges.shape, edges.weights}
        if edges.form == "scipy":
            used |= {held[key] for key in _SCIPY if key in held}
    return Contents(edges, features, sparse, labels, count, split, tuple(n for n in source.names() if n not in used))


def _edges(held: dict[str, str]) -> Edges | None:
    if "format" in held and "shape" in held:
        return Edges("scipy")
    for prefix in known.MATRIX_PREFIXES:
        at = f"{prefix}_" if prefix else ""
        more = held.get(plain(f"{at}shape")), held.get(plain(f"{at}data"))
        for begins, columns in known.COMPRESSED_ROWS:
            found = held.get(plain(at + begins)), held.get(plain(at + columns))
            if found[0] and found[1]:
                return Edges("rows", (found[0], found[1]), *more)
    table = first_of(known.EDGE_TABLES, held)
    if table is not None:
        return Edges("table", (table,))
    for prefix in known.MATRIX_PREFIXES:
        at = f"{prefix}_" if prefix else ""
        more = held.get(plain(f"{at}shape")), held.get(plain(f"{at}data")) or held.get(plain(f"{at}val"))
        for sources, targets in known.EDGE_ENDS:
            found = held.get(plain(at + sources)), held.get(plain(at + targets))
            if found[0] and found[1]:
                return Edges("ends", (found[0], found[1]), *more)
    return None


def _features(held: dict[str, str]) -> tuple[str | None, dict[str, str]]:
    """The dense array, and the parts of the sparse one."""
    dense = first_of(known.FEATURES, held)
    for name in known.FEATURES:
        parts = {part: held[plain(f"{name}_{part}")] for part in known.SPARSE_PARTS if plain(f"{name}_{part}") in held}
        if len(parts) > 1:
            return None, parts
        if parts.keys() == {"shape"}:
            return dense, parts
    return dense, {}


def _split(held: dict[str, str]) -> dict[str, Split]:
    found: dict[str, Split] = {}
    for part in known.PARTS:
        for kind, words in (("mask", known.MASKS), ("ids", known.NODE_IDS), ("either", known.EITHER)):
            name = first_of(known.split_names(words, part), held)
            if name is not None:
                found[part] = Split(name, kind)  # type: ignore[arg-type]
                break
    # A bare `val` alone may be anything.
    alone = len(found) == 1 and plain(next(iter(found.values())).name) not in _ONLY_SPLITS
    return {part: each for part, each in found.items() if not alone or each.kind != "either"}
