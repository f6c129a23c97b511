"""A graph of which nothing but sizes is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.scenario import Scenario, from_mapping, scenario_hash, to_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.open_source import SizesSource, open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.simulation.surrogate_source import SurrogateSource
from gcnsim.trace.packaged_profiles import outline_of
from gcnsim.trace.sizes_only import mean_ratio
from gcnsim.workload import assumed_ratio, dataset


def make_scenario(gpus: int = 6, method: str = "full-graph", **workload: Any) -> Scenario:
    sizes = {"nodes": "3M", "edges": "117M"} | workload
    cluster = {"gpus": gpus, "gpus_per_server": 1}
    return from_mapping(
        {"schema": "gcnsim.scenario/1", "cluster": cluster, "workload": sizes, "method": {"name": method}}, "test"
    )


def test_counts_add_up_to_the_sizes() -> None:
    scenario = make_scenario(features=100, classes=7)
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
    named = make_scenario(nodes=None, edges=None, dataset="igb-small", hidden=64, layers=3, model="gcn")
    sized = make_scenario(
        nodes=facts.nodes, edges=facts.entries // 2, features=1024, classes=19, hidden=64, layers=3, model="gcn"
    )
    assert simulate_scenario(named).metrics.iteration_s == simulate_scenario(sized).metrics.iteration_s


def test_widths_that_nobody_gives_are_assumed() -> None:
    source = open_source(make_scenario())
    assert source.declared.features is None
    assert source.name == "3M nodes, 117M edges"
    assert source.describe(make_scenario())["kind"] == "outline"
    content = {assumption.name for assumption in source.assumptions(make_scenario(), [make_scenario()])}
    assert {"boundary_ratio", "cross_edges"} <= content


@pytest.mark.parametrize("method", ["bns-gcn", "psc-gcn", "sancus", "cagnet-1d", "pagraph", "distdgl"])
def test_every_kind_of_method_is_answered(method: str) -> None:
    gpus_per_server = 4 if method == "pagraph" else 1
    mapping = to_mapping(make_scenario(4, method, nodes=20_000, edges=200_000)) | {
        "cluster": {"gpus": 4, "gpus_per_server": gpus_per_server}
    }
    assert simulate_scenario(from_mapping(mapping, "test")).metrics.iteration_s > 0.0


def test_one_gpu_has_no_boundary() -> None:
    scenario = make_scenario(1)
    assert not open_source(scenario).counts(scenario, 100, RangeEnd.LIKELY).boundary_nodes.any()


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"edges": None}, "workload.nodes: 3000000 needs workload.edges too"),
        ({"nodes": None, "dataset": "reddit"}, "workload.edges: 117000000 needs workload.nodes too"),
        ({"nodes": 5, "edges": 11}, "workload.edges: 11 is not allowed; 5 nodes have at most 10 undirected edges"),
        ({"dataset": "reddit"}, r"workload: both dataset \(reddit\) and nodes \(3000000\) are given"),
        ({"nodes": "3 millions"}, "workload.nodes: '3 millions' is not a whole number of at least 2"),
        ({"nodes": "2.5"}, r"workload.nodes: '2.5' is not a whole number of at least 2 .*, e.g. 2.5M or 1.6G"),
        ({"edges": "1e99"}, "workload.edges: '1e99' is not a whole number"),
        ({"edges": "900T"}, r"workload.edges: 9e\+14 is not allowed"),
        ({"nodes": True}, "workload.nodes: True is not a whole number"),
    ],
)
def test_sizes_that_cannot_be_are_refused(workload: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        make_scenario(**workload)


def test_what_only_a_graph_could_answer_is_refused() -> None:
    for workload, message in (
        ({"imbalance": 1.5}, "workload.imbalance: 1.5 is not allowed; null is, no boundary of 3M nodes"),
        ({"cross_fraction": "10%"}, "workload.cross_fraction: 0.1 is not allowed; null is"),
    ):
        scenario = make_scenario(**workload)
        with pytest.raises(ScenarioError, match=message):
            open_source(scenario).counts(scenario, 100, RangeEnd.LIKELY)
    with pytest.raises(ScenarioError, match=r"cluster.gpus: 6 is not allowed; workload.nodes is 4"):
        open_source(make_scenario(nodes=4, edges=5))


def test_sizes_are_written_and_read_again() -> None:
    scenario = make_scenario(nodes="2.5M", edges="1.6G")
    written = to_mapping(scenario)
    assert (written["workload"]["nodes"], written["workload"]["edges"]) == (2_500_000, 1_600_000_000)
    assert from_mapping(written, "again") == scenario
    assert scenario_hash(scenario) != scenario_hash(make_scenario(nodes="2.5M", edges="1.5G"))
    assert "nodes" not in to_mapping(from_mapping({"schema": "gcnsim.scenario/1"}, "none"))["workload"]


@pytest.mark.parametrize(
    "name",
    ["ogbn-arxiv", "pubmed", "orkut", "igb-large", "mag240m-citation", "twitter", "uk-2006"],
)
def test_datasets_known_by_sizes_have_a_boundary_by_law(name: str) -> None:
    scenario = make_scenario(4, nodes=None, edges=None, dataset=name)
    source = open_source(scenario)
    assert isinstance(source, SurrogateSource)
    facts = outline_of(dataset(name))
    assert facts is not None
    counts = source.counts(scenario, 128, RangeEnd.LIKELY)
    ratio = counts.boundary_nodes.sum() / counts.inner_nodes.sum()
    assert ratio == pytest.approx(mean_ratio(facts, 4), rel=1e-3)
    assert np.array_equal(counts.rows[0].sum(axis=1), counts.boundary_nodes)
