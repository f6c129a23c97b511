"""Mini-batches of scenarios: drawn from a graph, expected from a dataset's sizes, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.graph import Graph, induced
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.expected_batches import degree_law
from gcnsim.simulation.graph_source import GraphSource
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.trace.counts import BatchCounts
from gcnsim.workload import dataset
from gcnsim.workload.reach import Groups, counted, expected_neighbours
from tests.sampled import law_of


@pytest.fixture(scope="module")
def graph() -> Graph:
    return block_model(BlockModel(nodes=6000, edges=60_000), 5, "small", features=32, classes=4)


def make_scenario(
    method: dict[str, Any], gpus: int = 2, per_server: int | None = None, **sections: dict[str, Any]
) -> Scenario:
    """A question of the small graph, or of the dataset that `sections` name; 2 layers."""
    cluster = {"gpus": gpus, "gpus_per_server": per_server or gpus, **sections.pop("cluster", {})}
    workload = {"layers": 2, "hidden": 16, **sections.pop("workload", {"graph": "small"})}
    mapping = {"schema": "gcnsim.scenario/1", "cluster": cluster, "workload": workload, "method": method, **sections}
    return from_mapping(mapping, "test")


def batches(graph: Graph, scenario: Scenario) -> BatchCounts:
    batch_counts = GraphSource(graph).counts(scenario, 32, RangeEnd.LIKELY).batches
    assert batch_counts is not None
    return batch_counts


NAMES = ("dgl", "pagraph", "distdgl", "graphsage", "graphsaint", "clustergcn")


@pytest.mark.parametrize("name", NAMES)
def test_counts_agree_with_themselves(graph: Graph, name: str) -> None:
    knobs = {} if name in ("graphsaint", "clustergcn") else {"batch": 300}
    batch_counts = batches(graph, make_scenario({"name": name, **knobs}, run={"iterations": 4}))
    assert batch_counts.levels.shape == (4, 2, 3)
    assert batch_counts.entries.shape == (4, 2, 2)
    assert (np.diff(batch_counts.levels, axis=2) <= 0).all()
    assert (batch_counts.wanted.sum(axis=2) == batch_counts.levels[:, :, 0]).all()
    assert (batch_counts.hits <= batch_counts.wanted).all()
    assert batch_counts.per_epoch > 1
    again = batches(graph, make_scenario({"name": name, **knobs}, run={"iterations": 4}))
    assert (again.levels == batch_counts.levels).all()


def test_an_epoch_trains_every_training_node_once(graph: Graph) -> None:
    batch_counts = batches(graph, make_scenario({"name": "dgl", "batch": 1000}))
    assert batch_counts.per_epoch == 2
    assert batch_counts.levels[:2, :, -1].sum() == round(0.65 * 6000)
    half = batches(
        graph, make_scenario({"name": "dgl", "batch": 1000}, workload={"graph": "small", "train_fraction": "20%"})
    )
    assert half.levels[: half.per_epoch, :, -1].sum() == 1200


def test_a_batch_larger_than_the_training_nodes_is_all_of_them(graph: Graph) -> None:
    batch_counts = batches(graph, make_scenario({"name": "dgl", "batch": 1_000_000}))
    assert batch_counts.per_epoch == 1
    assert (batch_counts.levels[:, :, -1] == 1950).all()


def test_own_nodes_need_fewer_rows_of_others(graph: Graph) -> None:
    far = {}
    for name in ("distdgl", "graphsage"):
        wanted = batches(graph, make_scenario({"name": name, "batch": 200, "fanout": "5,5"}, gpus=4)).wanted
        own = wanted[:, range(4), range(4)].sum()
        far[name] = 1.0 - own / wanted.sum()
    assert far["distdgl"] < 0.8 * far["graphsage"]
    assert far["graphsage"] == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize(("size", "share"), [("0%", 0.0), ("30%", 0.3), ("100%", 1.0), ("auto", 1.0)])
def test_the_cache_holds_the_share_asked_for_and_more_rows_hit(graph: Graph, size: str, share: float) -> None:
    batch_counts = batches(graph, make_scenario({"name": "pagraph", "batch": 300, "fanout": "2,2", "cache": size}))
    assert batch_counts.cached == pytest.approx(share * batch_counts.stored, abs=1)
    assert batch_counts.hit_rate == (share if share in (0.0, 1.0) else pytest.approx(0.55, abs=0.15))
    if share == 0.3:
        assert batch_counts.hit_rate > share, "rows of high degree are wanted more often"


def test_preprocessing_loads_the_rows_of_the_next_layer(graph: Graph) -> None:
    plain, before = (
        batches(graph, make_scenario({"name": "pagraph", "batch": 300, "preprocess": answer}))
        for answer in ("no", "yes")
    )
    assert (before.levels[:, :, 0] == before.levels[:, :, 1]).all()
    assert before.levels[:, :, 0].sum() < plain.levels[:, :, 0].sum()
    assert (before.entries[:, :, 0] == 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dataset", ["reddit"])
def test_expected_counts_of_a_dataset_rise_from_the_fast_to_the_slow_end(name: str, dataset: str) -> None:
    scenario = make_scenario({"name": name}, gpus=4, workload={"dataset": dataset})
    accesses = open_source(scenario)
    rows, hits, entries = [], [], []
    for bound in RangeEnd:
        batch_counts = accesses.counts(scenario, 600, bound).batches
        assert batch_counts is not None
        assert (np.diff(batch_counts.levels, axis=2) <= 0).all()
        assert batch_counts.wanted.sum(axis=2) == pytest.approx(batch_counts.levels[:, :, 0], abs=4)
        rows.append(int(batch_counts.levels[0, 0, 0]))
        hits.append(batch_counts.hit_rate)
        entries.append(int(batch_counts.entries.sum()))
    if name == "clustergcn":
        assert entries == sorted(entries)
    else:
        assert rows == sorted(rows)
    assert hits == sorted(hits, reverse=True)


def test_expected_rows_are_those_of_a_drawn_graph_of_that_law(graph: Graph) -> None:
    """The dataset's law against a surrogate-like graph: both ends of the pipeline speak of the same counts."""
    scenario = make_scenario({"name": "dgl", "batch": 325, "fanout": "2,2"}, run={"iterations": 6})
    drawn = batches(graph, scenario).levels.mean(axis=(0, 1))
    law = law_of(graph.degrees)
    expected = expected_neighbours(law, np.array([325 / graph.nodes]), (2, 2))
    rows = [float(counted(law, Groups.one(), chance)[0]) for chance in expected.chance]
    assert rows == pytest.approx(drawn, rel=0.03)


