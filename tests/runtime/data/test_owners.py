from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.ids import AnyArray
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.owners import write_partition
from gcnsim.scenario import from_mapping
from gcnsim.simulation.graph_source import GraphSource
from runtime.data import Dataset, load_dataset, partitioning_of
from runtime.options import Options

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
