from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError, GcnsimError, GraphError, ScenarioError
from gcnsim.graph import load_graph
from runtime.data import Dataset, load_dataset
from runtime.options import Options
from tests.gcnsim.graph.formats.layouts.published import (
    FEATURES,
    SPLIT,
    write_arrays,
    write_ogb_arrays,
    write_ogb_text,
)


def _masks(dataset: Dataset) -> list[list[int]]:
    return [np.flatnonzero(mask).tolist() for mask in (dataset.train, dataset.val, dataset.test)]


@pytest.mark.parametrize("write", [write_ogb_text, write_ogb_arrays, write_arrays])
def test_a_folder_as_published_is_a_data_set(
    write: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "published")
    monkeypatch.setenv("GCNSIM_DATA", str(tmp_path))
    for options in (Options(graph=str(folder)), Options(dataset="published")):
        dataset = load_dataset(options)
        assert (dataset.name, dataset.classes, dataset.multilabel) == ("published", 2, False)
        assert dataset.features.rows(np.arange(10)).tolist() == FEATURES.tolist()
        assert [np.flatnonzero(mask).tolist() for mask in (dataset.train, dataset.val, dataset.test)] == list(
            SPLIT.values()
        )


def test_digits_are_split_60_20_20_whatever_the_seed() -> None:
    dataset = load_dataset(Options())
    assert (dataset.name, dataset.classes, dataset.multilabel, dataset.features.width) == ("digits", 10, False, 64)
    assert [len(nodes) for nodes in _masks(dataset)] == [1078, 359, 360]
    assert (dataset.train.astype(int) + dataset.val + dataset.test).tolist() == [1] * 1797
    other = load_dataset(Options(seed=7))
    assert _masks(other) == _masks(dataset)
    nodes = np.arange(1797)
    assert np.array_equal(other.features.rows(nodes), dataset.features.rows(nodes))
    for array in (dataset.labels, dataset.train, dataset.val, dataset.test):
        assert not array.flags.writeable


def test_a_graph_file_is_read_with_its_data(saved: Callable[..., str]) -> None:
    dataset = load_dataset(Options(graph=saved()))
    assert (dataset.name, dataset.graph.nodes, dataset.classes, dataset.multilabel) == ("ring", 10, 2, False)
    assert _masks(dataset) == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    assert dataset.features.rows(np.array([1])).tolist() == [[3.0, 4.0, 5.0]]


