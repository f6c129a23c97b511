from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from gcnsim.core.errors import FileError, GcnsimError
from gcnsim.core.ids import AnyArray
from gcnsim.graph import load_graph
from gcnsim.graph.formats.nodes import NodeArrays, read_nodes
from tests.gcnsim.graph.formats.layouts.published import FEATURES, LABELS, NODES, SOURCES, SPLIT, TARGETS, ring

_ROWS: dict[str, AnyArray] = {"indptr": ring().indptr, "indices": ring().indices}
_TABLE = np.stack([SOURCES, TARGETS])
_TRAIN, _VAL, _TEST = (np.array(nodes) for nodes in SPLIT.values())
_MASKS = [np.isin(SOURCES, nodes) for nodes in SPLIT.values()]


def _saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def _read(path: Path) -> NodeArrays:
    return read_nodes(path, load_graph(path).nodes)


def _split(held: NodeArrays) -> list[list[int]]:
    assert held.masks is not None
    return [np.flatnonzero(mask).tolist() for mask in held.masks]


@pytest.mark.parametrize(
    "arrays",
    [
        {"edge_index": _TABLE},
        {"edge_index": _TABLE.T},
        {"edge_list": _TABLE.astype(np.float64)},
        {"row": SOURCES, "col": TARGETS},
        {"adj_indptr": ring().indptr, "adj_indices": ring().indices, "adj_shape": np.array([NODES, NODES])},
        {"adj_matrix.indptr": ring().indptr, "adj_matrix.indices": ring().indices},
        {"Edge-Index": _TABLE, "num_nodes": np.array(NODES)},
    ],
)
def test_edges_are_read_under_any_common_name(tmp_path: Path, arrays: dict[str, AnyArray]) -> None:
    graph = load_graph(_saved(tmp_path / "g.npz", **arrays))
    assert graph.content_hash() == ring().content_hash()
    assert graph.cleaning.ignored == ()


@pytest.mark.parametrize("names", [("x", "y"), ("feat", "label"), ("node_features", "node_labels"), ("attr", "Labels")])
@pytest.mark.parametrize("labels", [LABELS, LABELS[:, None], LABELS.astype(bool)])
def test_features_and_labels_are_read_under_any_common_name(
    tmp_path: Path, names: tuple[str, str], labels: AnyArray
) -> None:
    path = _saved(tmp_path / "g.npz", edge_index=_TABLE, **{names[0]: FEATURES, names[1]: labels})
    graph, held = load_graph(path), _read(path)
    assert (graph.features, graph.classes, graph.cleaning.ignored) == (3, 2, ())
    assert held.features is not None
    assert held.labels is not None
    assert held.features.tolist() == FEATURES.tolist()
    assert (held.labels.tolist(), held.labels.dtype) == (LABELS.tolist(), np.dtype(np.int64))


@pytest.mark.parametrize("prefix", ["attr_", "attr_matrix.", "feat_", "x_"])
def test_sparse_features_are_read_under_any_common_name(tmp_path: Path, prefix: str) -> None:
    rows = scipy.sparse.csr_array(FEATURES)
    parts = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape)}
    path = _saved(tmp_path / "g.npz", **_ROWS, **{prefix + part: array for part, array in parts.items()})
    graph, held = load_graph(path), _read(path)
    assert (graph.features, graph.cleaning.ignored) == (3, ())
    assert held.features is not None
    assert held.features.toarray().tolist() == FEATURES.tolist()


@pytest.mark.parametrize(
    "names",
    [
        ("train_idx", "val_idx", "test_idx"),
        ("train_index", "valid_index", "test_index"),
        ("idx_train", "idx_val", "idx_test"),
        ("train_nid", "val_nid", "test_nid"),
        ("train_ids", "validation_ids", "test_ids"),
        ("train_nodes", "valid_nodes", "test_nodes"),
        ("train", "val", "test"),
    ],
)
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_a_split_of_node_numbers_is_exactly_that_split(
    tmp_path: Path, names: tuple[str, str, str], dtype: type[np.generic]
) -> None:
    given = dict(zip(names, (nodes.astype(dtype) for nodes in (_TRAIN, _VAL, _TEST)), strict=True))
    path = _saved(tmp_path / "g.npz", **_ROWS, **given)
    assert _split(_read(path)) == list(SPLIT.values())
    assert load_graph(path).cleaning.ignored == ()


@pytest.mark.parametrize("names", [("train_mask", "valid_mask", "test_mask"), ("train", "dev", "test")])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.float32])
def test_a_split_of_masks_is_exactly_that_split(tmp_path: Path, names: tuple[str, ...], dtype: Any) -> None:
    given = dict(zip(names, (mask.astype(dtype) for mask in _MASKS), strict=True))
    assert _split(_read(_saved(tmp_path / "g.npz", **_ROWS, **given))) == list(SPLIT.values())


