"""What the arrays of a graph are called: one table of names, for the simulator and for training alike.

Case, underscores, dots and hyphens do not matter: `adj_matrix.indptr` is `adj_matrix_indptr`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

FEATURES: Final = (
    *("x", "features", "feature", "feats", "feat"),
    *("node_features", "node_feature", "node_feats", "node_feat"),
    *("attr", "attrs", "attributes", "node_attr", "node_attrs", "attr_matrix", "feature_matrix"),
)
"""Features [N, F]; with `_data`, `_indices`, `_indptr`, `_shape` behind, their compressed rows."""

SPARSE_PARTS: Final = ("data", "indices", "indptr", "shape")

LABELS: Final = ("labels", "label", "y", "node_labels", "node_label", "class_labels")

EDGE_TABLES: Final = ("edge_index", "edges", "edge_list", "edge_indices", "edge_idx")
"""Both ends of every edge in one array, [2, E] or [E, 2]."""

SIDES_FIRST: Final = ("edge_index",)
"""Tables that are [2, E] by their name, where the shape [2, 2] does not say."""

EDGE_ENDS: Final = (
    *(("row", "col"), ("rows", "cols"), ("src", "dst"), ("source", "target"), ("sources", "targets")),
    *(("src_id", "dst_id"), ("src_ids", "dst_ids"), ("senders", "receivers"), ("head", "tail"), ("u", "v")),
)
"""One array for the sources, one for the targets."""

COMPRESSED_ROWS: Final = (
    *(("indptr", "indices"), ("rowptr", "col"), ("row_ptr", "col_idx"), ("row_ptr", "col_ind")),
    *(("crow_indices", "col_indices"), ("xadj", "adjncy")),
)
"""Where each row begins, and the columns of the rows."""

MATRIX_PREFIXES: Final = ("", "adj", "adj_matrix", "adjacency", "adjacency_matrix", "graph", "csr")

COUNTS: Final = ("num_nodes", "n_nodes", "number_of_nodes", "num_nodes_list")
"""One number: how many nodes there are."""

PARTS: Final = {
    "train": ("train", "training", "trn", "tr"),
    "val": ("val", "valid", "validation", "dev", "va"),
    "test": ("test", "testing", "tst", "te"),
}
"""Who trains, validates and tests, each with the words for it."""

MASKS: Final = ("mask", "masks")
NODE_IDS: Final = (
    *("idx", "idxs", "index", "indexes", "indices", "id", "ids", "nid", "nids", "node", "nodes"),
    *("node_id", "node_ids", "node_idx", "node_index", "seeds"),
)
EITHER: Final = ("set", "split", "")
"""Names behind or before the part: of a mask [N], of node numbers, and of what the values have to say."""


def plain(name: str) -> str:
    """The name as it is compared: small letters and digits alone."""
    return re.sub(r"[^0-9a-z]", "", name.lower())


def first_of(names: Iterable[str], held: dict[str, str]) -> str | None:
    """The first of `names` that is held, as it is spelled there. held: by plain name."""
    return next((held[plain(name)] for name in names if plain(name) in held), None)


def named_like(name: str, part: str, other: str) -> str:
    """What the array of the part `other` is called where that of `part` is `name`.

    >>> named_like("idx_train", "train", "val"), named_like("te_mask", "test", "val")
    ('idx_val', 'va_mask')
    """
    word = max((each for each in PARTS[part] if each in name.lower()), key=len)
    at = name.lower().index(word)
    said = PARTS[other][-1 if word == PARTS[part][-1] else 0]
    return f"{name[:at]}{said}{name[at + len(word) :]}"


def split_names(kinds: tuple[str, ...], part: str) -> tuple[str, ...]:
    """All names of `part` of this kind, such as train_mask and mask_train; the usual ones first."""
    words = PARTS[part]
    return tuple(
        dict.fromkeys(f"{first}_{second}" for kind in kinds for word in words for first, second in _orders(word, kind))
    )


def _orders(word: str, kind: str) -> tuple[tuple[str, str], ...]:
    return ((word, kind), (kind, word))
