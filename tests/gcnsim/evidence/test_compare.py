"""Two iterations side by side: the parts add up, whatever the sources."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.api import compare, render_comparison, simulate, what_if, write_json, write_result
from gcnsim.core.errors import FileError
from gcnsim.evidence.difference import _largest
from gcnsim.evidence.iteration_report import IterationReport, report_of_run
from gcnsim.evidence.setting_facts import facts_of_run
from gcnsim.hardware import GENERIC_LINK, link
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.report.figures.convergence import convergence_of_runs
from gcnsim.report.page.sections import write_comparison_page
from gcnsim.simulation import balanced_parts, worker_parts
from gcnsim.timeline import KIND_CODE, OpKind, Timeline
from gcnsim.timeline.breakdown import Parts, exposed_s, iteration_s, other_s
from gcnsim.timeline.span import write_spans
from tests.gcnsim.evidence.conftest import WriteRun, evaluated

REDDIT: dict[str, Any] = {
    "schema": "gcnsim.scenario/1",
    "cluster": {"gpus": 4, "bandwidth": "10Gbps"},
    "workload": {"dataset": "reddit"},
    "run": {"iterations": 6},
}
FULL = REDDIT | {"method": {"name": "full-graph"}}
PSC = REDDIT | {"method": {"name": "psc-gcn", "tau": 1}}
QUICK_NETWORK = PSC | {"cluster": {"gpus": 4, "bandwidth": "40Gbps"}}
"""Slower than its analytic bound, so that nothing is put off to reach it."""


def leaves(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Parts that are no sums of others."""
    within = {part["within"] for part in found["parts"]}
    return [part for part in found["parts"] if part["part"] not in within]


def add_up(found: dict[str, Any]) -> None:
    whole = found["iteration_s"]
    for key in ("a", "b", "difference"):
        assert sum(part[key] for part in leaves(found)) == pytest.approx(whole[key], rel=1e-9, abs=1e-12 * whole["a"])
    for group in {part["within"] for part in found["parts"]} - {None}:
        content = next(part for part in found["parts"] if part["part"] == group)
        inside = [part for part in found["parts"] if part["within"] == group]
        # Parts are whole picoseconds of an iteration, of which an epoch has many.
        whole_s = max(1.0, abs(content["difference"]))
        assert sum(part["difference"] for part in inside) == pytest.approx(content["difference"], abs=1e-11 * whole_s)


def test_differences_of_the_parts_add_up_to_that_of_the_iterations() -> None:
    found = compare(FULL, PSC)
    assert found["schema"] == "gcnsim.compare/1"
    assert found["detailed"]
    assert len(leaves(found)) == 9
    add_up(found)
    assert sum(part["share"] for part in leaves(found)) == pytest.approx(1.0)
    assert found["iteration_s"]["difference"] < 0
    assert len(found["workers"]["a"]) == len(found["workers"]["b"]) == 4


def test_the_parts_of_every_worker_add_up_and_agree_with_the_metrics() -> None:
    simulation = simulate(QUICK_NETWORK)
    row, workers = simulation.payload["result"], simulation.payload["workers"]
    slowest = workers[simulation.payload["slowest"]]
    assert slowest["compute_s"] == pytest.approx(row["compute_s"], rel=1e-12)
    assert exposed_s(Parts(**slowest)) == pytest.approx(row["exposed_comm_s"], rel=1e-12)
    assert other_s(Parts(**slowest)) == pytest.approx(row["exposed_other_s"], abs=1e-15)
    assert slowest["hidden_comm_s"] == pytest.approx(row["hidden_comm_s"], rel=1e-12)
    run, first = simulation.result.run, simulation.result.warm_up
    for worker in workers:
        closing = run.ends[:, run.schedule.ends[worker["worker"]]]
        lasted = (closing[-1] - closing[first - 1]) * 1e-12 / (run.iterations - first)
        assert iteration_s(Parts(**worker)) == pytest.approx(lasted, rel=1e-12)


