"""Source of graphs, traces and datasets: what is counted, what is kept, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import GraphError, ScenarioError
from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.owners import write_partition
from gcnsim.methods import Method, create_method
from gcnsim.scenario import ClusterSpec, PartitionSpec, Scenario, WorkloadSpec
from gcnsim.scenario.specs import RunSpec
from gcnsim.simulation.graph_source import GraphSource
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.simulation.statistics_source import LOAD, StatisticsSource, load_shares, owner_shares, scaled, server_of
from gcnsim.simulation.trace_source import TraceSource
from gcnsim.trace import write_trace
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import dataset

FULL, DRAWN = create_method("full-graph"), create_method("psc-gcn", epsilon=0.3)
NODES = create_method("bns-gcn", rate=0.3)


@pytest.fixture(scope="module")
def graph_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 nodes in a ring with chords."""
    path = tmp_path_factory.mktemp("graph") / "ring.txt"
    path.write_text("".join(f"{i} {(i + step) % 60}\n" for i in range(60) for step in (1, 7)))
    return path


def scenario(workload: WorkloadSpec, method: Method = FULL, gpus: int = 3) -> Scenario:
    return Scenario(
        "test", ClusterSpec(gpus=gpus, gpus_per_server=1), workload, PartitionSpec(), method, RunSpec(iterations=5)
    )


def of_graph(path: Path, method: Method = FULL, gpus: int = 3) -> Scenario:
    found = scenario(WorkloadSpec(dataset=None, graph=str(path)), method, gpus)
    return replace(found, partition=PartitionSpec(method="block"))


def counts_of(base: Scenario) -> AccessCounts:
    return open_source(base).counts(base, 8, RangeEnd.LIKELY)


def test_every_edge_of_a_graph_is_one_graph_that_needs_the_whole_boundary(graph_file: Path) -> None:
    counts = counts_of(of_graph(graph_file))
    assert counts.rows.shape == (1, 3, 3)
    assert counts.rows[0].sum(axis=1).tolist() == counts.boundary_nodes.tolist() == [14, 14, 14]
    assert (counts.inner_edges + counts.boundary_edges)[0].tolist() == counts.entries.tolist()
    assert counts.entries.sum() == 4 * 60


def test_drawn_graphs_need_less_and_differ(graph_file: Path) -> None:
    counts = counts_of(of_graph(graph_file, DRAWN))
    assert counts.iterations == 5
    assert (counts.rows.sum(axis=2) <= counts.boundary_nodes).all()
    assert len({row.tobytes() for row in counts.rows}) > 1


def test_drawn_nodes_keep_all_inner_entries_and_their_share_of_each_pair(graph_file: Path) -> None:
    counts, full = counts_of(of_graph(graph_file, NODES)), counts_of(of_graph(graph_file))
    assert counts.iterations == 5
    assert (np.abs(counts.rows - 0.3 * full.rows) < 1.0).all()
    assert counts.inner_edges.tolist() == full.inner_edges.tolist() * 5
    assert (counts.boundary_edges < full.boundary_edges).all()
    assert len({row.tobytes() for row in counts.boundary_edges}) > 1


@pytest.mark.parametrize(("rate", "share"), [(0.0, 0), (1.0, 1)])
def test_a_rate_of_nothing_and_of_everything(graph_file: Path, rate: float, share: int) -> None:
    counts, full = counts_of(of_graph(graph_file, NODES.with_knobs(rate=rate))), counts_of(of_graph(graph_file))
    assert counts.rows[0].tolist() == (share * full.rows[0]).tolist()
    assert counts.boundary_edges[0].tolist() == (share * full.boundary_edges[0]).tolist()


def test_a_graph_is_cut_and_drawn_once(graph_file: Path) -> None:
    base = of_graph(graph_file, DRAWN)
    accesses = GraphSource(str(graph_file))
    first = accesses.counts(base, 8, RangeEnd.LIKELY)
    faster = replace(base, cluster=replace(base.cluster, bandwidth=1e10), method=DRAWN.with_knobs(tau=9))
    assert accesses.counts(faster, 8, RangeEnd.LIKELY) is first
    assert accesses.partition(base) is accesses.partition(faster)
    other = replace(base, run=RunSpec(iterations=5, seed=1))
    assert (accesses.counts(other, 8, RangeEnd.LIKELY).rows != first.rows).any()
    for iterations in (3, 5, 7):
        fewer = replace(base, run=RunSpec(iterations=iterations, seed=base.run.seed))
        alone = GraphSource(str(graph_file)).counts(fewer, 8, RangeEnd.LIKELY)
        counts = accesses.counts(fewer, 8, RangeEnd.LIKELY)
        assert counts.iterations == iterations
        assert counts.rows.tolist() == alone.rows.tolist()
        assert counts.boundary_edges.tolist() == alone.boundary_edges.tolist()


