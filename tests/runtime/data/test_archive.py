"""Archives of graphs and files of owners."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.ids import AnyArray
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.owners import write_partition
from gcnsim.scenario import from_mapping
from gcnsim.simulation.graph_source import GraphSource
from runtime.data import Dataset, load_dataset, partitioning_of
from runtime.data.load import NodeData, read_node_data
from runtime.options import Options

_TRIPLE: dict[str, AnyArray | None] = {
    "x": None,
    "x_data": np.array([1, 2, 3, 4], dtype=np.float16),
    "x_indices": np.array([5, 0, 0, 2], dtype=np.int32),
    "x_indptr": np.array([0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4]),
    "x_shape": np.array([10, 6]),
}


def test_everything_a_file_holds_is_read(saved: Callable[..., str]) -> None:
    held = read_node_data(saved(), 10)
    assert held.features is not None
    assert held.labels is not None
    assert held.masks is not None
    assert held.features.matrix.tolist() == np.arange(30.0).reshape(10, 3).tolist()
    assert held.features.matrix.dtype == np.float32
    assert (held.labels.tolist(), held.labels.dtype) == ([0, 1] * 5, np.dtype(np.int64))
    assert [np.flatnonzero(mask).tolist() for mask in held.masks] == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]


def test_what_is_not_wanted_stays_unread(saved: Callable[..., str]) -> None:
    path = saved(x=np.full((10, 3), np.nan), labels=np.full(10, 10**7))
    held = read_node_data(path, 10, features=False, labels=False)
    assert (held.features, held.labels) == (None, None)
    assert held.masks is not None


def test_a_file_without_arrays_says_nothing(saved: Callable[..., str], tmp_path: Path) -> None:
    bare = saved(x=None, labels=None, train_mask=None, val_mask=None, test_mask=None)
    assert read_node_data(bare, 10) == NodeData()
    (tmp_path / "g.txt").write_text("0 1\n")
    assert read_node_data(str(tmp_path / "g.txt"), 2) == NodeData()


def test_sparse_features_stay_sparse_with_duplicates_added_up(saved: Callable[..., str]) -> None:
    held = read_node_data(saved(**_TRIPLE), 10)
    assert held.features is not None
    matrix = held.features.matrix
    assert isinstance(matrix, csr_array)
    assert (matrix.dtype, matrix.shape, matrix.nnz) == (np.dtype(np.float32), (10, 6), 3)
    assert matrix.toarray()[0].tolist() == [5.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert matrix.toarray()[9].tolist() == [0.0, 0.0, 4.0, 0.0, 0.0, 0.0]


def test_several_classes_per_node_are_float32(saved: Callable[..., str]) -> None:
    labels = (np.arange(40).reshape(10, 4) % 3 == 0).astype(np.uint8)
    held = read_node_data(saved(labels=labels), 10)
    assert held.labels is not None
    assert (held.labels.dtype, held.labels.tolist()) == (np.dtype(np.float32), labels.tolist())


def test_negative_labels_are_unknown(saved: Callable[..., str]) -> None:
    held = read_node_data(saved(labels=np.array([-7, -1, 3, 0, 0, 0, 0, 0, 0, 0], dtype=np.int8)), 10)
    assert held.labels is not None
    assert held.labels.tolist() == [-1, -1, 3, 0, 0, 0, 0, 0, 0, 0]
    assert read_node_data(saved(labels=np.full(10, -1)), 10).labels is None


_ONES, _MASK = np.ones(10, dtype=np.uint8), "[10] of zeros and ones is needed"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((9, 3))}, "features have shape [9, 3]; [10, 1 or more] is needed"),
        ({"x": np.zeros((10, 0))}, "features have shape [10, 0]; [10, 1 or more] is needed"),
        ({"x": np.full((10, 3), 1e300)}, "the features hold values that are not finite in float32"),
        ({"x": np.full((10, 3), "a")}, "'x' is <U1[10, 3]; numbers are needed"),
        ({**_TRIPLE, "x_data": None}, "missing: x_data"),
        ({**_TRIPLE, "x_data": np.array([1, 2, np.inf, 4])}, "values that are not finite"),
        ({**_TRIPLE, "x_data": np.zeros(3)}, "'x_data' has shape [3]; [4] is needed"),
        ({**_TRIPLE, "x_indices": np.array([5, 0, 6, 2])}, "'x_indices' run from 0 to 6; 6 columns are there"),
        (
            {**_TRIPLE, "x_indices": np.full(4, 0.5)},
            "'x_indices' is float64[4] with the value 0.5; integers are needed",
        ),
        ({**_TRIPLE, "x_indptr": np.array([0, 4])}, "'x_indptr' must rise from 0 to 4 in 11 values"),
        ({**_TRIPLE, "x_indptr": np.array([0, 4, 3, 3, 3, 3, 3, 3, 3, 3, 4])}, "'x_indptr' must rise from 0 to 4"),
        ({**_TRIPLE, "x_shape": np.array([10, 0])}, "'x_shape' is [10, 0]; [10, 1 or more] is needed"),
        ({"labels": np.zeros(9, dtype=int)}, "labels have shape [9]; [10] or [10, classes] is needed"),
        ({"labels": np.zeros((10, 0))}, "labels have shape [10, 0]; [10] or [10, classes] is needed"),
        ({"labels": np.full((10, 2), -1)}, "'labels' of several classes per node must be 0 to 1"),
        ({"labels": np.full((10, 2), np.nan)}, "'labels' of several classes per node must be 0 to 1"),
        ({"labels": np.full(10, 10**6)}, "'labels' run up to 1000000; at most 1000000 classes are allowed"),
        ({"labels": np.full(10, 0.5)}, "'labels' is float64[10] with the value 0.5; integers are needed"),
        ({"val_mask": None}, "only train_mask, test_mask; all of train_mask, val_mask, test_mask are needed, or none"),
        ({"val_mask": np.zeros((9, 2), dtype=np.uint8)}, f"'val_mask' is uint8[9, 2]; {_MASK}"),
        (
            {"val_mask": np.zeros((10, 2), dtype=np.uint8)},
            "train_mask holds 1, val_mask holds 2, test_mask holds 1 splits; equally many are needed",
        ),
        ({"val_mask": np.full(10, 2, dtype=np.uint8)}, f"'val_mask' is uint8[10]; {_MASK}"),
        ({"test_mask": np.full(10, 0.5)}, f"'test_mask' is float64[10]; {_MASK}"),
        ({"test_mask": _ONES}, "train_mask and test_mask have 6 nodes in common; allowed: none"),
        ({"train_mask": 0 * _ONES, "test_mask": _ONES}, "val_mask and test_mask have 2 nodes in common; allowed: none"),
    ],
)
def test_a_wrong_array_is_named(saved: Callable[..., str], arrays: dict[str, AnyArray], message: str) -> None:
    path = saved(**arrays)
    with pytest.raises(FileError) as caught:
        read_node_data(path, 10)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


_OWNER = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2, 2])


@pytest.fixture
def ring(saved: Callable[..., str]) -> Dataset:
    return load_dataset(Options(graph=saved()))


def _npy(folder: Path, array: AnyArray) -> str:
    np.save(folder / "owner.npy", array, allow_pickle=False)
    return str(folder / "owner.npy")


@pytest.mark.parametrize(("method", "objective"), [("metis", "vol"), ("metis", "cut"), ("random", "vol")])
def test_without_a_file_the_options_partition_the_graph(ring: Dataset, method: str, objective: str) -> None:
    options = Options(workers=3, partition_method=method, objective=objective, partition_seed=4)
    partitioning = partitioning_of(options, ring)
    expected = partition_graph(ring.graph, 3, method, objective, 4)
    assert (partitioning.parts, partitioning.method, partitioning.seed) == (3, expected.method, 4)
    assert partitioning.owner.tolist() == expected.owner.tolist()


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8, np.uint64])
def test_an_assignment_is_taken_as_it_is(ring: Dataset, tmp_path: Path, dtype: type[np.generic]) -> None:
    partitioning = partitioning_of(Options(workers=3, partition=_npy(tmp_path, _OWNER.astype(dtype))), ring)
    assert (partitioning.owner.tolist(), partitioning.owner.dtype) == (_OWNER.tolist(), np.dtype(np.int32))
    assert (partitioning.parts, partitioning.method, partitioning.graph_name) == (3, "file", "ring")
    assert partitioning.graph_hash == ring.graph.content_hash()
    assert not partitioning.owner.flags.writeable


@pytest.mark.parametrize("name", ["ring.part.3", "owner.txt"])
def test_a_number_a_line_is_an_assignment(ring: Dataset, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("".join(f"{part}\n" for part in _OWNER))
    partitioning = partitioning_of(Options(workers=3, partition=str(tmp_path / name)), ring)
    assert (partitioning.owner.tolist(), partitioning.method) == (_OWNER.tolist(), "file")


def test_training_takes_what_the_simulator_takes(ring: Dataset, saved: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "dgl").mkdir()
    (tmp_path / "dgl" / "ring.json").write_text('{"num_parts": 3, "node_map": "out/node_map.npy"}')
    np.save(tmp_path / "dgl" / "node_map.npy", _OWNER)
    trained = partitioning_of(Options(workers=3, partition=str(tmp_path / "dgl")), ring)
    simulated = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 3},
        "workload": {"graph": saved()},
        "partition": {"file": str(tmp_path / "dgl")},
    }
    scenario = from_mapping(simulated, "test")
    partitioning, _ = GraphSource(saved()).partition(scenario)
    assert partitioning.owner_hash == trained.owner_hash


def test_the_balance_of_training_nodes_is_that_of_the_partitioner(ring: Dataset) -> None:
    partitioning = partitioning_of(Options(workers=2, balance="training-nodes"), ring)
    expected = partition_graph(ring.graph, 2, balance="training-nodes", training=ring.train)
    assert (partitioning.owner.tolist(), partitioning.method) == (
        expected.owner.tolist(),
        "metis-vol-by-training-nodes",
    )
    assert np.bincount(partitioning.owner[ring.train]).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("more", "other"),
    [({"partition": "a.npy"}, "--partition a.npy"), ({"partition_method": "random"}, "--partition-method random")],
)
def test_a_balance_is_for_metis_alone(more: dict[str, str], other: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        Options(balance="edges", **more)  # type: ignore[arg-type]
    assert str(caught.value) == f"--balance: edges is for METIS, not for {other}; allowed: nodes"


def test_our_partition_file_is_read(ring: Dataset, tmp_path: Path) -> None:
    made = partition_graph(ring.graph, 3, "random", seed=2)
    write_partition(tmp_path / "ring.part", made)
    partitioning = partitioning_of(Options(workers=3, partition=str(tmp_path / "ring.part")), ring)
    assert partitioning.owner.tolist() == made.owner.tolist()
    assert (partitioning.method, partitioning.seed) == ("random", 2)
    with pytest.raises(FileError, match=r"ring.part: made for 3 workers, but --workers is 2$"):
        partitioning_of(Options(workers=2, partition=str(tmp_path / "ring.part")), ring)


def test_a_partition_of_another_graph_is_refused(ring: Dataset, tmp_path: Path) -> None:
    (tmp_path / "path.txt").write_text("".join(f"{node} {node + 1}\n" for node in range(9)))
    other = load_dataset(Options(graph=str(tmp_path / "path.txt"), random_features=2, random_classes=2))
    write_partition(tmp_path / "path.part", partition_graph(other.graph, 2))
    with pytest.raises(FileError, match=r"path.part: made for 'path' .* which is not the graph 'ring'"):
        partitioning_of(Options(workers=2, partition=str(tmp_path / "path.part")), ring)


@pytest.mark.parametrize(
    ("owner", "workers", "message"),
    [
        (_OWNER, 2, "made for 3 workers, but --workers is 2"),
        (_OWNER, 4, "made for 3 workers, but --workers is 4"),
        (_OWNER - 1, 2, "part -1 is not allowed; parts are numbered from 0"),
        (_OWNER // 2 * 2, 3, "part 1 of 0 to 2 has no node; each part needs one"),
        (_OWNER[:9], 3, "9 owners of 10 nodes; each node of ring needs the number of its part"),
        (_OWNER > 0, 2, "bool[10]; a row of integers, each node's part, is needed"),
        (_OWNER.reshape(2, 5), 3, "int64[2, 5]; a row of integers, each node's part, is needed"),
    ],
)
def test_a_wrong_assignment_is_named(
    ring: Dataset, tmp_path: Path, owner: AnyArray, workers: int, message: str
) -> None:
    path = _npy(tmp_path, owner)
    with pytest.raises(FileError) as caught:
        partitioning_of(Options(workers=workers, partition=path), ring)
    assert str(caught.value) == f"{path}: {message}"


def test_damaged_missing_and_foreign_files_are_refused(ring: Dataset, tmp_path: Path) -> None:
    path = Path(_npy(tmp_path, _OWNER))
    path.write_bytes(path.read_bytes()[:-3])
    (tmp_path / "text.part").write_text("0 0 1 1\n")
    for name in ("owner.npy", "none.npy", "none.part", "text.part"):
        with pytest.raises(FileError) as caught:
            partitioning_of(Options(workers=3, partition=str(tmp_path / name)), ring)
        assert str(caught.value).startswith(f"{tmp_path / name}: ")
        assert "\n" not in str(caught.value)


def test_more_workers_than_nodes_are_refused(ring: Dataset, tmp_path: Path) -> None:
    for path in (None, _npy(tmp_path, _OWNER)):
        with pytest.raises(ScenarioError) as caught:
            partitioning_of(Options(workers=11, partition=path), ring)
        assert str(caught.value) == "--workers: 11 is more than the 10 nodes of ring; allowed: 1 to 10"
