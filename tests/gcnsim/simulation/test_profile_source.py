"""A stored profile answers for its graph, at its number of parts, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.formats.write import write_npz
from gcnsim.graph.generate import BlockModel, block_model
from gcnsim.graph.parts import split
from gcnsim.methods import Method, create_method
from gcnsim.scenario import ClusterSpec, PartitionSpec, Scenario, WorkloadSpec, from_mapping, scenario_hash, to_mapping
from gcnsim.scenario.specs import RunSpec
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.graph_source import GraphSource
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.profile_source import ProfileSource
from gcnsim.simulation.source import RangeEnd
from gcnsim.trace.stored_profile import stored_profile, write_profile

PARTS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A drawn graph, and the profile of its METIS parts."""
    found = tmp_path_factory.mktemp("stored")
    graph = block_model(BlockModel(6_000, 60_000, communities=12), 0, "drawn")
    write_npz(found / "g.npz", graph)
    loaded = load_graph(found / "g.npz")
    cut = partition_graph(loaded, PARTS)
    profile = stored_profile(split(loaded, cut), cut)
    write_profile(found / "g.profile", profile)
    origin = replace(profile.origin, source="surrogate", name="yelp", cross_range=(0.8, 1.25))
    write_profile(found / "yelp.profile", replace(profile, origin=origin))
    return found


def make_scenario(workload: WorkloadSpec, method: Method, gpus: int = PARTS) -> Scenario:
    cluster = ClusterSpec(gpus=gpus, gpus_per_server=1)
    return Scenario("test", cluster, workload, PartitionSpec(), method, RunSpec(iterations=20))


@pytest.mark.parametrize(
    "method",
    [
        create_method("full-graph"),
        create_method("bns-gcn", rate=0.1),
        create_method("psc-gcn", epsilon=0.1),
        create_method("psc-gcn", epsilon=0.3, sampler="uniform"),
    ],
)
def test_it_answers_as_the_graph_does(folder: Path, method: Method) -> None:
    graph = make_scenario(WorkloadSpec(dataset=None, graph=str(folder / "g.npz")), method)
    stored = make_scenario(WorkloadSpec(dataset=None, profile=str(folder / "g.profile")), method)
    real, accesses = open_source(graph), open_source(stored)
    assert isinstance(real, GraphSource)
    assert isinstance(accesses, ProfileSource)
    assert accesses.graph_hash == real.graph_hash
    assert accesses.assumption_bounds == (RangeEnd.LIKELY,)
    one, other = real.counts(graph, 64, RangeEnd.LIKELY), accesses.counts(stored, 64, RangeEnd.LIKELY)
    assert other.boundary_nodes.tolist() == one.boundary_nodes.tolist()
    assert other.entries.tolist() == one.entries.tolist()
    assert np.mean(other.rows.sum(axis=(1, 2))) == pytest.approx(np.mean(one.rows.sum(axis=(1, 2))), rel=0.03)
    assert simulate_scenario(stored, accesses).metrics.iteration_s == pytest.approx(
        simulate_scenario(graph, real).metrics.iteration_s, rel=0.02
    )


def test_what_a_surrogate_leaves_open_is_covered(folder: Path) -> None:
    path = str(folder / "yelp.profile")
    scenario = make_scenario(WorkloadSpec(dataset=None, profile=path), create_method("psc-gcn", epsilon=0.1))
    accesses = ProfileSource(path)
    rows = [accesses.counts(scenario, 64, bound).rows.sum() for bound in RangeEnd]
    assert rows == sorted(rows)
    assert rows[0] < rows[-1]
    assert (accesses.graph_hash, accesses.declared.features, accesses.declared.classes) == (None, 300, 100)


def test_other_numbers_of_gpus_and_other_questions_are_refused(folder: Path) -> None:
    workload = WorkloadSpec(dataset=None, profile=str(folder / "g.profile"))
    accesses = ProfileSource(workload.profile or "")
    full, batches = create_method("full-graph"), create_method("dgl")
    with pytest.raises(ScenarioError, match=r"cluster\.gpus: 4 is not allowed; .*g\.profile is a profile of 3 parts"):
        accesses.counts(make_scenario(workload, full, 4), 64, RangeEnd.LIKELY)
    with pytest.raises(ScenarioError, match=r"method\.name: dgl trains mini-batches; .*g\.profile"):
        accesses.counts(make_scenario(workload, batches), 64, RangeEnd.LIKELY)
    with pytest.raises(ScenarioError, match=r"partition: .*g\.profile is partitioned already"):
        open_source(replace(make_scenario(workload, full), partition=PartitionSpec(seed=1)))
    with pytest.raises(ScenarioError, match=r"workload\.imbalance: cannot be set, it is counted on .*g\.profile"):
        open_source(make_scenario(replace(workload, imbalance=1.5), full))
    with pytest.raises(ScenarioError, match=r"both trace \(t\) and profile \(p\) are given"):
        WorkloadSpec(dataset=None, trace="t", profile="p")


def test_a_scenario_keeps_it_and_others_are_written_as_before(folder: Path) -> None:
    raw = {"schema": "gcnsim.scenario/1", "workload": {"profile": str(folder / "g.profile")}}
    scenario = from_mapping(raw, "s")
    assert scenario.workload.dataset is None
    assert from_mapping(to_mapping(scenario), "s") == scenario
    assert scenario_hash(scenario) != scenario_hash(from_mapping({"schema": "gcnsim.scenario/1"}, "s"))
    assert "profile" not in to_mapping(from_mapping({"schema": "gcnsim.scenario/1"}, "s"))["workload"]