def test_equal_questions_differ_in_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(PSC, PSC)
    assert found["iteration_s"]["difference"] == 0
    assert found["says"][0].startswith("A and B take equally long: ")
    assert all(part["share"] is None for part in found["parts"])
    assert "100.0 %" in render_comparison(found)


def test_a_link_says_what_it_carries_and_how_busy_it_is() -> None:
    found = compare(FULL, PSC)
    result = simulate(PSC).payload
    link = next(entry for entry in found["links"] if entry["link"] == "nic0.tx")
    assert link["b"]["bytes"] == result["links"]["nic0.tx"]["bytes"]
    assert link["b"]["busy"] == pytest.approx(result["links"]["nic0.tx"]["utilization"])
    assert link["b"]["seconds"] == pytest.approx(link["b"]["busy"] * found["iteration_s"]["b"])
    assert [entry["link"] for entry in found["links"]][:2] == ["memory0", "memory1"]
    assert "The busiest link, nic" in found["says"][1]


def test_a_result_its_folder_and_its_scenario_are_one_side(tmp_path: Path) -> None:
    simulation = simulate(PSC)
    write_result(simulation, tmp_path / "out")
    write_json(tmp_path / "answer.json", simulation.payload)
    for source in (tmp_path / "out", tmp_path / "answer.json"):
        found = compare(PSC, source)
        assert found["iteration_s"]["difference"] == 0
        assert found["b"]["kind"] == "result"
        assert found["detailed"]


def test_a_row_of_a_what_if_tells_three_parts(tmp_path: Path) -> None:
    answer = what_if(gpus=4, bandwidth="10Gbps", method=["full-graph", "pipegcn"], iterations=6)
    path = tmp_path / "answer.json"
    write_json(path, answer.payload)
    found = compare(f"{path}#1", f"{path}#2")
    assert not found["detailed"]
    assert [part["part"] for part in found["parts"]] == ["compute_s", "exposed_comm_s", "exposed_other_s"]
    add_up(found)
    assert found["links"] == []
    assert "has only three parts" in render_comparison(found)
    mixed = compare(PSC, f"{path}#2")
    assert not mixed["detailed"]
    add_up(mixed)


@pytest.mark.parametrize(
    ("row", "says"), [("", "has 2 rows"), ("#3", "there is no row '3'"), ("#x", "there is no row 'x'")]
)
def test_a_row_that_is_not_there_is_refused(row: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    write_json(path, what_if(gpus=2, method=["full-graph", "pipegcn"], iterations=4).payload)
    with pytest.raises(FileError, match=says):
        compare(f"{path}{row}", PSC)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{}", "schema: None is not known"),
        ("[]", "is not known"),
        ("nothing", "not a JSON document"),
        ('{"schema": "gcnsim.result/1"}', "has no scenario"),
        ('{"schema": "gcnsim.what-if/1", "results": []}', "has no scenario"),
    ],
)
def test_other_documents_are_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(FileError, match=says):
        compare(path, PSC)


MS = 1_000_000_000
"""Picoseconds."""


def spans(rows: list[tuple[OpKind, int, str, int, int, int, int, float]]) -> Timeline:
    """Of (kind, worker, stream, iteration, peer, start ms, end ms, bytes)."""
    rows = sorted(rows, key=lambda row: row[5])
    names = tuple(dict.fromkeys(row[2] for row in rows))
    columns = list(zip(*rows, strict=True))
    count = len(rows)
    return Timeline(
        kind=np.array([KIND_CODE[kind] for kind in columns[0]], np.uint8),
        worker=np.array(columns[1], np.int32),
        stream=np.array([names.index(name) for name in columns[2]], np.int32),
        iteration=np.array(columns[3], np.int32),
        layer=np.full(count, -1, np.int32),
        direction=np.zeros(count, np.uint8),
        peer=np.array(columns[4], np.int32),
        start_ps=np.array(columns[5], np.int64) * MS,
        end_ps=np.array(columns[6], np.int64) * MS,
        nbytes=np.array(columns[7], np.float64),
        streams=names,
    )


