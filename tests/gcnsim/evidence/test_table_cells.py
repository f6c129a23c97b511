"""Cells: what is judged, how ratios and null models follow from runs, and that a reading decides nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.evidence.published_answers import RangeOfResults, TableValues, answer
from gcnsim.evidence.published_facts import read_published
from gcnsim.evidence.published_quantities import predicted
from gcnsim.evidence.published_systems import RowScenario, System, scenario_of_row, setting
from gcnsim.evidence.table_cells import Cell, error_of, reproduce, vanilla_of
from gcnsim.methods import Method, create_method
from gcnsim.simulation.published_tables import TableSource
from gcnsim.simulation.source import RangeEnd
from gcnsim.workload import dataset

ROOT = Path(__file__).resolve().parents[3]

TABLE = """\
paper: {id: pipegcn}
tables:
- id: table4
  key: [dataset, method, partitions]
  rows:
  - {dataset: reddit, partitions: 2, method: gcn, use: calibrate, epochs_per_s: 2.0, throughput_x: 1,
     metrics: [epochs_per_s, throughput_x]}
  - {dataset: reddit, partitions: 2, method: pipegcn, use: calibrate, throughput_x: 1.5, metrics: [throughput_x]}
  - {dataset: reddit, partitions: 2, method: pipegcn_gf, use: predict, metrics: [throughput_x]}
  - {dataset: reddit, partitions: 2, method: vr_gcn, use: predict, metrics: [total_s]}
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> list[Cell]:
    folder = tmp_path_factory.mktemp("published")
    (folder / "pipegcn.yaml").write_text(TABLE, encoding="utf-8")
    return reproduce(read_published(folder))


def test_a_cell_for_each_metric_in_the_order_of_the_file(cells: list[Cell]) -> None:
    assert [cell.metric for cell in cells] == [
        "epochs_per_s",
        "throughput_x",
        "throughput_x",
        "throughput_x",
        "total_s",
    ]


def test_predictions_lie_in_their_intervals(cells: list[Cell]) -> None:
    for cell in cells[:4]:
        assert cell.predicted is not None
        assert cell.low is not None
        assert cell.high is not None
        assert cell.low <= cell.predicted <= cell.high


def test_what_is_one_by_definition_is_not_judged(cells: list[Cell]) -> None:
    rate, one, pipelined, blind, _ = cells
    assert one.predicted == 1.0
    assert [cell.judged for cell in (rate, one, pipelined, blind)] == [True, False, True, False]
    assert rate.predicted is not None
    assert rate.error == pytest.approx(rate.predicted / 2.0 - 1.0)


def test_a_part_is_as_uncertain_as_its_whole_in_seconds() -> None:
    run = TableValues(
        iteration_s=1.0,
        low_s=0.8,
        high_s=1.3,
        compute_s=0.35,
        communication_s=0.6,
        reduce_s=0.05,
        sampling_s=0.0,
        forward_bytes=0.0,
        memory=1.0,
    )
    ends = RangeOfResults(run, run, run)
    assert predicted("communication_s", ends, None) == pytest.approx((0.6, 0.4, 0.9))
    assert predicted("reduce_s", ends, None) == pytest.approx((0.05, 0.0, 0.35))
    assert predicted("total_s", ends, None) == pytest.approx((1.0, 0.8, 1.3))
    base = replace(run, communication_s=0.9)
    assert predicted("communication_x", ends, RangeOfResults(base, base, base)) == pytest.approx(
        (0.6 / 0.9, 0.4 / 0.9, 1.0)
    )


def test_what_falls_as_the_iteration_takes_longer_has_its_ends_the_other_way_round() -> None:
    run = TableValues(1.0, 0.8, 1.25, 0.35, 0.6, 0.05, 0.0, forward_bytes=0.0, memory=1.0)
    ends = RangeOfResults(run, run, run)
    assert predicted("epochs_per_s", ends, None) == pytest.approx((1.0, 0.8, 1.25))
    slower = replace(run, iteration_s=2.0, low_s=1.0, high_s=2.0)
    assert predicted("epochs_per_s", RangeOfResults(slower, slower, slower), None) == pytest.approx((0.5, 0.5, 1.0))


