"""The role of each array of a graph file, from its name: edges, features, labels, split, or unknown.

The simulator and training share one table of names. Case, underscores, dots and hyphens do not matter:
`adj_matrix.indptr` is `adj_matrix_indptr`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol

from gcnsim.core.ids import AnyArray

FEATURES: Final = (
    *("x", "features", "feature", "feats", "feat"),
    *("node_features", "node_feature", "node_feats", "node_feat"),
    *("attr", "attrs", "attributes", "node_attr", "node_attrs", "attr_matrix", "feature_matrix"),
)
"""Features [N, F]; with the suffix `_data`, `_indices`, `_indptr`, `_shape`, their compressed rows."""

SPARSE_PARTS: Final = ("data", "indices", "indptr", "shape")

LABELS: Final = ("labels", "label", "y", "node_labels", "node_label", "class_labels")

EDGE_TABLES: Final = ("edge_index", "edges", "edge_list", "edge_indices", "edge_idx")
"""Both ends of every edge in one array, [2, E] or [E, 2]."""

SIDES_FIRST: Final = ("edge_index",)
"""Tables that are [2, E] by their name; needed only for the ambiguous shape [2, 2]."""

EDGE_ENDS: Final = (
    *(("row", "col"), ("rows", "cols"), ("src", "dst"), ("source", "target"), ("sources", "targets")),
    *(("src_id", "dst_id"), ("src_ids", "dst_ids"), ("senders", "receivers"), ("head", "tail"), ("u", "v")),
)
"""One array for the sources, one for the targets."""

COMPRESSED_ROWS: Final = (
    *(("indptr", "indices"), ("rowptr", "col"), ("row_ptr", "col_idx"), ("row_ptr", "col_ind")),
    *(("crow_indices", "col_indices"), ("xadj", "adjncy")),
)
"""The start of each row, and the columns of the rows."""

MATRIX_PREFIXES: Final = ("", "adj", "adj_matrix", "adjacency", "adjacency_matrix", "graph", "csr")

COUNTS: Final = ("num_nodes", "n_nodes", "number_of_nodes", "num_nodes_list")
"""One number: the number of nodes."""

PARTS: Final = {
    "train": ("train", "training", "trn", "tr"),
    "val": ("val", "valid", "validation", "dev", "va"),
    "test": ("test", "testing", "tst", "te"),
}
"""Words for the training, validation and test parts."""

MASKS: Final = ("mask", "masks")
NODE_IDS: Final = (
    *("idx", "idxs", "index", "indexes", "indices", "id", "ids", "nid", "nids", "node", "nodes"),
    *("node_id", "node_ids", "node_idx", "node_index", "seeds"),
)
EITHER: Final = ("set", "split", "")
"""Words before or after the part: for a mask [N], for node numbers, and for either."""


def plain(name: str) -> str:
    """The name in comparable form: lower-case letters and digits only."""
    return re.sub(r"[^0-9a-z]", "", name.lower())


def first_of(names: Iterable[str], held: dict[str, str]) -> str | None:
    """The first of `names` in `held`, in its original spelling. held: by comparable name."""
    return next((held[plain(name)] for name in names if plain(name) in held), None)


def named_like(name: str, part: str, other: str) -> str:
    """The name of the array of part `other`, given `name` for `part`.

    >>> named_like("idx_train", "train", "val"), named_like("te_mask", "test", "val")
    ('idx_val', 'va_mask')
    """
    word = max((item for item in PARTS[part] if item in name.lower()), key=len)
    at = name.lower().index(word)
    text = PARTS[other][-1 if word == PARTS[part][-1] else 0]
    return f"{name[:at]}{text}{name[at + len(word) :]}"


def split_names(kinds: tuple[str, ...], part: str) -> tuple[str, ...]:
    """All names of `part` of this kind, such as train_mask and mask_train; common ones first."""
    words = PARTS[part]
    return tuple(
        dict.fromkeys(f"{first}_{second}" for kind in kinds for word in words for first, second in _orders(word, kind))
    )


def _orders(word: str, kind: str) -> tuple[tuple[str, str], ...]:
    return ((word, kind), (kind, word))


_SCIPY = ("format", "shape", "data", "row", "col", "indptr", "indices", "isarray")
"""By comparable name, the arrays of `scipy.sparse.save_npz`."""


_ONLY_SPLITS = ("train", "training", "test", "testing")
"""By comparable name, the names that belong to a split even without other parts."""


class ArraySource(Protocol):
    """Named arrays, each read on demand: an archive, or a folder of `.npy` files."""

    @property
    def path(self) -> Path:
        """The path of the archive or folder, for messages."""

    def names(self) -> tuple[str, ...]:
        """The names of all arrays."""

    def where(self, key: str) -> str:
        """The start of messages about the array."""

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape in the array's header; the data stays unread."""

    def nbytes(self, key: str) -> int:
        """Bytes of the array; 0 if it does not exist."""

    def array(self, key: str) -> AnyArray:
        """The whole array, read-only. Raises FileError for damage and for an object array."""

    def integers(self, key: str) -> AnyArray:
        """The array, refused unless it is a row of whole numbers."""

    def numbers(self, key: str, count: int) -> list[int]:
        """`count` integers; another number of them is refused before reading."""