def recorded(write_run: WriteRun, name: str, **options: Any) -> Path:
    """Ten iterations of 100 ms, the last five measured: worker 0 computes 40 ms, worker 1 20 ms of each."""
    folder = write_run(name, **options)
    rows: list[tuple[OpKind, int, str, int, int, int, int, float]] = []
    for t in range(10):
        at = 100 * t
        rows += [
            (OpKind.AGGREGATE, 0, "compute", t, -1, at, at + 40, 0.0),
            (OpKind.AGGREGATE, 1, "compute", t, -1, at, at + 20, 0.0),
            (OpKind.WIRE, 0, "f.tx1", t, 1, at + 10, at + 50, 1e6),
            (OpKind.WIRE, 1, "f.rx0", t, 0, at, at + 50, 1e6),
            (OpKind.WAIT, 1, "compute", t, -1, at + 20, at + 60, 0.0),
            (OpKind.SCATTER, 1, "compute", t, -1, at + 60, at + 65, 0.0),
            (OpKind.ALLREDUCE, 1, "reduce", t, -1, at + 65, at + 90, 0.0),
            (OpKind.ALLREDUCE, 0, "reduce", t, -1, at + 70, at + 90, 0.0),
            (OpKind.WAIT, 1, "compute", t, -1, at + 65, at + 90, 0.0),
            (OpKind.WAIT, 0, "compute", t, -1, at + 70, at + 90, 0.0),
            (OpKind.STEP, 1, "compute", t, -1, at + 90, at + 98, 0.0),
        ]
    write_spans(folder / "timeline.parquet", spans(rows), {})
    return folder


def test_a_recorded_run_in_parts(write_run: WriteRun) -> None:
    side: IterationReport = report_of_run(recorded(write_run, "run"), "run")
    one = side.workers[1]
    assert side.iteration_s == pytest.approx(0.1)
    assert one.compute_s == pytest.approx(0.02)
    assert one.network_s == pytest.approx(0.03), "a message counts from its sender's start"
    assert one.waiting_s == pytest.approx(0.015), "10 ms for rows, 5 ms until worker 0 reduces too"
    assert one.reduce_s == pytest.approx(0.02)
    assert one.handling_s == pytest.approx(0.005)
    assert one.optimizer_s == pytest.approx(0.008)
    assert one.rest_s == pytest.approx(0.002)
    assert side.workers[0].hidden_comm_s == pytest.approx(0.04)
    assert side.links["nic0.tx"].nbytes == side.links["nic1.rx"].nbytes == pytest.approx(1e6)
    payload = link(GENERIC_LINK).efficiency.value
    assert side.links["nic0.tx"].seconds == pytest.approx(1e6 / (2.5e7 * payload)), "of the rate that payload gets"


def test_what_a_recorded_run_dropped_is_named_and_in_which_order(write_run: WriteRun) -> None:
    given = {"dropout": 0.5, "dropout_order": "dropout-first"}
    found = [facts_of_run(read_recorded_run(write_run(name, **own))) for name, own in (("a", {}), ("b", given))]
    assert [item.get("workload.dropout_order") for item in found] == [None, "dropout-first"]
    assert [entry["workload.dropout"] for entry in found] == ["0%", "50%"]


def test_measured_and_predicted_links_need_the_same_seconds_for_the_same_bytes(write_run: WriteRun) -> None:
    measured = report_of_run(recorded(write_run, "run"), "run").links["nic0.tx"]
    cluster = {"gpus": 2, "gpus_per_server": 1, "bandwidth": "200Mbps"}
    found = compare(FULL | {"cluster": cluster}, PSC)
    predicted = next(entry["a"] for entry in found["links"] if entry["link"] == "nic0.tx")
    assert measured.seconds is not None
    assert measured.nbytes / measured.seconds == pytest.approx(predicted["bytes"] / predicted["seconds"])


