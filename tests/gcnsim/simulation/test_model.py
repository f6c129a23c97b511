"""The model of a run and its graphs: widths, draws, edges, sizes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.methods import create_method
from gcnsim.scenario import SCHEMA, Scenario, WorkloadSpec, from_mapping, scenario_hash, to_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.model import Declared, resolve_model
from gcnsim.simulation.open_source import SizesSource, open_source
from gcnsim.simulation.profile_source import SurrogateSource
from gcnsim.simulation.source import MOST_PAIRS, RangeEnd, drawn_graphs, fewer_drawn
from gcnsim.simulation.statistics_source import StatisticsSource
from gcnsim.trace.counts import AccessCounts
from gcnsim.trace.packaged_profiles import outline_of
from gcnsim.trace.sizes_only import mean_ratio
from gcnsim.workload import assumed_ratio, dataset

SPEC = WorkloadSpec()
REDDIT = StatisticsSource(dataset("reddit")).declared


def widths(spec: WorkloadSpec, declared: Declared) -> list[int]:
    shapes = resolve_model(spec, declared).shapes
    return [shapes[0].d_in, *(shape.d_out for shape in shapes)]


def test_a_dataset_brings_its_published_model() -> None:
    model = resolve_model(SPEC, REDDIT)
    assert (model.name, model.features, len(model.shapes)) == ("gcn", 602, 4)
    assert str(model) == "gcn, 4 layers, widths 602-256-256-256-41"
    assert model.assumed == ()


def test_the_scenario_overrides_each_width() -> None:
    spec = WorkloadSpec(model="graphsage", layers=2, hidden=8, features=5, classes=3)
    assert widths(spec, REDDIT) == [5, 8, 3]
    assert resolve_model(spec, REDDIT).shapes[0].weights == 2 * 5 * 8 + 8


def test_a_source_that_declares_nothing_gets_stated_widths() -> None:
    model = resolve_model(SPEC, Declared())
    assert widths(SPEC, Declared()) == [128, 256, 256, 256, 16]
    assert model.assumed == ("features", "classes")


def make_scenario(gpus: int, iterations: int = 30, **method: Any) -> Scenario:
    mapping = {
        "schema": SCHEMA,
        "cluster": {"gpus": gpus},
        "method": {"name": "psc-gcn", "epsilon": 0.1} | method,
        "run": {"iterations": iterations},
    }
    return from_mapping(mapping, "test")


@pytest.mark.parametrize(
    ("gpus", "iterations", "drawn"),
    [(6, 30, 30), (128, 10_000, 10_000), (192, 30, 30), (192, 1_000, 113), (512, 30, 16), (1024, 30, 4), (1024, 3, 3)],
)
def test_pairs_of_workers_limit_the_graphs_of_many_workers(gpus: int, iterations: int, drawn: int) -> None:
    assert drawn_graphs(make_scenario(gpus, iterations)) == drawn
    assert gpus <= 128 or drawn * gpus**2 <= MOST_PAIRS


def test_whole_graphs_are_one() -> None:
    scenario = make_scenario(1024, name="full-graph", epsilon=1)
    assert drawn_graphs(scenario) == 1
    assert not list(fewer_drawn([scenario]))


def test_fewer_graphs_are_said_once_for_each_number_of_gpus() -> None:
    lines = list(
        fewer_drawn([make_scenario(512), make_scenario(512, epsilon=0.2), make_scenario(1024), make_scenario(192)])
    )
    assert lines == [
        "512 GPUs: 16 graphs are drawn for 30 iterations, which take them in turn: each has 261,632 pairs of workers",
        "1024 GPUs: 4 graphs are drawn for 30 iterations, which take them in turn: each has 1,047,552 pairs of workers",
    ]


def test_drawn_nodes_are_means_but_of_a_graph() -> None:
    nodes = make_scenario(1024, name="bns-gcn", epsilon=1, rate=0.1)
    assert not list(fewer_drawn([nodes]))
    assert len(list(fewer_drawn([nodes], nodes=True))) == 1


def test_a_source_draws_and_says_so() -> None:
    scenario = make_scenario(400, iterations=40)
    accesses = open_source(scenario)
    counts = accesses.counts(scenario, 602, RangeEnd.LIKELY)
    assert counts.iterations == drawn_graphs(scenario) == 26
    assert any("26 graphs are drawn for 40 iterations" in line for line in accesses.warnings([scenario]))


def edge_scenario(sample: str, rate: float, **workload: object) -> Scenario:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 4},
        "workload": {"dataset": "reddit", **workload},
        "method": {"name": "bns-gcn", "rate": rate, "sample": sample},
        "run": {"iterations": 4},
    }
    return from_mapping(mapping, "test")


def counts(scenario: Scenario) -> AccessCounts:
    return open_source(scenario).counts(scenario, 602, RangeEnd.LIKELY)


@pytest.mark.parametrize("extra", [{}, {"imbalance": 1.2}], ids=["surrogate", "statistics"])
def test_as_many_edges_are_dropped_as_with_nodes(extra: dict[str, object]) -> None:
    every, nodes = (counts(replace(edge_scenario("nodes", 0.1, **extra), method=method)) for method in (
        create_method("full-graph"), create_method("bns-gcn", rate=0.1)))  # fmt: skip
    dropped = every.boundary_edges.sum() - nodes.boundary_edges.sum()
    some, of_all = (counts(edge_scenario(sample, 0.1, **extra)) for sample in ("boundary-edges", "edges"))
    assert (some.inner_edges == every.inner_edges).all()
    assert every.boundary_edges.sum() - some.boundary_edges.mean(axis=0).sum() == pytest.approx(dropped, rel=0.05)
    kept = (of_all.inner_edges + of_all.boundary_edges).mean(axis=0).sum()
    assert (every.inner_edges + every.boundary_edges).sum() - kept == pytest.approx(dropped, rel=0.05)
    rows = [found.rows.mean(axis=0).sum() for found in (nodes, some, of_all, every)]
    assert rows[0] < rows[1] < rows[2] <= rows[3]


def test_the_ends_of_the_rate() -> None:
    every = counts(edge_scenario("edges", 1.0))
    assert counts(edge_scenario("boundary-edges", 1.0)).rows.tolist() == every.rows.tolist()
    none = counts(edge_scenario("boundary-edges", 0.0))
    assert none.rows.sum() == none.boundary_edges.sum() == 0
    assert (none.inner_edges == every.inner_edges).all()


def test_edges_of_a_graph_are_really_drawn(data_dir: Path) -> None:
    graph = {"dataset": None, "graph": str(data_dir / "amazon_cs.npz")}
    some, nodes = (
        counts(edge_scenario("boundary-edges", 0.1, **graph)),
        counts(edge_scenario("nodes", 0.1, **graph)),
    )
    assert some.iterations == 4
    assert some.rows.mean() > 1.5 * nodes.rows.mean()
    assert some.boundary_edges.mean() == pytest.approx(nodes.boundary_edges.mean(), rel=0.1)


def sized_scenario(gpus: int = 6, method: str = "full-graph", **workload: Any) -> Scenario:
    sizes = {"nodes": "3M", "edges": "117M"} | workload
    cluster = {"gpus": gpus, "gpus_per_server": 1}
    return from_mapping(
        {"schema": "gcnsim.scenario/1", "cluster": cluster, "workload": sizes, "method": {"name": method}}, "test"
    )


def test_counts_add_up_to_the_sizes() -> None:
    scenario = sized_scenario(features=100, classes=7)
    source = open_source(scenario)
    assert isinstance(source, SizesSource)
    counts = source.counts(scenario, 100, RangeEnd.LIKELY)
    assert counts.inner_nodes.sum() == 3_000_000
    assert counts.entries.sum() == 234_000_000
    ratio = assumed_ratio(3_000_000, 234_000_000, 6)
    assert counts.boundary_nodes.mean() / 500_000 == pytest.approx(ratio.likely, rel=1e-3)
    nodes = [source.counts(scenario, 100, bound).boundary_nodes.mean() for bound in RangeEnd]
    assert nodes == sorted(nodes)


def test_sizes_of_a_dataset_are_answered_as_the_dataset() -> None:
    facts = dataset("igb-small")
    named = sized_scenario(nodes=None, edges=None, dataset="igb-small", hidden=64, layers=3, model="gcn")
    sized = sized_scenario(
        nodes=facts.nodes, edges=facts.entries // 2, features=1024, classes=19, hidden=64, layers=3, model="gcn"
    )
    assert simulate_scenario(named).metrics.iteration_s == simulate_scenario(sized).metrics.iteration_s


def test_widths_that_nobody_gives_are_assumed() -> None:
    source = open_source(sized_scenario())
    assert source.declared.features is None
    assert source.name == "3M nodes, 117M edges"
    assert source.describe(sized_scenario())["kind"] == "outline"
    content = {assumption.name for assumption in source.assumptions(sized_scenario(), [sized_scenario()])}
    assert {"boundary_ratio", "cross_edges"} <= content


@pytest.mark.parametrize("method", ["psc-gcn", "cagnet-1d", "pagraph"])
def test_every_kind_of_method_is_answered(method: str) -> None:
    gpus_per_server = 4 if method == "pagraph" else 1
    mapping = to_mapping(sized_scenario(4, method, nodes=20_000, edges=200_000)) | {
        "cluster": {"gpus": 4, "gpus_per_server": gpus_per_server}
    }
    assert simulate_scenario(from_mapping(mapping, "test")).metrics.iteration_s > 0.0


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"edges": None}, "workload.nodes: 3000000 needs workload.edges too"),
        ({"nodes": None, "dataset": "reddit"}, "workload.edges: 117000000 needs workload.nodes too"),
        ({"nodes": 5, "edges": 11}, "workload.edges: 11 is not allowed; 5 nodes have at most 10 undirected edges"),
        ({"dataset": "reddit"}, r"workload: both dataset \(reddit\) and nodes \(3000000\) are given"),
        ({"nodes": "3 millions"}, "workload.nodes: '3 millions' is not a whole number of at least 2"),
        ({"nodes": "2.5"}, r"workload.nodes: '2.5' is not a whole number of at least 2 .*, e.g. 2.5M or 1.6G"),
    ],
)
def test_sizes_that_cannot_be_are_refused(workload: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        sized_scenario(**workload)


def test_sizes_are_written_and_read_again() -> None:
    assert sized_scenario(nodes="2.5M", edges="1.6B") == sized_scenario(nodes="2.5M", edges="1.6G")
    scenario = sized_scenario(nodes="2.5M", edges="1.6G")
    written = to_mapping(scenario)
    assert (written["workload"]["nodes"], written["workload"]["edges"]) == (2_500_000, 1_600_000_000)
    assert from_mapping(written, "again") == scenario
    assert scenario_hash(scenario) != scenario_hash(sized_scenario(nodes="2.5M", edges="1.5G"))
    assert "nodes" not in to_mapping(from_mapping({"schema": "gcnsim.scenario/1"}, "none"))["workload"]


@pytest.mark.parametrize(
    "name",
    ["pubmed", "uk-2006"],
)
def test_datasets_known_by_sizes_have_a_boundary_by_law(name: str) -> None:
    scenario = sized_scenario(4, nodes=None, edges=None, dataset=name)
    source = open_source(scenario)
    assert isinstance(source, SurrogateSource)
    facts = outline_of(dataset(name))
    assert facts is not None
    counts = source.counts(scenario, 128, RangeEnd.LIKELY)
    ratio = counts.boundary_nodes.sum() / counts.inner_nodes.sum()
    assert ratio == pytest.approx(mean_ratio(facts, 4), rel=1e-3)
    assert np.array_equal(counts.rows[0].sum(axis=1), counts.boundary_nodes)