def test_what_is_counted_is_uncertain_too() -> None:
    run = TableValues(1.0, 0.8, 1.3, 0.35, 0.6, 0.05, 0.0, forward_bytes=1e8, memory=2.0)
    ends = RangeOfResults(run, run, run)
    assert predicted("epoch_comm_mb", ends, None) == pytest.approx((100.0, 63.0, 137.0))
    base = replace(run, memory=4.0)
    assert predicted("memory_x", ends, RangeOfResults(base, base, base)) == pytest.approx((0.5, 0.45, 0.55))


def test_sampled_edges_scale_no_transfers(tmp_path: Path) -> None:
    text = """\
paper: {id: bns_gcn}
tables:
- id: table9
  key: [dataset, method, partitions, p]
  rows:
  - {dataset: reddit, partitions: 2, method: dropedge, p: null, use: predict, metrics: [total_s]}
  - {dataset: reddit, partitions: 2, method: bns_gcn, p: 0.1, use: predict, metrics: [total_s]}
"""
    (tmp_path / "bns_gcn.yaml").write_text(text, encoding="utf-8")
    edges, nodes = reproduce(read_published(tmp_path), spread=False)
    assert edges.nulls["scaled"] == edges.nulls["vanilla"]
    assert nodes.nulls["scaled"] < 0.8 * nodes.nulls["vanilla"]


def test_a_system_without_a_schedule_has_a_reason_and_no_prediction(cells: list[Cell]) -> None:
    assert cells[4].predicted is None
    assert cells[4].reason == "its batches and fan-outs are not given"


def test_null_models_start_from_the_printed_vanilla_run(cells: list[Cell]) -> None:
    nulls = cells[3].nulls
    assert nulls["vanilla"] == 1.0
    assert nulls["pipelined"] == pytest.approx(1.5)
    assert nulls["scaled"] == pytest.approx(1.5), "nothing is sampled"
    assert 1.0 < nulls["overlap"] <= 2.0
    assert cells[0].nulls == {}


def test_short_phases_are_judged_by_their_absolute_error_and_whole_times_never() -> None:
    assert error_of("reduce_s", 0.03, 0.01) == pytest.approx(0.25)
    assert error_of("communication_s", 0.0, 0.0) == 0.0
    assert error_of("total_s", 0.6, 0.5) == pytest.approx(0.2)
    assert error_of("epoch_s", 0.03, 0.02) == pytest.approx(0.5)
    assert error_of("epochs_per_s", 0.05, 0.04) == pytest.approx(0.25)


def test_an_even_split_at_random_and_an_uneven_one_by_metis() -> None:
    facts, row = dataset("reddit-train"), setting("bns_gcn-reddit")
    assert row is not None
    ten = replace(row, cluster=replace(row.cluster, gpus=10, gpus_per_server=10), method=create_method("full-graph"))
    counts = TableSource(facts, 10).counts(ten, 602, RangeEnd.LIKELY)
    assert counts.boundary_nodes.max() / counts.boundary_nodes.mean() == pytest.approx(86_000 / 51_200, rel=0.02)
    assert counts.boundary_nodes.mean() == pytest.approx(51_200, rel=0.01)
    alike = TableSource(facts, 10, at_random=True).counts(ten, 602, RangeEnd.LIKELY)
    assert alike.boundary_nodes.max() == alike.boundary_nodes.min()


def test_no_boundary_node_at_rate_0_and_all_at_rate_1() -> None:
    row = setting("bns_gcn-reddit")
    assert row is not None

    def at(method: Method) -> float:
        one = RowScenario(replace(row, method=method), System(method.name))
        return answer([one], spread=False)[one].likely.forward_bytes

    assert at(create_method("bns-gcn", rate=0.0)) == 0.0
    assert at(create_method("bns-gcn", rate=1.0)) == at(create_method("full-graph"))


BLOCKS = """\
paper: {id: PAPER}
tables:
- id: table3
  key: [method, config, dataset, gpus, replication_c]
  rows:
  - {ROW, use: predict, metrics: [METRIC]}
"""


def row_scenario(tmp_path: Path, paper: str, row: str, metric: str = "total_s") -> RowScenario:
    text = BLOCKS.replace("PAPER", paper).replace("ROW", row).replace("METRIC", metric)
    text = text.replace(", dataset, gpus" if paper == "sancus" else "config, ", "")
    (tmp_path / f"{paper}.yaml").write_text(text, encoding="utf-8")
    (found,) = read_published(tmp_path)
    one = scenario_of_row(found, [found], {})
    assert isinstance(one, RowScenario)
    return one