def test_measured_beside_predicted(write_run: WriteRun) -> None:
    found = compare(recorded(write_run, "run"), PSC)
    add_up(found)
    assert found["detailed"]
    assert any("one side is measured, the other predicted" in note for note in found["notes"])
    fields = {difference["field"] for difference in found["differs"]}
    assert {"cluster.device", "cluster.bandwidth", "workload.hidden", "method.name"} <= fields
    assert not any(difference["a"] == "unset" for difference in found["differs"]), (
        "what one of them does not know is no difference"
    )
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_two_recorded_runs_say_who_is_done_first_in_words_and_in_a_chart(write_run: WriteRun, tmp_path: Path) -> None:
    quick = recorded(write_run, "quick", seconds=(0.1,) * 10)
    slow = recorded(write_run, "slow", method="full-graph", seconds=(0.25,) * 10)
    evaluated(quick, ["0.2", "0.5", "0.6", "0.7", "0.9"])
    evaluated(slow, ["0.3", "0.8", "0.7"])
    found = compare(quick, slow)
    assert found["accuracy"]["b"] == [[1, 0.25, 0.3], [2, 0.5, 0.8], [3, 0.75, 0.7]]
    wanted = "A reaches 80.0 % validation accuracy after 500 ms (5 iterations), B after 500 ms (2 iterations)."
    assert wanted in found["says"]
    write_comparison_page(tmp_path / "page.html", found)
    assert "Accuracy against time" in (tmp_path / "page.html").read_text()
    data = convergence_of_runs(found)
    assert data is not None
    assert [line.seconds for line in data.lines] == [pytest.approx((0.1, 0.2, 0.3, 0.4, 0.5)), (0.25, 0.5, 0.75)]
    alone = compare(quick, recorded(write_run, "other"))
    assert not any("validation accuracy" in text for text in alone["says"])


def test_unlike_epochs_are_compared_as_epochs() -> None:
    place = {"cluster": {"gpus": 2, "bandwidth": "10Gbps"}}
    batches = REDDIT | place | {"method": {"name": "graphsage"}}
    found = compare(FULL | place, batches)
    result = simulate(batches).payload["result"]
    assert found["per"] == "epoch"
    assert found["b"]["iterations_per_epoch"] == result["iterations_per_epoch"] > 1
    assert found["iteration_s"]["b"] == pytest.approx(result["epoch_s"])
    add_up(found)
    assert found["notes"][0].startswith("an epoch has 1 iteration(s) in A and ")
    text = render_comparison(found)
    assert "Seconds per epoch" in text
    assert "per iteration" not in text
    same = compare(batches, batches)
    assert same["per"] == "iteration"


def test_what_differs_is_named() -> None:
    other = {**FULL, "cluster": {**FULL["cluster"], "payload": "int8", "device": "rtx-2080-ti"}}
    found = compare(FULL, other)
    assert found["differs"] == [
        {"field": "cluster.device", "a": "t4", "b": "rtx-2080-ti"},
        {"field": "cluster.payload", "a": "unset", "b": "int8"},
    ]
    assert "differ in: cluster.device t4 | rtx-2080-ti; cluster.payload unset | int8" in render_comparison(found)
    assert "the devices are not the same" in found["notes"][0]
    assert compare(FULL, FULL)["differs"] == []
    yelp = {**FULL, "workload": {"dataset": "yelp"}}
    assert any("the workloads are not the same" in note for note in compare(FULL, yelp)["notes"])


def test_rows_of_a_what_if_say_what_differs(tmp_path: Path) -> None:
    answer = what_if(gpus=2, bandwidth=["10Gbps", "20Gbps"], method=["full-graph", "pipegcn"], iterations=3)
    path = tmp_path / "answer.json"
    write_json(path, answer.payload)
    found = compare(f"{path}#1", f"{path}#4")
    assert {difference["field"] for difference in found["differs"]} == {
        "cluster.bandwidth",
        "method.name",
        "method.tau",
    }


