"""What runs one after the other have in common is made once: the partition of a graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from runtime.data import DatasetCache, load, load_dataset, partitioning_of
from runtime.data.load import KEPT
from runtime.options import Options
from tests.runtime.conftest import Case, MakeOptions


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """The options that partitions are made for."""
    found: list[Options] = []

    def counted(options: Options, dataset: object) -> object:
        found.append(options)
        return partitioning_of(options, dataset)  # type: ignore[arg-type]

    monkeypatch.setattr(load, "partitioning_of", counted)
    return found


def test_a_partition_is_made_once_for_all_runs_that_ask_for_it(options: MakeOptions, made: list[Options]) -> None:
    held, requested = DatasetCache(), options(workers=2)
    dataset = load_dataset(requested)
    first = held.owners(requested, dataset)
    again = held.owners(replace(requested, method="pipegcn", hidden=9, iterations=3), load_dataset(requested))
    assert again is first
    assert len(made) == 1
    for other in ({"workers": 3}, {"partition_seed": 1}, {"partition_method": "block"}, {"partition_method": "metis"}):
        held.owners(replace(requested, **other), dataset)
    assert len(made) == 5
    assert len(held.partitions) == KEPT
    assert np.array_equal(held.owners(requested, dataset).owner, first.owner)
    assert len(made) == 6, "the one that was made longest ago is gone"


def test_another_graph_and_other_training_nodes_are_another_partition(
    options: MakeOptions, case: Case, made: list[Options]
) -> None:
    held, requested = DatasetCache(), options(workers=2, partition_method="metis", balance="training-nodes")
    dataset = load_dataset(requested)
    held.owners(requested, dataset)
    held.owners(requested, replace(dataset, train=~dataset.train))
    held.owners(replace(requested, balance="nodes"), dataset)
    held.owners(replace(requested, balance="nodes"), replace(dataset, train=~dataset.train))
    assert len(made) == 3, "who trains matters where it is balanced"
    held.owners(replace(requested, balance="nodes"), load_dataset(Options(dataset="digits")))
    assert len(made) == 4


def test_owners_in_a_file_are_read_each_time(options: MakeOptions, made: list[Options], tmp_path: object) -> None:
    path = f"{tmp_path}/owner.npy"
    np.save(path, np.arange(120, dtype=np.int32) % 2, allow_pickle=False)
    held, requested = DatasetCache(), options(workers=2, partition=path)
    dataset = load_dataset(requested)
    for _ in range(2):
        assert held.owners(requested, dataset).parts == 2
    assert len(made) == 2