def test_a_named_data_set_is_sought_in_the_folder(saved: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(saved("ring")).parent
    monkeypatch.setenv("GCNSIM_DATA", str(folder))
    assert load_dataset(Options(dataset="ring")).classes == 2
    with pytest.raises(ScenarioError) as caught:
        load_dataset(Options(dataset="rings"))
    place = f"no rings.npz and no folder rings in {folder}"
    assert str(caught.value) == f"--dataset: {place}; did you mean 'ring'? known: digits, ring"
    with pytest.raises(ScenarioError, match=r"--dataset: no \.\./ring\.npz and no folder \.\./ring in "):
        load_dataset(Options(dataset="../ring"))


def test_without_the_folder_a_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GCNSIM_DATA", raising=False)
    with pytest.raises(ScenarioError, match="'ring' is looked up in the folder GCNSIM_DATA, which is not set"):
        load_dataset(Options(dataset="ring"))
    monkeypatch.setenv("GCNSIM_DATA", str(tmp_path / "none"))
    with pytest.raises(ScenarioError, match="none', which cannot be listed: No such file or directory"):
        load_dataset(Options(dataset="ring"))


def test_without_masks_the_labelled_nodes_are_split_by_the_structure(saved: Callable[..., str]) -> None:
    labels = np.array([0, -1, 1, 0, 1, -1, 0, 1, 0, 1])
    path = saved(labels=labels, train_mask=None, val_mask=None, test_mask=None)
    dataset = load_dataset(Options(graph=path))
    found = _masks(dataset)
    assert [len(nodes) for nodes in found] == [4, 2, 2]
    assert sorted(node for nodes in found for node in nodes) == np.flatnonzero(labels >= 0).tolist()
    again = saved("renamed", labels=labels, train_mask=None, val_mask=None, test_mask=None)
    assert _masks(load_dataset(Options(graph=again, seed=3))) == found


def test_a_split_of_node_numbers_is_the_split_that_is_trained_on(saved: Callable[..., str]) -> None:
    none = {"train_mask": None, "val_mask": None, "test_mask": None}
    for names in (("train_idx", "val_idx", "test_idx"), ("idx_train", "idx_valid", "idx_test")):
        split = dict(zip(names, (np.array([9, 0]), np.array([4]), np.array([2, 3, 5])), strict=True))
        dataset = load_dataset(Options(graph=saved(**none, **split)))
        assert _masks(dataset) == [[0, 9], [4], [2, 3, 5]]
        assert dataset.notes == ()


def test_how_the_file_was_read_is_noted(saved: Callable[..., str]) -> None:
    table = np.zeros((3, 10), bool)
    table[0, :4] = table[1:, 4:8] = True
    none = {"train_mask": None, "val_mask": None, "test_mask": None}
    several = {"train_masks": table, "val_masks": table[[1, 0, 0]], "test_masks": np.zeros((3, 10), bool)}
    path = saved(**none, **several, year=np.arange(10))
    dataset = load_dataset(Options(graph=path))
    assert _masks(dataset) == [[0, 1, 2, 3], [4, 5, 6, 7], []]
    assert dataset.notes == ("ring: the first of 3 splits in train_masks, val_masks, test_masks",)
    assert "year" in dataset.graph.cleaning.ignored
    assert "splits 2 to 3 of train_masks, val_masks, test_masks" in dataset.graph.cleaning.ignored


def test_a_split_that_is_drawn_is_noted(saved: Callable[..., str]) -> None:
    path = saved(train_mask=None, val_mask=None, test_mask=None)
    drawn = "no split in the file: 60 % train, 20 % validate, 20 % test of the labelled nodes, drawn at random"
    assert load_dataset(Options(graph=path)).notes == (f"ring: {drawn}",)
    assert load_dataset(Options()).notes == ()


def test_labels_of_several_classes_are_kept(saved: Callable[..., str]) -> None:
    dataset = load_dataset(Options(graph=saved(labels=np.eye(10, 4))))
    assert (dataset.multilabel, dataset.classes, dataset.labels.dtype) == (True, 4, np.dtype(np.float32))
    assert dataset.labels.tolist() == np.eye(10, 4).tolist()


def test_what_was_not_understood_is_named_where_labels_are_missing(saved: Callable[..., str]) -> None:
    path = saved(labels=None, y_train=np.zeros(4), y_test=np.zeros(4))
    with pytest.raises(FileError, match=r"no labels \(.*\); not understood: .*y_train, y_test"):
        load_dataset(Options(graph=path))


@pytest.mark.parametrize("text", ["source,target\nann,bob\n", "foo,bar,baz\n1,2,3\n"])
def test_an_edge_list_that_needs_an_option_is_converted_first(tmp_path: Path, text: str) -> None:
    path = tmp_path / "g.csv"
    path.write_text(text)
    with pytest.raises(FileError, match="training has no such option: gcnsim graph convert writes"):
        load_dataset(Options(graph=str(path)))


def test_a_bare_graph_is_refused_with_the_flags_that_help(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("0 1\n1 2\n2 3\n3 4\n")
    with pytest.raises(FileError) as caught:
        load_dataset(Options(graph=str(path)))
    assert str(caught.value) == (
        f"{path}: no features (--random-features D makes random ones) "
        "and no labels (--random-classes C makes random ones)"
    )
    with pytest.raises(FileError, match=r"g.txt: no labels \(--random-classes C makes random ones\)$"):
        load_dataset(Options(graph=str(path), random_features=4))
    with pytest.raises(FileError, match=r"g.txt: no features \(--random-features D makes random ones\)$"):
        load_dataset(Options(graph=str(path), random_classes=4))


def test_random_data_takes_the_place_of_the_files_and_follows_the_seed(saved: Callable[..., str]) -> None:
    path, nodes = saved(labels=np.full(10, -1)), np.arange(10)
    first, same, other = (
        load_dataset(Options(graph=path, random_features=5, random_classes=4, seed=seed)) for seed in (1, 1, 2)
    )
    assert (first.features.width, first.classes, first.labels.dtype) == (5, 4, np.dtype(np.int64))
    assert set(first.labels.tolist()) <= {0, 1, 2, 3}
    assert np.array_equal(first.features.rows(nodes), same.features.rows(nodes))
    assert first.labels.tolist() == same.labels.tolist() != other.labels.tolist()
    assert not np.array_equal(first.features.rows(nodes), other.features.rows(nodes))
    assert _masks(first) == _masks(other) == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]


def test_random_data_works_on_digits_and_on_bare_graphs(tmp_path: Path) -> None:
    digits = load_dataset(Options(random_features=5, random_classes=3))
    assert (digits.features.width, digits.classes, digits.graph.nodes) == (5, 3, 1797)
    (tmp_path / "g.txt").write_text("0 1\n1 2\n2 3\n3 4\n")
    bare = load_dataset(Options(graph=str(tmp_path / "g.txt"), random_features=5, random_classes=3))
    assert [len(nodes) for nodes in _masks(bare)] == [3, 1, 1]


def test_features_are_normalised_over_training_nodes_then_projected(saved: Callable[..., str]) -> None:
    path, nodes = saved(), np.arange(10)
    raw = load_dataset(Options(graph=path)).features.rows(nodes)
    standard = load_dataset(Options(graph=path, feature_norm="standard")).features.rows(nodes)
    assert np.allclose(standard, (raw - raw[:6].mean(axis=0)) / raw[:6].std(axis=0), rtol=1e-5)
    unit = load_dataset(Options(graph=path, feature_norm="row")).features.rows(nodes)
    assert np.allclose(unit, raw / raw.sum(axis=1, keepdims=True), rtol=1e-6)
    both = [load_dataset(Options(graph=path, feature_norm="row", feature_dim=2, seed=seed)) for seed in (0, 1)]
    assert [dataset.features.width for dataset in both] == [2, 2]
    assert np.array_equal(both[0].features.rows(nodes), both[1].features.rows(nodes))
    plain = load_dataset(Options(graph=path, feature_dim=2)).features.rows(nodes)
    assert np.allclose(both[0].features.rows(nodes) * raw.sum(axis=1, keepdims=True), plain, rtol=1e-5)


@pytest.mark.parametrize(
    ("mask", "labels", "message"),
    [
        ("train_mask", np.arange(10) % 2, "no training nodes; at least 1 is needed"),
        (None, np.array([0, 1, 0, -1, -1, 0, 1, 1, 1, 1]), "train_mask holds 2 nodes without a known label"),
        (None, np.array([0, 1, 0, 0, 0, 0, 1, 1, 1, -1]), "test_mask holds 1 nodes without a known label"),
    ],
)
def test_masks_that_cannot_be_trained_on_are_refused(
    saved: Callable[..., str], mask: str | None, labels: np.ndarray[tuple[int], np.dtype[np.int64]], message: str
) -> None:
    masks = {mask: np.zeros(10, dtype=np.uint8)} if mask else {}
    path = saved(labels=labels, **masks)
    with pytest.raises(FileError, match=message) as caught:
        load_dataset(Options(graph=path))
    assert str(caught.value).startswith(f"{path}: ")


def test_one_labelled_node_is_no_training_set(saved: Callable[..., str]) -> None:
    labels = np.where(np.arange(10) == 4, 1, -1)
    with pytest.raises(FileError, match="no training nodes"):
        load_dataset(Options(graph=saved(labels=labels, train_mask=None, val_mask=None, test_mask=None)))


def test_files_that_are_no_graphs_are_refused(tmp_path: Path) -> None:
    for name, text in (("none.npz", None), ("text.npz", "0 1"), ("odd.xyz", "0 1")):
        path = tmp_path / name
        if text is not None:
            path.write_text(text)
        with pytest.raises(GcnsimError) as caught:
            load_dataset(Options(graph=str(path)))
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "width", "classes", "counts"),
    [("amazon_cs", 767, 10, [8251, 2750, 2751]), ("coauthor_phy", 8415, 5, [20695, 6899, 6899])],
)
def test_real_sparse_data_sets_give_the_files_rows(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, name: str, width: int, classes: int, counts: list[int]
) -> None:
    monkeypatch.setenv("GCNSIM_DATA", str(data_dir))
    dataset = load_dataset(Options(dataset=name))
    assert (dataset.name, dataset.features.width, dataset.classes) == (name, width, classes)
    assert [len(nodes) for nodes in _masks(dataset)] == counts
    assert dataset.graph.content_hash() == load_graph(data_dir / f"{name}.npz").content_hash()
    nodes = np.array([dataset.graph.nodes - 1, 0, 17])
    with np.load(data_dir / f"{name}.npz", allow_pickle=False) as file:
        data, indices, indptr = file["x_data"], file["x_indices"], file["x_indptr"]
        labels = file["labels"]
    expected = np.zeros((3, width), dtype=np.float32)
    for row, node in zip(expected, nodes, strict=True):
        row[indices[indptr[node] : indptr[node + 1]]] = data[indptr[node] : indptr[node + 1]]
    assert np.array_equal(dataset.features.rows(nodes), expected)
    assert np.array_equal(dataset.labels, labels)
    projected = load_dataset(Options(dataset=name, feature_dim=128, seed=9)).features
    rows = projected.rows(np.arange(dataset.graph.nodes))
    assert rows.shape == (dataset.graph.nodes, 128)
    assert np.array_equal(rows[nodes], projected.rows(nodes))


def test_real_dense_features_and_a_bare_real_graph(data_dir: Path) -> None:
    dense = load_dataset(Options(graph=str(data_dir / "tolokers.npz"), feature_norm="standard"))
    rows = dense.features.rows(np.flatnonzero(dense.train))
    assert np.allclose(rows.mean(axis=0, dtype=np.float64), 0.0, atol=1e-4)
    assert np.allclose(rows.std(axis=0, dtype=np.float64), 1.0, rtol=1e-4)
    with pytest.raises(FileError, match=r"no features .* and no labels"):
        load_dataset(Options(graph=str(data_dir / "cnr-2000.npz")))


def test_rows_that_do_not_fit_into_memory_are_one_line(
    saved: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    features = load_dataset(Options(graph=saved())).features

    def no_memory(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(np, "empty", no_memory)
    with pytest.raises(GraphError, match=r"^.* of features \(10 nodes\) do not fit into memory$"):
        features.rows(np.arange(10))
