"""A scenario that takes the partitions which tables print: `partition.statistics: published`."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.planning.alternatives import least_gpus
from gcnsim.scenario import Scenario, from_mapping, scenario_hash, to_mapping
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.profile_source import SurrogateSource
from gcnsim.simulation.published_tables import PublishedTables
from gcnsim.simulation.source import RangeEnd

PAPERS = "ogbn-papers100M"


def make_scenario(
    dataset: str = "ogbn-products",
    gpus: int = 6,
    method: str = "full-graph",
    workload: dict[str, Any] | None = None,
    **partition: Any,
) -> Scenario:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": gpus},
        "workload": {"dataset": dataset, **(workload or {})},
        "method": {"name": method},
        "partition": partition,
    }
    return from_mapping(mapping, "test")


def test_printed_counts_are_taken_and_the_largest_part_is_uneven_as_published() -> None:
    scenario = make_scenario(statistics="published")
    accesses = open_source(scenario)
    assert isinstance(accesses, PublishedTables)
    counts = accesses.counts(scenario, 100, RangeEnd.LIKELY)
    assert counts.boundary_nodes.mean() == pytest.approx(245_300, rel=1e-3)
    assert counts.boundary_nodes.max() / counts.boundary_nodes.mean() == pytest.approx(6**0.2252, rel=0.01)
    assert isinstance(open_source(make_scenario()), SurrogateSource)


@pytest.mark.parametrize("method", ["sancus"])
def test_methods_whose_tables_deal_nodes_at_random_get_parts_that_are_alike(method: str) -> None:
    scenario = make_scenario("reddit", 4, method, statistics="published")
    counts = open_source(scenario).counts(scenario, 602, RangeEnd.LIKELY)
    assert counts.boundary_nodes.max() == counts.boundary_nodes.min()
    assert counts.boundary_nodes[0] == pytest.approx(232_965 * 3 / 4, rel=1e-3)


def test_some_gpus_stand_for_more() -> None:
    scenario = make_scenario(PAPERS, 24, statistics="published", parts=192)
    accesses = open_source(scenario)
    counts = accesses.counts(scenario, 128, RangeEnd.LIKELY)
    assert counts.inner_nodes[0] == pytest.approx(111_059_956 / 192, rel=1e-5)
    assert least_gpus(scenario, accesses) is None, "fewer of them hold parts as large"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parts": 12}, "partition.parts: 12 needs partition.statistics: published"),
        ({"statistics": "published", "seed": 2}, "partition: ogbn-products is partitioned already"),
        ({"statistics": "published", "workload": {"imbalance": 1.5}}, "workload.imbalance: not with partition.stat"),
        ({"statistics": "published", "parts": 4}, "partition.parts: 4 is not allowed; at least cluster.gpus, 6"),
        ({"statistics": "published", "parts": 12, "method": "roc"}, "12 is not allowed with 6 GPUs; who sends to all"),
        (
            {"statistics": "published", "workload": {"dataset": None, "graph": "none.npz"}},
            "published ones exist for datasets only, not none.npz; allowed: profile",
        ),
    ],
)
def test_what_it_cannot_be_asked_with_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        drawn(given)


def drawn(given: dict[str, Any]) -> None:
    scenario = make_scenario(**given)
    open_source(scenario).counts(scenario, 100, RangeEnd.LIKELY)


def test_it_is_written_only_where_it_was_chosen() -> None:
    chosen = make_scenario(statistics="published")
    assert to_mapping(chosen)["partition"]["statistics"] == "published"
    assert "statistics" not in to_mapping(make_scenario())["partition"]
    assert from_mapping(to_mapping(chosen), "again") == chosen
    assert scenario_hash(chosen) != scenario_hash(make_scenario())


def test_settings_whose_counts_have_different_sources_say_so() -> None:
    scenarios = [make_scenario("reddit", gpus, statistics="published") for gpus in (4, 6)]
    source = open_source(scenarios[0])
    (warning,) = (text for text in source.warnings(scenarios) if "sources" in text)
    assert "4 GPUs: github" in warning
    assert "6 GPUs: S. Wang et al." in warning
    assert not [text for text in source.warnings(scenarios[:1]) if "sources" in text]
