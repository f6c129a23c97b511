"""How soon sums read rows again reaches predictions of workers on cores, the same of a graph as of its trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.boundary import AccessCounts
from gcnsim.calibration_record.record import write_calibration
from gcnsim.hardware.profiles import TERMS, SumFigures
from gcnsim.methods import Method, create_method
from gcnsim.scenario import ClusterSpec, PartitionSpec, RunSpec, Scenario, WorkloadSpec
from gcnsim.simulation import simulate_scenario
from gcnsim.sources import GraphSource, RangeEnd, open_source
from gcnsim.trace import write_trace
from tests.gcnsim.calibration.made import calibration

FULL, DRAWN = create_method("full-graph"), create_method("psc-gcn", epsilon=0.3)
NODES = create_method("bns-gcn", rate=0.3)
SUMS = SumFigures((48e3, 2e6, 4e7), dict.fromkeys(TERMS, 1e-6))


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 nodes in a ring with chords."""
    path = tmp_path_factory.mktemp("graph") / "ring.txt"
    path.write_text("".join(f"{i} {(i + step) % 60}\n" for i in range(60) for step in (1, 7)))
    return path


def make_scenario(path: Path, method: Method, device: str = "cpu-core") -> Scenario:
    cluster = ClusterSpec(gpus=3, gpus_per_server=1, device=device)
    workload = WorkloadSpec(dataset=None, graph=str(path), features=8, classes=4)
    return Scenario("test", cluster, workload, PartitionSpec(method="block"), method, RunSpec(iterations=5))


def counted(scenario: Scenario) -> AccessCounts:
    return open_source(scenario).counts(scenario, 8, RangeEnd.LIKELY)


@pytest.mark.parametrize("method", [FULL, DRAWN, NODES], ids=["full", "drawn", "nodes"])
def test_a_graph_and_its_trace_say_the_same(graph_file: Path, tmp_path: Path, method: Method) -> None:
    scenario = make_scenario(graph_file, method)
    source = open_source(scenario)
    assert isinstance(source, GraphSource)
    write_trace(tmp_path / "t", source.trace(scenario))
    workload = replace(scenario.workload, graph=None, trace=str(tmp_path / "t"))
    replayed = counted(replace(scenario, workload=workload, partition=PartitionSpec()))
    counts = source.counts(scenario, 8, RangeEnd.LIKELY)
    assert counts.reuse is not None
    assert replayed.reuse is not None
    assert np.array_equal(counts.reuse, replayed.reuse)
    placed = counts.placed(np.array([2, 0, 1]))
    assert placed.reuse is not None
    assert np.array_equal(placed.reuse, counts.reuse[[2, 0, 1]])


def test_gpus_are_not_asked_for_it(graph_file: Path) -> None:
    assert counted(make_scenario(graph_file, DRAWN, "t4")).reuse is None


def test_a_record_that_knows_the_order_of_matrices_predicts_with_it(graph_file: Path, tmp_path: Path) -> None:
    scenario = make_scenario(graph_file, DRAWN)
    times = []
    for name, seconds in (("plain", None), ("cheap", 1e-6), ("dear", 2e-6)):
        sums = None if seconds is None else replace(SUMS, seconds=dict.fromkeys(TERMS, seconds))
        write_calibration(tmp_path / name, calibration(sums=sums, graphs={}))
        chosen = replace(scenario, cluster=replace(scenario.cluster, calibration=str(tmp_path / name)))
        times.append(simulate_scenario(chosen, open_source(chosen)).metrics.compute_s)
    plain, cheap, dear = times
    assert plain < cheap < dear