def test_cagnet_is_two_methods_by_its_replication(tmp_path: Path) -> None:
    names = []
    for copies in (1, 2):
        row = f"dataset: reddit, gpus: 4, method: cagnet, replication_c: {copies}"
        one = row_scenario(tmp_path, "pipegcn", row)
        names.append(one.scenario.method.name)
        assert one.scenario.workload.dataset == "reddit"
        assert one.boundary == pytest.approx(232_965 * 3 / 4)
    assert names == ["cagnet-1d", "cagnet-1.5d"]


def test_sancus_is_compared_with_cagnet_on_its_own_servers(tmp_path: Path) -> None:
    one = row_scenario(tmp_path, "sancus", "config: '2', method: scs_e", "communicate")
    assert (one.scenario.cluster.gpus, one.scenario.cluster.gpus_per_server) == (8, 4)
    knobs = one.scenario.method.values()
    assert knobs["stale_test"] == "fixed"
    assert knobs["warmup"] == pytest.approx(1 / 6)
    assert vanilla_of(one).scenario.method.name == "cagnet-1d"


def test_communication_of_cagnet_is_one_and_its_computation_is_judged() -> None:
    rows = [row for row in read_published() if row.paper == "sancus" and row.fields.get("method") == "cagnet"]
    cells = {(cell.row, cell.metric): cell for cell in reproduce(rows, spread=False)}
    for (_, metric), cell in cells.items():
        assert cell.predicted is not None
        assert cell.judged == (metric == "compute")
        assert cell.error is None or abs(cell.error) < 0.25


def test_skipping_broadcasts_cuts_communication_and_nothing_else() -> None:
    rows = [row for row in read_published() if row.paper == "sancus" and '"config":"1"' in row.label]
    cells = {(cell.row.split('"')[7], cell.metric): cell.predicted for cell in reproduce(rows, spread=False)}
    for name in ("scs_a1", "scs_e", "scs_h"):
        communicate, compute = cells[name, "communicate"], cells[name, "compute"]
        assert communicate is not None
        assert compute is not None
        assert 0.3 < communicate < 1.0
        assert compute == pytest.approx(cells["cagnet", "compute"], rel=0.1)


def test_more_workers_than_one_simulation_holds_are_stood_for_by_some() -> None:
    rows = [row for row in read_published() if (row.paper, row.table) == ("bns_gcn", "table6")]
    found = [one for row in rows if isinstance(one := scenario_of_row(row, rows, {}), RowScenario)]
    assert {(one.scenario.cluster.gpus, one.parts) for one in found} == {(24, 192)}
    some = TableSource(dataset("ogbn-papers100M"), 24, parts=192)
    counts = some.counts(found[0].scenario, 128, RangeEnd.LIKELY)
    assert counts.inner_nodes[0] == pytest.approx(111_059_956 / 192, rel=1e-5)
    server = np.arange(24) // 6
    away = counts.rows[0] * (server[:, None] != server)
    assert away.sum() / counts.rows.sum() == pytest.approx(0.85 * (1 - 5 / 191), rel=0.02)


def plain_parts() -> list[Cell]:
    """The predicted parts of PipeGCN's table 6, of training without a pipeline."""
    rows = [row for row in read_published() if (row.paper, row.table) == ("pipegcn", "table6")]
    return reproduce([row for row in rows if row.fields.get("method") == "gcn"], spread=False)


def test_parts_that_tables_print_are_together_the_iteration() -> None:
    """A slower worker's computation is communication of those that wait for it."""
    by_row: dict[str, dict[str, Cell]] = {}
    for cell in plain_parts():
        by_row.setdefault(cell.row, {})[cell.metric] = cell
    assert by_row
    for cells in by_row.values():
        whole = cells.pop("total_s")
        assert len(cells) == 3
        parts = [cell.predicted for cell in cells.values() if cell.predicted is not None]
        assert sum(parts) == pytest.approx(whole.predicted)
        assert whole.error is not None
        assert abs(whole.error) < 0.15


@pytest.mark.xfail(
    strict=True, reason="fitted with nine free numbers: computation on 4 GPUs is 21 % off, communication on 2 is 15.4 %"
)
def test_each_part_is_that_of_the_mean_worker() -> None:
    for cell in plain_parts():
        assert cell.error is None or abs(cell.error) < 0.15, cell