def test_a_partition_file_is_used_and_must_fit(graph_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.gcnsim"
    write_partition(path, partition_graph(load_graph(graph_file), 3, method="random", seed=4))
    base = replace(of_graph(graph_file), partition=PartitionSpec(file=str(path)))
    assert (counts_of(base).rows != counts_of(of_graph(graph_file)).rows).any()
    with pytest.raises(ScenarioError, match="has 3 parts, the cluster has 4 GPUs"):
        counts_of(replace(base, cluster=ClusterSpec(gpus=4)))


@pytest.mark.parametrize("name", ["owner.npy", "ring.part.3", "dgl"])
def test_a_partition_of_others_is_counted_as_one_of_ours(graph_file: Path, tmp_path: Path, name: str) -> None:
    owner = np.arange(60) // 20  # as `block` cuts
    np.save(tmp_path / "owner.npy", owner)
    (tmp_path / "ring.part.3").write_text("".join(f"{part}\n" for part in owner))
    (tmp_path / "dgl").mkdir()
    np.save(tmp_path / "dgl" / "node_map.npy", owner)
    (tmp_path / "dgl" / "ring.json").write_text('{"num_parts": 3, "node_map": "dgl/node_map.npy"}')
    base = replace(of_graph(graph_file), partition=PartitionSpec(file=str(tmp_path / name)))
    ours = of_graph(graph_file)
    assert (counts_of(base).rows == counts_of(ours).rows).all()
    source = open_source(base)
    text = source.describe(base)["text"]
    assert f"; parts of {tmp_path / name} (SHA-256 " in text
    assert not list(source.warnings([base]))


def test_what_a_reader_assumed_of_a_partition_is_a_warning(graph_file: Path, tmp_path: Path) -> None:
    (tmp_path / "ring.json").write_text('{"num_parts": 3, "node_map": {"_N": [[0, 20], [20, 40], [40, 60]]}}')
    base = replace(of_graph(graph_file), partition=PartitionSpec(file=str(tmp_path)))
    (line,) = open_source(base).warnings([base])
    assert line.startswith(f"{tmp_path / 'ring.json'} uses DGL's new node ids")


def test_fewer_nodes_than_workers_are_refused(graph_file: Path) -> None:
    with pytest.raises(GraphError, match="has 60 nodes, fewer than the 61 workers"):
        open_source(of_graph(graph_file, gpus=61))


def test_a_dataset_can_be_neither_cut_nor_weighted_by_norms() -> None:
    base = scenario(WorkloadSpec())
    with pytest.raises(ScenarioError, match="partition: reddit is partitioned already"):
        open_source(replace(base, partition=PartitionSpec(method="random")))
    with pytest.raises(ScenarioError, match=r"method.norms: run.gcnsim needs workload.graph"):
        open_source(replace(base, method=DRAWN.with_knobs(norms="run.gcnsim")))


@pytest.fixture
def replayed(graph_file: Path, tmp_path: Path) -> tuple[TraceSource, Scenario, AccessCounts]:
    """A trace drawn from the graph, a scenario that fits it, and the counts of the graph itself."""
    base = of_graph(graph_file, DRAWN)
    accesses = GraphSource(str(graph_file))
    path = tmp_path / "ring.trace"
    write_trace(path, accesses.trace(base))
    fits = replace(base, workload=WorkloadSpec(dataset=None, trace=str(path)), partition=PartitionSpec())
    return TraceSource(str(path)), fits, accesses.counts(base, 8, RangeEnd.LIKELY)


def test_a_replayed_trace_gives_the_counts_of_its_graph(
    replayed: tuple[TraceSource, Scenario, AccessCounts],
) -> None:
    accesses, base, counts = replayed
    for _ in range(2):
        found = accesses.counts(base, 8, RangeEnd.LIKELY)
        np.testing.assert_array_equal(found.rows, counts.rows)
        np.testing.assert_array_equal(
            found.inner_edges + found.boundary_edges, counts.inner_edges + counts.boundary_edges
        )


def test_a_trace_knows_the_whole_boundary_too(replayed: tuple[TraceSource, Scenario, AccessCounts]) -> None:
    accesses, base, counts = replayed
    found = accesses.counts(replace(base, method=FULL), 8, RangeEnd.LIKELY)
    assert found.rows.shape == (1, 3, 3)
    assert found.rows[0].sum(axis=1).tolist() == counts.boundary_nodes.tolist()
    assert (found.inner_edges + found.boundary_edges)[0].tolist() == counts.entries.tolist()


def test_a_trace_answers_only_what_it_was_drawn_for(replayed: tuple[TraceSource, Scenario, AccessCounts]) -> None:
    accesses, base, _ = replayed
    with pytest.raises(ScenarioError, match="has 3 workers, the cluster has 2 GPUs"):
        accesses.counts(replace(base, cluster=ClusterSpec(gpus=2)), 8, RangeEnd.LIKELY)
    with pytest.raises(ScenarioError, match=r"was drawn with vr at epsilon 0.3, the method asks for vr at 0.2"):
        accesses.counts(replace(base, method=DRAWN.with_knobs(epsilon=0.2)), 8, RangeEnd.LIKELY)


def test_a_trace_of_drawn_nodes_replays_and_knows_what_crosses(graph_file: Path, tmp_path: Path) -> None:
    base, path = of_graph(graph_file, NODES), tmp_path / "nodes.trace"
    accesses = GraphSource(str(graph_file))
    write_trace(path, accesses.trace(base))
    fits = replace(base, workload=WorkloadSpec(dataset=None, trace=str(path)), partition=PartitionSpec())
    again = TraceSource(str(path))
    found, drawn = again.counts(fits, 8, RangeEnd.LIKELY), accesses.counts(base, 8, RangeEnd.LIKELY)
    assert found.rows.tolist() == drawn.rows.tolist()
    assert found.boundary_edges.tolist() == drawn.boundary_edges.tolist()
    for method in (FULL, NODES.with_knobs(rate=1.0)):
        full = accesses.counts(replace(base, method=method), 8, RangeEnd.LIKELY)
        content = again.counts(replace(fits, method=method), 8, RangeEnd.LIKELY)
        assert content.rows.tolist() == full.rows.tolist()
        assert content.boundary_edges.tolist() == full.boundary_edges.tolist()
    with pytest.raises(ScenarioError, match=r"was drawn with bns at rate 0.3, the method asks for bns at 0.1"):
        again.counts(replace(fits, method=create_method("bns-gcn")), 8, RangeEnd.LIKELY)
    with pytest.raises(ScenarioError, match=r"was drawn with bns at rate 0.3, the method asks for vr at 0.3"):
        again.counts(replace(fits, method=DRAWN), 8, RangeEnd.LIKELY)


def test_a_dataset_gives_the_rate_of_its_boundary_and_of_what_crosses() -> None:
    base = scenario(WorkloadSpec(), NODES, gpus=6)
    accesses = StatisticsSource(dataset("reddit"))
    found = {bound: accesses.counts(base, 602, bound) for bound in accesses.assumption_bounds}
    for counts in found.values():
        assert counts.iterations == 1
        assert counts.rows.sum(axis=2)[0] == pytest.approx(0.3 * counts.boundary_nodes, rel=1e-3)
        crossing = counts.entries - counts.inner_edges[0]
        assert counts.boundary_edges[0] == pytest.approx(0.3 * crossing, rel=1e-6)
    kept = [int((found[bound].inner_edges + found[bound].boundary_edges).max()) for bound in RangeEnd]
    assert kept == sorted(kept), "the fewer entries cross, the fewer are dropped"


@pytest.mark.parametrize(("imbalance", "workers"), [(1.4, 6), (3.6, 4), (1.0, 1)])
def test_loads_have_the_mean_one_and_the_asked_maximum(imbalance: float, workers: int) -> None:
    found = load_shares(imbalance, workers)
    assert found.shape == (workers,)
    assert found.mean() == pytest.approx(1.0)
    assert found.max() == pytest.approx(imbalance)
    assert found.min() > 0.0
    assert found.tolist() == sorted(found.tolist())


def test_an_imbalance_above_the_number_of_workers_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"workload.imbalance: 4 is not allowed; with 3 workers it is at most 2.7"):
        StatisticsSource(dataset("reddit")).imbalances(scenario(WorkloadSpec(imbalance=4.0)), LOAD)


