"""An answer for a graph that is known by its outline says what it assumes."""

from __future__ import annotations

import pytest

from gcnsim.methods import create_method
from gcnsim.planning.provenance import provenance
from gcnsim.planning.study_cache import StudyCache
from gcnsim.scenario import ClusterSpec, PartitionSpec, Scenario, WorkloadSpec
from gcnsim.scenario.specs import RunSpec


@pytest.mark.slow
def test_papers_at_32_gpus() -> None:
    scenario = Scenario(
        "papers",
        ClusterSpec(gpus=32, gpus_per_server=2),
        WorkloadSpec(dataset="ogbn-papers100M"),
        PartitionSpec(),
        create_method("full-graph"),
        RunSpec(iterations=5),
    )
    studies = StudyCache(scenario)
    estimate = studies.estimate(scenario)
    assert estimate.low_s is not None
    assert estimate.high_s is not None
    assert 0.0 < estimate.low_s <= estimate.iteration_s <= estimate.high_s
    content = provenance(studies, scenario, [estimate])
    assert content.graph["kind"] == "outline"
    assert "as uneven as Reddit's ten training parts" in content.graph["text"]
    assumed = {assumption.name: assumption for assumption in content.assumptions}
    ratio = assumed["boundary_ratio"]
    assert (ratio.low, ratio.value, ratio.high) == ("0.25", "0.4", "0.47")
    assert ratio.in_interval
    assert not assumed["boundary_ratios"].in_interval
    assert assumed["cross_edges"].in_interval
    assert "32 GPUs: boundary nodes by assumption" in content.warnings