@pytest.mark.parametrize("nodes_first", [False, True])
def test_of_several_splits_the_first_is_read_and_the_others_are_named(tmp_path: Path, nodes_first: bool) -> None:
    tables = [np.stack([mask, mask[::-1], mask[::-1]]) for mask in _MASKS]
    names = ("train_masks", "val_masks", "test_masks")
    given = {name: table.T if nodes_first else table for name, table in zip(names, tables, strict=True)}
    path = _saved(tmp_path / "g.npz", **_ROWS, **given)
    held = _read(path)
    assert _split(held) == list(SPLIT.values())
    assert held.notes == ("the first of 3 splits in train_masks, val_masks, test_masks",)
    assert load_graph(path).cleaning.ignored == ("splits 2 to 3 of train_masks, val_masks, test_masks",)


def test_what_is_not_understood_is_named_and_never_opened(tmp_path: Path) -> None:
    pickled = np.array([{"a": 1}], dtype=object)
    path = _saved(tmp_path / "g.npz", **_ROWS, year=SOURCES, class_names=pickled, feat=FEATURES, x=FEATURES)
    cleaning = load_graph(path).cleaning
    assert cleaning.ignored == ("year", "class_names", "feat")
    assert str(cleaning) == "ignored: year, class_names, feat"


def test_values_of_a_matrix_other_than_one_are_named_as_weights(tmp_path: Path) -> None:
    rows = {"adj_indptr": ring().indptr, "adj_indices": ring().indices}
    for value, ignored in ((1.0, ()), (0.5, ("weights",))):
        path = _saved(tmp_path / "g.npz", **rows, adj_data=np.full(2 * NODES, value))
        assert load_graph(path).cleaning.ignored == ignored


@pytest.mark.parametrize("kind", [np.int64, np.bool_, np.float32])
@pytest.mark.parametrize("empty", [[3], [0, 3, 9]])
def test_empty_rows_of_one_hot_labels_are_nodes_without_a_label(tmp_path: Path, kind: type, empty: list[int]) -> None:
    table: AnyArray = np.eye(2, dtype=kind)[LABELS]
    table[empty] = 0
    held = _read(_saved(tmp_path / "g.npz", **_ROWS, y=table))
    assert held.labels is not None
    assert held.labels.tolist() == np.where(np.isin(np.arange(10), empty), -1, LABELS).tolist()
    unknown = "1 node" if len(empty) == 1 else "3 nodes"
    assert held.notes == (f"y is one-hot: one class a node; no label: {unknown} without a 1",)
    assert load_graph(tmp_path / "g.npz").classes == 2


def test_rows_of_nan_are_empty_and_mostly_empty_tables_stay_tables(tmp_path: Path) -> None:
    table = np.eye(2)[LABELS]
    table[4] = np.nan
    held = _read(_saved(tmp_path / "g.npz", **_ROWS, y=table))
    assert held.labels is not None
    assert held.labels[4] == -1
    table[:6] = 0
    mostly = _read(_saved(tmp_path / "m.npz", **_ROWS, y=table))
    assert mostly.labels is not None
    assert (mostly.labels.ndim, mostly.notes) == (2, ())


def test_one_hot_labels_are_classes_and_other_tables_are_several_classes(tmp_path: Path) -> None:
    one_hot = np.eye(2, dtype=np.float32)[LABELS]
    held = _read(_saved(tmp_path / "one.npz", **_ROWS, y=one_hot))
    assert held.labels is not None
    assert (held.labels.tolist(), held.notes) == (LABELS.tolist(), ("y is one-hot: one class a node",))
    one_hot[3] = 1
    several = _read(_saved(tmp_path / "several.npz", **_ROWS, y=one_hot))
    assert several.labels is not None
    assert several.labels.tolist() == one_hot.tolist()
    assert several.notes == ("y is taken for several classes a node: 1 node has more than one",)


def test_a_label_that_is_no_number_is_unknown(tmp_path: Path) -> None:
    held = _read(_saved(tmp_path / "g.npz", **_ROWS, y=np.where(SOURCES == 4, np.nan, LABELS)))
    assert held.labels is not None
    assert held.labels.tolist() == [0, 1, 0, 1, -1, 1, 0, 1, 0, 1]


def test_nodes_without_edges_are_counted_where_the_file_says_how_many_there_are(tmp_path: Path) -> None:
    few = _TABLE[:, :6]
    assert (load_graph(_saved(tmp_path / "a.npz", edge_index=few))).nodes == 7
    assert load_graph(_saved(tmp_path / "b.npz", edge_index=few, x=FEATURES)).nodes == NODES
    assert load_graph(_saved(tmp_path / "c.npz", edge_index=few, num_nodes=np.array([12]))).nodes == 12
    assert load_graph(_saved(tmp_path / "d.npz", edge_index=few + 2)).unused_ids == 2


