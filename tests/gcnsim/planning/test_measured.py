"""Measured times, memory and transports in answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.api import simulate, what_if
from gcnsim.api.question import settings
from gcnsim.core.units import format_seconds
from gcnsim.planning.alternatives import path_steps
from gcnsim.planning.measured import read_measurement
from gcnsim.planning.study import Studies
from gcnsim.report.answer.table import render_table
from gcnsim.results import MeasuredReport
from gcnsim.scenario import Scenario, from_mapping
from tests.gcnsim.evidence.conftest import WriteRun, small_graph
from tests.gcnsim.evidence.made_gpu import on_gpus
from tests.gcnsim.planning.test_recommend import consistent
from tests.gcnsim.results.made import answer_of
from tests.measured_files import measured_file, write_graph

SAME: dict[str, Any] = {"emulation": None, "layers": 2, "hidden": 32, "widths": (32, 32, 8), "workers": 2}


def test_how_sure_a_recorded_run_is_is_the_standard_error_of_its_mean(write_run: WriteRun) -> None:
    # The first five iterations are the warm-up. Student's interval of three times is 1.8 times as wide as a normal one.
    path = write_run("run", seconds=[9.0] * 5 + [0.1, 0.2, 0.3])
    measurement = read_measurement(f"psc-gcn={path}")
    assert measurement.method == "psc-gcn"
    assert measurement.seconds == pytest.approx(0.2)
    assert measurement.spread == pytest.approx(0.1 / 3**0.5 / 0.2)
    assert read_measurement("640ms").spread == 0.0


def beside(measured: object, **question: Any) -> MeasuredReport:
    """What one measured time says beside a question of one method."""
    content = gcnsim.what_if(iterations=3, processes=1, measured=str(measured), **question).told
    assert content.measured is not None
    return content.measured[0]


def test_a_run_of_another_question_is_named_so_and_nothing_follows_from_it(write_run: WriteRun) -> None:
    measured_report = beside(write_run("run", method="full-graph", **SAME), gpus=6, method="pipegcn")
    assert [(difference.field, difference.measured, difference.asked) for difference in measured_report.differs] == [
        ("graph", "small", "reddit"),
        ("layers", "2", "4"),
        ("features", "32", "602"),
        ("hidden width", "32", "256"),
        ("classes", "8", "41"),
        ("device", "cpu-core", "t4"),
        ("workers", "2", "6"),
        ("method", "full-graph", "pipegcn"),
    ]
    assert "graph small, not reddit" in measured_report.text
    assert (
        measured_report.consistent,
        measured_report.rows,
        measured_report.explanations,
        measured_report.suspects,
    ) == (False, None, (), ())


OWN: dict[str, Any] = {"gpus": 2, "device": "t4", "method": "full-graph", "layers": 2, "hidden": 32}
WIDTHS = ["workload.features=32", "workload.classes=8"]


def test_a_run_of_the_same_question_is_compared(write_run: WriteRun) -> None:
    run = on_gpus(write_run("run", method="full-graph", device="cuda", **SAME))
    measured_report = beside(run, graph=small_graph(), overrides=[*WIDTHS, "partition.method=block"], **OWN)
    assert measured_report.differs == ()


def test_a_run_on_another_partition_is_named_so(write_run: WriteRun) -> None:
    run = on_gpus(write_run("run", method="full-graph", device="cuda", **SAME))
    measured_report = beside(run, graph=small_graph(), overrides=[*WIDTHS, "partition.method=random"], **OWN)
    assert [difference.field for difference in measured_report.differs] == ["boundary nodes of all parts"]


def test_where_the_assumptions_do_not_reach_the_first_suspect_is_named() -> None:
    measured_report = beside("30s", gpus=2, method="full-graph")
    assert not measured_report.consistent
    (first,) = measured_report.suspects
    assert 1.02 < first.reaches < 30 / measured_report.predicted_s
    assert measured_report.text.endswith(f". First suspect: {first.name}")
    (faster,) = beside("1ms", gpus=2, method="full-graph").suspects
    assert faster.reaches < 0.98
    assert beside(f"{measured_report.predicted_s}s", gpus=2, method="full-graph").suspects == ()


SCENARIOS = Path(__file__).resolve().parents[3] / "scenarios"


@pytest.mark.parametrize(("name", "parts"), [("bns_gcn-ogbn-products", 5)])
def test_fits_at_the_published_minimum_of_partitions(name: str, parts: int) -> None:
    # BNS-GCN's experiment setup: the fewest RTX 2080 Ti that train each whole. Their code keeps more than the laws
    # know of (dropout, copies), so fewer may fit by these.
    given = ["method.rate=1.0", "run.iterations=2", f"cluster.gpus={parts}", f"cluster.gpus_per_server={parts}"]
    memory = simulate(SCENARIOS / f"{name}.yaml", given).payload["memory"]
    assert memory["fits"]
    assert memory["device_bytes"] == 11e9
    assert len(memory["workers"]) == parts


def question(**given: Any) -> dict[str, Any]:
    options: dict[str, Any] = {"gpus": 2, "method": ["full-graph", "psc-gcn"], "iterations": 4} | given
    return dict(what_if(**options).payload)


def test_every_row_tells_its_peak_and_the_payload_its_parts() -> None:
    payload = question()
    for row, memory in zip(payload["results"], payload["memory"], strict=True):
        assert row["fits"] is True
        assert row["memory_bytes"] == max(worker["total"] for worker in memory["workers"])
        assert memory["device_bytes"] == 16e9
        for worker in memory["workers"]:
            assert worker["total"] == pytest.approx(sum(value for name, value in worker.items() if name != "total"))


def test_a_row_that_does_not_fit_is_marked_and_not_recommended() -> None:
    # Rows of four layers with six iterations in flight: more than 16 GB, unlike synchronous training.
    payload = question(gpus_per_server=1, tau=[0, 6], iterations=2, overrides=["workload.hidden=512"])
    consistent(payload)
    fits = {(row["method"], row["tau"]): row["fits"] for row in payload["results"]}
    assert fits["full-graph", 0] is True
    assert fits["psc-gcn", 6] is False
    assert payload["recommendation"]["tau"] < 6
    message = [text for text in payload["provenance"]["warnings"] if "does not fit" in text]
    assert len(message) == 1
    assert message[0].startswith("psc-gcn on 2 GPUs does not fit: ")
    assert "!" in render_table(answer_of(payload), 160)


def test_where_nothing_fits_the_answer_says_so() -> None:
    payload = question(dataset="ogbn-products", overrides=["workload.hidden=512"])
    best, steps = payload["recommendation"], payload["next_steps"]
    assert best["fits"] is False
    assert best["why"].startswith("none of ")
    assert "settings tried fits the GPUs' memory" in best["why"]
    held = [step["fits"] for step in steps]
    assert [(step["knob"], step["to"]) for step in steps if step["fits"]] == [("gpus", 4)]
    assert held == sorted(held, reverse=True), "what does not fit comes last"
    assert "does not fit" in render_table(answer_of(payload), 160)


@pytest.mark.parametrize(
    ("dataset", "workload", "count"),
    [("ogbn-products", {"hidden": 512, "layers": 6}, 4), ("reddit", {}, 6)],
)
def test_the_least_gpus_hold_it_and_one_less_do_not(dataset: str, workload: dict[str, int], count: int) -> None:
    mapping = {"schema": "gcnsim.scenario/1", "workload": {"dataset": dataset, **workload}}
    base = from_mapping(mapping | {"method": {"name": "full-graph"}}, "test")
    shop = Studies(base)

    def at(gpus: int) -> Scenario:
        return replace(base, cluster=replace(base.cluster, gpus=gpus))

    least = shop.least_gpus(at(count))
    assert least is not None
    assert shop.fits(at(least))
    assert least == 1 or not shop.fits(at(least - 1))
    assert shop.least_gpus(at(least)) == shop.least_gpus(at(2 * least)) == least


def test_of_one_partition_of_a_graph_it_is_not_told_how_many_would_do(tmp_path: Path) -> None:
    # A path of 300,000 nodes with rows of a thousand values, more in flight than a T4 holds.
    nodes = 300_000
    indptr = np.concatenate([[0, 1], np.arange(3, 2 * nodes - 2, 2), [2 * nodes - 2]])
    indices = np.stack([np.arange(nodes) - 1, np.arange(nodes) + 1], axis=1).ravel()[1:-1]
    np.savez(tmp_path / "path.npz", indptr=indptr, indices=indices)
    widths = [f"workload.{name}={value}" for name, value in (("features", 4000), ("hidden", 8000), ("classes", 8))]
    given = {"graph": str(tmp_path / "path.npz"), "bandwidth": "100Gbps"}
    overrides = [*widths, "partition.method=block"]
    payload = question(method="full-graph", iterations=1, overrides=overrides, **given)
    (memory,) = payload["memory"]
    assert (memory["fits"], memory["least_gpus"]) == (False, None)
    assert any("try more GPUs with a workload cut for them" in text for text in payload["provenance"]["warnings"])


def test_each_worker_must_fit_its_own_gpu() -> None:
    scenario = SCENARIOS / "reddit-6xt4-full-graph.yaml"
    machine = ["cluster.devices=t4,t4,a100-80", "partition.placement=balanced"]
    answer = simulate(scenario, [*machine, "workload.hidden=2048", "run.iterations=1"])
    memory = answer.payload["memory"]
    assert memory["devices_bytes"] == [16e9] * 4 + [80e9] * 2
    totals = [worker["total"] + memory["reserved_bytes"] for worker in memory["workers"]]
    room = [limit - total for limit, total in zip(memory["devices_bytes"], totals, strict=True)]
    assert memory["tightest"] == room.index(min(room))
    assert memory["fits"] == (min(room) >= 0)
    assert memory["device_bytes"] == 16e9
    assert totals.index(max(totals)) >= 4, "the largest part lies on a large GPU"
    assert f"memory of worker {memory['tightest']}: " in str(answer)
    assert answer.payload["result"]["memory_bytes"] == memory["workers"][memory["tightest"]]["total"]


def test_nothing_is_known_of_cores(tmp_path: Path) -> None:
    graph = write_graph(tmp_path)
    path = measured_file(tmp_path, graph, 2, device={"kind": "cpu", "name": "a core"})
    payload = what_if(
        graph=str(graph), measured_compute=str(path), processes=1, method="full-graph", iterations=2
    ).payload
    assert [row["fits"] for row in payload["results"]] == [None]
    assert payload["memory"][0]["device_bytes"] is None


P4D: dict[str, Any] = {
    "dataset": "ogbn-products",
    "model": "graphsage",
    "hidden": 256,
    "host": "p4d.24xlarge",
    "gpus": 8,
}


def answered(**question: Any) -> Any:
    given: dict[str, Any] = {"method": "full-graph", "iterations": 2, "processes": 1} | question
    return gcnsim.what_if(**given)


def test_an_instance_is_simulated_with_its_nvlink_and_its_basis_has_the_time_of_staged_copies() -> None:
    plain, staged = answered(**P4D), answered(**P4D, transport="staged")
    (now,), (slow,) = plain.told.rows, staged.told.rows
    assert now.iteration_s < slow.iteration_s / 4
    assert now.iteration_s_low < now.iteration_s < now.iteration_s_high < slow.iteration_s_low
    title = str(plain).split("ms per iter")[0]
    assert "NVLink 300 GB/s" in title
    assert "transport direct (assumed)" in " ".join(title.split())
    assert plain.payload["provenance"]["between_gpus"] == "NVLink 300 GB/s, transport direct (assumed)"
    basis = plain.payload["provenance"]["between_gpus_basis"]
    assert "NVLink 3 of p4d.24xlarge" in basis
    assert f"(assumed: --transport chooses), {format_seconds(slow.iteration_s)} if staged through hosts" in basis
    assert "transport staged" in str(staged).splitlines()[0] + str(staged).splitlines()[1]


@pytest.mark.parametrize(
    ("question", "heading"),
    [
        ({"gpus": 2}, "transport direct (assumed)"),
        ({"gpus": 2, "device": "h100", "gpus_per_server": 2}, "NVLink 450 GB/s, transport direct (assumed)"),
        (
            {"gpus": 2, "device": "h100", "host": "generic-16", "gpus_per_server": 2},
            "NVLink 450 GB/s (assumed), transport direct (assumed)",
        ),
        ({"gpus": 1}, None),
    ],
)
def test_the_heading_says_what_all_rows_share(question: dict[str, Any], heading: str | None) -> None:
    assert answered(**question).payload["provenance"].get("between_gpus") == heading


def test_where_the_transport_is_said_the_range_is_of_it_alone() -> None:
    known = answered(**P4D, transport="direct").told
    (row,) = known.rows
    assert row.iteration_s_high < 2 * row.iteration_s
    assert not any(assumption.name == "cluster.transport" for assumption in known.certainty.assumptions)


def scenario(method: str = "pipegcn", **cluster: object) -> Scenario:
    given = {"gpus": 4, "gpus_per_server": 4} | cluster
    return from_mapping({"schema": "gcnsim.scenario/1", "cluster": given, "method": {"name": method}}, "test")


@pytest.mark.parametrize(
    ("cluster", "steps"),
    [
        ({"transport": "staged"}, [("transport", "staged", "direct")]),
        ({"implementation": "released"}, [("transport", "staged", "direct")]),
        ({"device": "a100-80", "nvlink": "none"}, [("NVLink", "none", "300 GB/s")]),
        ({"device": "a100-40", "host": "g5.48xlarge"}, [("NVLink", "none", "300 GB/s")]),
        ({"device": "t4"}, []),
        ({"gpus": 1, "gpus_per_server": 1, "transport": "staged"}, []),
        ({"device": "cpu-core"}, []),
    ],
)
def test_direct_copies_and_nvlink_are_steps_where_they_are_off(
    cluster: dict[str, Any], steps: list[tuple[str, str, str]]
) -> None:
    knob_changes = path_steps(scenario(**cluster))
    assert [(knob_change.knob, knob_change.start, knob_change.end) for knob_change in knob_changes] == steps


def test_staged_copies_are_named_where_they_cost_the_time() -> None:
    content = answered(**P4D | {"method": "pipegcn"}, transport="staged").told
    assert "host memory" in content.recommendation.row.limited_by
    assert "rows are staged" in (content.recommendation.note or "")
    (step,) = (next_step for next_step in content.next_steps if next_step.knob == "transport")
    assert step.gain > 0.5
    assert answered(**P4D | {"method": "pipegcn"}, transport="direct").told.recommendation.note is None


def test_an_instance_with_nvlink_is_recommended_over_cards_between_servers() -> None:
    found = gcnsim.recommend(
        dataset="ogbn-products", model="graphsage", hidden=256, host=["p4d.24xlarge", "g6e.12xlarge"], gpus=8,
        minimise="time", method="pipegcn", iterations=2, processes=1,
    )  # fmt: skip
    assert found.told.choice.host == "p4d.24xlarge"
    assert found.told.runner_up is not None
    assert found.told.provenance.between_gpus == "NVLink 300 GB/s, transport direct (assumed)"


@pytest.mark.parametrize("host", ["p4d.24xlarge", "Standard_ND96asr_v4"])
def test_an_instance_has_its_own_kind_of_network(host: str) -> None:
    (own,) = settings(host=host, gpus=16, method="full-graph")
    assert own.cluster.link == ("efa" if host.startswith("p4d") else "infiniband-hdr")
    (given,) = settings(host=host, gpus=16, method="full-graph", overrides=["cluster.link=ethernet"])
    assert given.cluster.link == "ethernet"