@dataclass(frozen=True, slots=True)
class Edges:
    """The storage of the edges, with the names of their arrays.

    scipy: whether it is a file of `scipy.sparse.save_npz`. rows: row starts and columns. table: one array of both ends.
    ends: sources and targets. shape, weights: further arrays of the same matrix.
    """

    form: Literal["scipy", "rows", "table", "ends"]
    names: tuple[str, ...] = ()
    shape: str | None = None
    weights: str | None = None


@dataclass(frozen=True, slots=True)
class SplitArrays:
    """One part of the split: its array, and whether the name means mask, node numbers, or either."""

    name: str
    kind: Literal["mask", "ids", "either"]


@dataclass(frozen=True, slots=True)
class Contents:
    """The names of the arrays by content; None or empty if missing.

    sparse: the existing ones of data, indices, indptr and shape, by these words; the shape may be the only one. split:
    the existing ones of train, val and test. unknown: all others.
    """

    edges: Edges | None
    features: str | None
    sparse: dict[str, str]
    labels: str | None
    count: str | None
    split: dict[str, SplitArrays]
    unknown: tuple[str, ...]


def contents_of(source: ArraySource) -> Contents:
    """Classify the arrays of `source` by their names; no array is read."""
    held: dict[str, str] = {}
    for name in source.names():
        held.setdefault(plain(name), name)
    edges = _edges(held)
    # The names of the edges are not used for anything else: `row`, `col`, `val` of a matrix are not a split.
    left = {key: name for key, name in held.items() if edges is None or name not in (*edges.names, edges.weights)}
    if edges is not None and edges.form == "scipy":
        left = {key: name for key, name in left.items() if key not in _SCIPY}
    features, sparse = _features(left)
    labels, split = first_of(LABELS, left), _split(left)
    count = first_of(COUNTS, left)
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
    for prefix in MATRIX_PREFIXES:
        at = f"{prefix}_" if prefix else ""
        more = held.get(plain(f"{at}shape")), held.get(plain(f"{at}data"))
        for begins, columns in COMPRESSED_ROWS:
            found = held.get(plain(at + begins)), held.get(plain(at + columns))
            if found[0] and found[1]:
                return Edges("rows", (found[0], found[1]), *more)
    table = first_of(EDGE_TABLES, held)
    if table is not None:
        return Edges("table", (table,))
    for prefix in MATRIX_PREFIXES:
        at = f"{prefix}_" if prefix else ""
        more = held.get(plain(f"{at}shape")), held.get(plain(f"{at}data")) or held.get(plain(f"{at}val"))
        for sources, targets in EDGE_ENDS:
            found = held.get(plain(at + sources)), held.get(plain(at + targets))
            if found[0] and found[1]:
                return Edges("ends", (found[0], found[1]), *more)
    return None


def _features(held: dict[str, str]) -> tuple[str | None, dict[str, str]]:
    """The dense array, and the parts of the sparse one."""
    dense = first_of(FEATURES, held)
    for name in FEATURES:
        parts = {part: held[plain(f"{name}_{part}")] for part in SPARSE_PARTS if plain(f"{name}_{part}") in held}
        if len(parts) > 1:
            return None, parts
        if parts.keys() == {"shape"}:
            return dense, parts
    return dense, {}


def _split(held: dict[str, str]) -> dict[str, SplitArrays]:
    splits: dict[str, SplitArrays] = {}
    for part in PARTS:
        for kind, words in (("mask", MASKS), ("ids", NODE_IDS), ("either", EITHER)):
            name = first_of(split_names(words, part), held)
            if name is not None:
                splits[part] = SplitArrays(name, kind)  # type: ignore[arg-type]
                break
    # A single `val` may have any meaning.
    alone = len(splits) == 1 and plain(next(iter(splits.values())).name) not in _ONLY_SPLITS
    return {part: value for part, value in splits.items() if not alone or value.kind != "either"}