@pytest.mark.parametrize(
    ("method", "sections", "message"),
    [
        ({"name": "dgl", "fanout": "2,2,2"}, {}, "method.fanout: 2,2,2 is not allowed; the model has 2 layers"),
        ({"name": "dgl", "layer_sizes": "400"}, {}, "method.layer_sizes: 400 is not allowed"),
        ({"name": "dgl", "layer_sizes": "4,4", "fanout": "4,4"}, {}, "both fanout and layer_sizes"),
        ({"name": "dgl", "fanout": "0,2"}, {}, "method.fanout: 0,2 is not allowed; whole numbers of at least 1"),
        ({"name": "dgl", "queue": 2}, {}, "method.queue: dgl has no queue; methods with it: pagraph"),
        ({"name": "psc-gcn", "batch": 2}, {}, "method.batch: psc-gcn has no batch; methods with it: dgl, pagraph"),
        ({"name": "graphsaint", "subgraph": "0%"}, {}, "method.subgraph: 0% is not allowed"),
        ({"name": "dgl"}, {"cluster": {"device": "cpu-core"}}, "cluster.measured_compute: null is not allowed on CPU"),
        ({"name": "dgl"}, {"workload": {"graph": "small", "dense_layers": 1}}, "workload.dense_layers: 1 is not"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    graph: Graph, method: dict[str, Any], sections: dict[str, Any], message: str
) -> None:
    with pytest.raises(GcnsimError) as caught:
        simulate_scenario(make_scenario(method, **sections), GraphSource(graph))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["dgl"])
def test_systems_of_one_server_refuse_several(graph: Graph, name: str) -> None:
    with pytest.raises(ScenarioError, match=f"gives 2 servers; {name} keeps the graph in the memory of one"):
        simulate_scenario(make_scenario({"name": name}, gpus=2, per_server=1), GraphSource(graph))


def test_a_study_tells_the_epoch_and_what_the_gpu_holds(graph: Graph) -> None:
    result = simulate_scenario(make_scenario({"name": "pagraph", "batch": 300}), GraphSource(graph))
    assert result.per_epoch == 7
    assert result.cache_hit_rate == 1.0
    assert result.memory is not None
    held = result.memory[0]
    assert held.cache / (4 * 32) == pytest.approx(6000, rel=0.1)
    assert held.total == pytest.approx(
        sum(getattr(held, name) for name in ("features", "adjacency", "activations", "cache")), rel=0.5
    )
    assert result.fits


def test_loading_that_sets_the_pace_is_named_after_what_takes_most_of_it() -> None:
    # As PaGraph describes it, with one thread that draws.
    machine = {"device": "gtx-1080-ti", "sampler_device": "cpu", "sampler_threads": 1, "features": "host"}
    result = simulate_scenario(make_scenario({"name": "dgl"}, gpus=4, workload={"dataset": "reddit"}, cluster=machine))
    assert result.limit.word == "drawing and loading on the CPU"
    fast = simulate_scenario(
        make_scenario({"name": "pagraph"}, gpus=4, workload={"dataset": "reddit"}, cluster={"device": "gtx-1080-ti"})
    )
    # Both have the 33 calls of 0.2 ms of a batch's training, which no kernel of 16 values hides.
    calls = 33 * 0.2e-3
    assert fast.metrics.iteration_s < 1.05 * calls
    assert fast.metrics.iteration_s - calls < (result.metrics.iteration_s - calls) / 4


def test_who_trains_is_what_the_graphs_file_says(graph: Graph, tmp_path: Path) -> None:
    train = np.arange(graph.nodes) % 4 == 0
    masks = {"train_mask": train, "val_mask": ~train, "test_mask": np.zeros_like(train)}
    path = tmp_path / "split.npz"
    np.savez(
        path,
        indptr=graph.indptr,
        indices=graph.indices,
        **{name: mask.astype(np.uint8) for name, mask in masks.items()},
    )
    accesses = GraphSource(str(path))
    assert accesses.splits
    assert not GraphSource(graph).splits
    batch_counts = accesses.counts(make_scenario({"name": "dgl", "batch": 1000}), 32, RangeEnd.LIKELY).batches
    assert batch_counts is not None
    assert batch_counts.per_epoch == 1
    assert batch_counts.levels[0, :, -1].sum() == train.sum()


def test_a_training_subgraph_is_that_of_the_nodes_that_train(graph: Graph, tmp_path: Path) -> None:
    train = np.arange(graph.nodes) % 2 == 0
    masks = {"train_mask": train, "val_mask": ~train, "test_mask": np.zeros_like(train)}
    path, plain = tmp_path / "split.npz", tmp_path / "plain.npz"
    arrays: dict[str, Any] = {"indptr": graph.indptr, "indices": graph.indices}
    document: dict[str, Any] = {name: mask.astype(np.uint8) for name, mask in masks.items()}
    np.savez(path, **arrays, **document)
    np.savez(plain, **arrays)
    widths = {"features": 32, "classes": 8, "training_subgraph": True}
    scenario = make_scenario({"name": "full-graph"}, workload={"dataset": None, "graph": str(path), **widths})
    accesses = open_source(scenario)
    counts = accesses.counts(scenario, 32, RangeEnd.LIKELY)
    assert counts.inner_nodes.sum() == train.sum()
    assert int(counts.entries.sum()) == induced(graph, train, "train").entries
    small = make_scenario({"name": "dgl", "batch": 3000}, workload={"dataset": None, "graph": str(path), **widths})
    batch_counts = open_source(small).counts(small, 32, RangeEnd.LIKELY).batches
    assert batch_counts is not None
    assert batch_counts.levels[0, :, -1].sum() == train.sum(), "all of its nodes train"
    whole = make_scenario({"name": "full-graph"}, workload={"dataset": None, "graph": str(plain), **widths})
    with pytest.raises(ScenarioError, match=r"workload.training_subgraph: true is not allowed; .* who trains"):
        open_source(whole)
    with pytest.raises(ScenarioError, match=r"workload.training_subgraph: true needs workload.graph"):
        make_scenario({"name": "full-graph"}, workload={"dataset": "reddit", "training_subgraph": True})


def test_neighbours_of_a_directed_graph_are_drawn_along_its_direction() -> None:
    facts = dataset("ogbn-papers100M")
    assert 2 * facts.directed == facts.entries
    one_way, both = (degree_law(facts, RangeEnd.LIKELY, directed=directed) for directed in (True, False))
    assert (one_way.directed, both.directed) == (True, False)
    assert 2 * one_way.mean == pytest.approx(both.mean)
    assert not degree_law(dataset("reddit"), RangeEnd.LIKELY, directed=True).directed
    scenario = make_scenario(
        {"name": "dgl", "batch": 1000, "fanout": "10,10"}, workload={"dataset": "ogbn-papers100M", "layers": 2}
    )
    batch_counts = open_source(scenario).counts(scenario, 128, RangeEnd.LIKELY).batches
    assert batch_counts is not None
    # No more than what is drawn and what it was drawn for, and fewer than of the graph made symmetric.
    levels = batch_counts.levels[0, 0]
    symmetric = expected_neighbours(both, np.array([1000 / facts.nodes]), (10, 10))
    assert levels[0] < counted(both, Groups.one(), symmetric.chance[0])[0]
    assert levels[0] <= levels[1] + batch_counts.entries[0, 0, 0]