def test_a_link_that_one_side_lacks_is_not_told_as_empty() -> None:
    staged = {"gpus": 2, "transport": "staged"}
    one = {**FULL, "cluster": staged | {"gpus_per_server": 2}}
    found = compare(one, {**FULL, "cluster": staged | {"gpus_per_server": 1, "bandwidth": "10Gbps"}})
    link = next(entry for entry in found["links"] if entry["link"] == "memory0")
    assert link["b"] == {"bytes": None, "seconds": None, "busy": None}
    (line,) = (line for line in render_comparison(found).splitlines() if line.startswith("  memory0"))
    assert line.split()[-3:] == ["-", "-", "-"]


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("result", "compute_s"), 1e3, "compute_s, exposed_comm_s, exposed_other_s make "),
        (("result", "iteration_s_low"), 1e3, "is outside its interval"),
        (("workers", 0, "waiting_s"), 1e3, "parts of worker 0 make "),
        (("links", "nic0.tx", "bytes"), -1.0, "links.nic0.tx.bytes"),
    ],
)
def test_parts_that_cannot_be_are_refused(place: tuple[Any, ...], value: float, says: str, tmp_path: Path) -> None:
    payload = json.loads(json.dumps(dict(simulate(PSC).payload)))
    payload["slowest"] = 0
    inside = payload
    if place[0] != "workers":
        payload["workers"] = []
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    write_json(tmp_path / "wrong.json", payload)
    with pytest.raises(FileError, match=says):
        compare(tmp_path / "wrong.json", PSC)


def test_a_step_is_a_step_whatever_the_sampler_does_beneath_it() -> None:
    # So fast a network and so much slack that nothing but the sampler is waited for.
    fast = {"cluster": {"gpus": 4, "bandwidth": "400Gbps", "device": "a100-80"}}
    stale = {"method": {"name": "psc-gcn", "tau": 3}}
    full, sampled = (simulate({**item, **fast}).payload["workers"] for item in (FULL, {**PSC, **stale}))
    assert full[0]["optimizer_s"] > 0.0
    assert sampled[0]["exposed_sampling_s"] > 0.0
    for one, other in zip(full, sampled, strict=True):
        assert other["optimizer_s"] == pytest.approx(one["optimizer_s"], rel=1e-6)


def test_time_that_was_put_off_is_a_part_of_every_worker() -> None:
    run = simulate(QUICK_NETWORK).result
    parts = worker_parts(run.run, run.warm_up)
    whole = run.metrics.iteration_s
    assert balanced_parts(parts, run.metrics.worker, whole) == parts
    owing = balanced_parts(parts, run.metrics.worker, whole + 0.5)
    for one, other in zip(parts, owing, strict=True):
        assert other.network_s == pytest.approx(one.network_s + 0.5)
        assert replace(other, network_s=one.network_s) == one


def test_a_fault_is_told_as_it_is_asked_for() -> None:
    found = compare(FULL, FULL | {"faults": [{"kind": "slow-link", "link": "nic1", "factor": 5}]})
    assert found["differs"] == [{"field": "faults", "a": "unset", "b": "slow-link:link=nic1,factor=5"}]


def test_the_parts_that_make_up_most_of_a_change_are_named_and_three_at_most() -> None:
    def named(*differences: float) -> list[float]:
        return [entry["difference"] for entry in _largest([{"difference": difference} for difference in differences])]

    assert named(1.0, -9.0) == [-9.0], "nine tenths of all that changed"
    assert named(2.0, 8.0) == [8.0], "four fifths are enough"
    assert named(2.1, 7.9) == [7.9, 2.1]
    assert named(1.0, 1.0, 1.0, 1.0, 1.0) == [1.0, 1.0, 1.0]