@pytest.mark.parametrize("factor", [0.5, 1.28, 9.0])
def test_scaled_rows_keep_their_hit_rate_and_stay_within_the_boundary(factor: float) -> None:
    rows = np.array([[[0, 40, 60], [20, 0, 80], [50, 50, 0]]])
    ones = np.ones(3, dtype=np.int64)
    counts = AccessCounts(rows, rows // 2, rows[:, 0], rows[:, 0], ones, 200 * ones, ones, ones)
    found = scaled(counts, factor, 1.0)
    assert (found.rows <= 2 * rows).all(), "no more than the boundary, of which half is needed"
    assert (found.hits <= found.rows).all()
    assert found.hit_rate == pytest.approx(0.5, abs=0.02)
    if factor < 1.5:
        assert found.rows == pytest.approx(np.minimum(factor * rows, 2 * rows), abs=1.0)


def test_scaled_hits_lower_the_hit_rate_and_edges_stay_above_rows() -> None:
    rows = np.array([[[0, 40], [20, 0]]])
    ones = np.ones(2, dtype=np.int64)
    counts = AccessCounts(rows, rows // 2, rows.sum(axis=2), rows.sum(axis=2), ones, 100 * ones, ones, ones)
    found = scaled(counts, 1.28, 0.5)
    assert found.hit_rate == pytest.approx(0.25, abs=0.01)
    assert (found.boundary_edges >= found.rows.sum(axis=2)).all()


@pytest.mark.parametrize("workers", [5])
@pytest.mark.parametrize("bound", RangeEnd)
def test_placement_gives_every_worker_one_load(workers: int, bound: RangeEnd) -> None:
    assert sorted(server_of(workers, bound).tolist()) == list(range(workers))


def test_the_heaviest_stand_apart_at_the_low_end_and_together_at_the_high_end() -> None:
    assert server_of(6, RangeEnd.LOW).tolist() == [0, 5, 1, 4, 2, 3]
    assert server_of(6, RangeEnd.LIKELY).tolist() == [0, 2, 4, 1, 3, 5]
    assert server_of(6, RangeEnd.HIGH).tolist() == list(range(6))


@pytest.mark.parametrize(("workers", "per_server"), [(5, 2), (4, 4), (1, 1)])
def test_ownership_moves_boundary_rows_to_the_own_server(workers: int, per_server: int) -> None:
    equal, near = owner_shares(workers, per_server, 1.0), owner_shares(workers, per_server, 0.8)
    server = np.arange(workers) // per_server
    away = server[:, None] != server[None, :]
    for rank in range(workers):
        others = np.delete(np.arange(workers), rank)
        if workers > 1:
            assert equal[rank, others] == pytest.approx(np.full(workers - 1, 1 / (workers - 1)))
            assert near[rank].sum() == pytest.approx(1.0)
        if away[rank].any() and (~away[rank][others]).any():
            assert near[rank][away[rank]].sum() == pytest.approx(0.8 * equal[rank][away[rank]].sum())


@pytest.mark.parametrize("processes", [1, 2])
def test_partitions_cut_side_by_side_are_those_cut_one_by_one(graph_file: Path, processes: int) -> None:
    scenarios = [scenario(WorkloadSpec(dataset=None, graph=str(graph_file)), gpus=gpus) for gpus in (3, 4, 3)]
    together, alone = GraphSource(str(graph_file), processes), GraphSource(str(graph_file))
    together.cut_for(scenarios)
    for setting in scenarios:
        (cut, parts), (expected, _) = together.partition(setting), alone.partition(setting)
        assert cut.parts == len(parts) == setting.cluster.gpus
        assert np.array_equal(cut.owner, expected.owner)
        assert together.partition(setting)[0] is cut