@pytest.mark.parametrize("name", ["edge_index.npy", "graph.npy"])
@pytest.mark.parametrize("turned", [False, True])
def test_a_table_of_edges_alone_is_a_graph(tmp_path: Path, name: str, turned: bool) -> None:
    np.save(tmp_path / name, _TABLE.T if turned else _TABLE)
    assert load_graph(tmp_path / name).content_hash() == ring().content_hash()


_REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"train_idx": _TRAIN, "test_idx": _TEST},
        "only train_idx, test_idx; all of train_idx, val_idx, test_idx are needed, or none",
    ),
    (
        {"te_mask": _MASKS[2], "memo": _VAL},
        "only te_mask; all of tr_mask, va_mask, te_mask are needed, or none; not un",
    ),
    ({"test": _TEST}, "only test; all of train, val, test are needed, or none"),
    ({"val": _VAL, "train_nid": _TRAIN}, "only train_nid, val; all of train_nid, val, test_nid are needed, or none"),
    ({"train_idx": [0, 10], "val_idx": _VAL, "test_idx": _TEST}, "node ids run from 0 to 10; 0 to 9 are allowed"),
    ({"train_idx": [0, 0], "val_idx": _VAL, "test_idx": _TEST}, "'train_idx' holds a node number more than once"),
    ({"train_idx": [0.5], "val_idx": _VAL, "test_idx": _TEST}, "'train_idx' is float64[1] with the value 0.5"),
    ({"train_idx": [0, 6], "val_idx": _VAL, "test_idx": _TEST}, "train_idx and val_idx have 1 node in common"),
    ({"train_mask": _TRAIN, "val_mask": _VAL, "test_mask": _TEST}, "'train_mask' is int64[6]; [10] of zeros and ones"),
    (
        {f"{part}_masks": np.zeros((NODES, NODES), bool) for part in ("train", "val", "test")},
        "'train_masks' is 10 x 10: which side is the nodes is not known; give one split",
    ),
    ({"y": LABELS + 0.5}, "'y' is float64[10] with the value 0.5; integers are needed"),
    ({"feat": FEATURES[:9]}, "features have shape [9, 3]; [10, width] is needed"),
]


@pytest.mark.parametrize(("arrays", "message"), _REFUSED)
def test_what_cannot_be_meant_is_refused_by_the_name_in_the_file(
    tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    path = _saved(tmp_path / "g.npz", **_ROWS, **arrays)
    with pytest.raises(GcnsimError) as caught:
        _read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": FEATURES}, "no edges; looked for: indptr with indices, edge_index, edges, adj_indptr"),
        ({"edges": np.zeros((4, 3), int)}, "'edges' is int64[4, 3]; edges are integers [2, E] or [E, 2]"),
        ({"edge_index": _TABLE + 0.5}, "'edge_index' is float64[2, 10] with the value 0.5; integers are needed"),
        ({"edge_index": _TABLE - 1}, "node id -1 is out of range"),
        ({"edge_index": _TABLE, "x": FEATURES[:9]}, "node id 9 is out of range; 0 to 8 are allowed"),
        ({"edge_index": _TABLE, "num_nodes": np.array(-1)}, "'num_nodes' is -1; a whole number of nodes is needed"),
        ({"adj_indptr": ring().indptr, "adj_indices": ring().indices, "adj_shape": [10, 9]}, "must be square"),
    ],
)
def test_edges_that_cannot_be_read_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = _saved(tmp_path / "g.npz", **arrays)
    with pytest.raises(GcnsimError) as caught:
        load_graph(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_the_largest_unsigned_number_is_no_class_unless_classes_come_near_it(tmp_path: Path) -> None:
    few = np.where(np.arange(LABELS.size) == 1, 255, LABELS).astype(np.uint8)
    held = _read(_saved(tmp_path / "few.npz", **_ROWS, y=few))
    assert held.labels is not None
    assert held.labels[1] == -1
    assert held.notes == ("255 in y is not a class: such nodes have no label",)
    assert load_graph(tmp_path / "few.npz").classes == int(LABELS.max()) + 1
    many = (np.arange(LABELS.size) + 256 - LABELS.size).astype(np.uint8)
    held = _read(_saved(tmp_path / "many.npz", **_ROWS, y=many))
    assert held.labels is not None
    assert (held.labels.max(), held.notes) == (255, ())


def test_a_table_of_two_edges_is_read_by_its_name_alone(tmp_path: Path) -> None:
    square = np.array([[0, 1], [2, 3]])
    graph = load_graph(_saved(tmp_path / "g.npz", edge_index=square))
    assert [graph.indices[graph.indptr[node] : graph.indptr[node + 1]].tolist() for node in range(4)] == [
        [2], [3], [0], [1]
    ]  # fmt: skip
    with pytest.raises(FileError, match=r"'edges' is 2 x 2, which can be read either way; store it \[2, E\] as"):
        load_graph(_saved(tmp_path / "g.npz", edges=square))
