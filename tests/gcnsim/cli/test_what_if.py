"""`gcnsim what-if` and `gcnsim simulate` from the outside: shapes, laws, files, and one line for every bad input."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow.parquet as pq
import pytest

import gcnsim
from gcnsim import Answer
from gcnsim.cli import main
from gcnsim.core.schemas import schema_of
from gcnsim.scenario import from_mapping
from gcnsim.simulation.open_source import open_source
from studies.picture import PICTURE, picture
from tests.docs.examples import alike
from tests.gcnsim.cli.conftest import Refused


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The JSON answer of a command that must succeed."""
    assert main([*arguments, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def schema(name: str) -> dict[str, Any]:
    return dict(schema_of(name))


def check_row(row: dict[str, Any]) -> None:
    """The identities of a row, within 1 % (and to the last digits where it is a sum by definition)."""
    iteration = row["iteration_s"]
    communication = row["exposed_comm_s"] + row["hidden_comm_s"]
    parts = row["compute_s"] + row["exposed_comm_s"] + row["exposed_other_s"]
    assert parts == pytest.approx(iteration, rel=1e-9)
    assert max(row["compute_s"], communication) <= iteration * 1.01
    assert iteration <= (row["compute_s"] + communication + row["exposed_other_s"]) * 1.01
    assert row["iteration_s_low"] <= iteration <= row["iteration_s_high"]
    assert 0 <= row["gpu_utilization"] <= 1
    assert 0 <= row["nic_utilization"] <= 1.0001


def open_of_the_workload(answer: dict[str, Any]) -> set[str]:
    """The assumptions in the interval that are of no device, link or host."""
    return {
        item["name"] for item in answer["provenance"]["assumptions"] if item["in_interval"] and "." not in item["name"]
    }


@pytest.fixture(scope="module")
def first() -> Answer:
    """The answer to README's first question."""
    return gcnsim.what_if(gpus=6, bandwidth="15Gbps")


def test_the_picture_is_of_todays_answer(first: Answer) -> None:
    stored, today = PICTURE.read_text(encoding="utf-8").splitlines(), picture(first).splitlines()
    assert len(stored) == len(today)
    assert [pair for pair in zip(stored, today, strict=True) if not alike(*pair)] == []


def test_default_answer_has_the_published_shape_and_keeps_its_identities(first: Answer) -> None:
    answer = json.loads(json.dumps(first.payload))
    jsonschema.validate(answer, schema("what-if"))
    assert [row["method"] for row in answer["results"]] == ["full-graph", "pipegcn", "bns-gcn", "psc-gcn"]
    assert [row["rate"] for row in answer["results"]] == [1.0, 1.0, 0.1, 1.0]
    for row in answer["results"]:
        check_row(row)
    assert answer["results"][0]["speedup_vs_full_graph"] == 1.0
    uncounted = {"boundary_nodes", "boundary_nodes_most"}
    assert open_of_the_workload(answer) == {"cross_edges", "placement", *uncounted}, "counts are of 4 and 8 parts"
    assumed = {item["name"] for item in answer["certainty"]["assumptions"]} - {"workload", "partition"}
    covered = {item["name"] for item in answer["provenance"]["assumptions"] if item["in_interval"]}
    assert "t4.spmm_efficiency" in assumed < covered, "datasheet figures are in the interval too"
    for row, limits in zip(answer["results"], answer["provenance"]["bounds"], strict=True):
        assert limits["lower_s"] <= row["iteration_s"] * 1.01 <= limits["upper_s"] * 1.02


def test_where_the_parts_were_counted_and_one_server_holds_them_the_cross_edges_alone_are_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    question = ("--gpus", "4", "--gpus-per-server", "4", "--method", "full-graph", "--iterations", "4")
    assert open_of_the_workload(ask(capsys, "what-if", *question)) == {"cross_edges"}


def test_between_shipped_profiles_their_error_is_in_the_interval(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(capsys, "what-if", "--dataset", "yelp", "--gpus", "7", "--method", "full-graph", "--iterations", "4")
    jsonschema.validate(answer, schema("what-if"))
    inside = {item["name"]: item for item in answer["provenance"]["assumptions"] if item["in_interval"]}
    assert open_of_the_workload(answer) == {"cross_edges", "boundary_nodes", "boundary_nodes_most", "placement"}
    most = [float(str(inside["boundary_nodes_most"][key]).replace(",", "")) for key in ("low", "value", "high")]
    assert most[0] < most[1] < most[2]
    for row in answer["results"]:
        check_row(row)
        assert row["iteration_s_low"] < row["iteration_s_high"]
    for words in ("leave-one-out error", "the last server holds 1"):
        assert any(words in warning for warning in answer["provenance"]["warnings"])


def test_where_the_asker_says_how_uneven_parts_are_published_means_answer_and_leave_more_open() -> None:
    mapping = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2}, "workload": {"imbalance": 1.3}}
    scenario = from_mapping(mapping, "test")
    content = open_source(scenario).assumptions(scenario, [scenario])
    assert {item.name for item in content if item.in_interval} == {
        "cross_fraction",
        "load_imbalance",
        "boundary_imbalance",
        "remote_ownership",
        "dispersion",
        "vr_rows",
    }


def test_lists_give_a_row_each_and_equal_settings_equal_times(capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--gpus", "2", "--gpus-per-server", "1", "--iterations", "4")
    answer = ask(capsys, "what-if", "--tau", "0,1", "--epsilon", "1", "--bandwidth", "5Gbps,20Gbps", *small)
    rows = answer["results"]
    assert [(row["method"], row["tau"]) for row in rows[:5]] == [
        ("full-graph", 0),
        ("pipegcn", 1),
        ("bns-gcn", 0),
        ("psc-gcn", 0),
        ("psc-gcn", 1),
    ]
    assert [place["bandwidth"] for place in answer["scenario"]["grid"]] == ["5Gbps"] * 5 + ["20Gbps"] * 5
    for slow, quick in ((rows[0], rows[3]), (rows[1], rows[4])):
        assert slow["iteration_s"] == quick["iteration_s"]


def test_rates_give_a_row_each_between_no_boundary_and_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ask(
        capsys, "what-if", "--method", "full-graph,bns-gcn", "--rate", "0,0.1,0.5,1", "--gpus", "4", "--iterations", "4"
    )
    jsonschema.validate(answer, schema("what-if"))
    full, *drawn = answer["results"]
    assert [row["rate"] for row in drawn] == [0.0, 0.1, 0.5, 1.0]
    assert answer["scenario"]["asked"]["rates"] == [0.0, 0.1, 0.5, 1.0]
    for row in drawn:
        check_row(row)
        assert row["nic_bytes"] <= full["nic_bytes"] * 1.001
    times = [row["iteration_s"] for row in drawn]
    assert times == sorted(times)
    assert times[-1] == full["iteration_s"]
    assert drawn[0]["nic_bytes"] < 0.02 * full["nic_bytes"], "gradients of the weights are left"
    best = answer["recommendation"]
    assert (best["method"], best["rate"]) == ("bns-gcn", 0.1), "the fastest at a rate of at least 0.1"
    why = "sampling rate 0 is below 0.1; no --min-sampling-rate allows it"
    assert best["excluded"] == [{"what": "bns-gcn with rate 0", "why": why}]


def test_the_fewer_entries_cross_the_longer_drawn_nodes_take(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = ask(capsys, "what-if", "--method", "bns-gcn", "--set", "workload.imbalance=1.3")["results"]
    assert row["iteration_s_low"] < 0.8 * row["iteration_s"]
    assert row["iteration_s_high"] > 1.2 * row["iteration_s"]


def test_answers_do_not_depend_on_the_number_of_processes(capsys: pytest.CaptureFixture[str]) -> None:
    small = ("--gpus", "2", "--gpus-per-server", "1", "--iterations", "4", "--method", "bns-gcn,psc-gcn")
    texts = []
    for processes in ("1", "2"):
        assert main(["what-if", "--processes", processes, *small, "--json"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_a_real_graph_is_partitioned_sampled_and_replayed(capsys: pytest.CaptureFixture[str], ring: Path) -> None:
    answer = ask(capsys, "what-if", "--graph", str(ring), "--gpus", "4", "--bandwidth", "1Gbps")
    jsonschema.validate(answer, schema("what-if"))
    for row in answer["results"]:
        check_row(row)
    assert answer["provenance"]["graph"]["kind"] == "real"
    assert any("declares no features" in text for text in answer["provenance"]["warnings"])


def test_the_acceptance_graph_keeps_the_identities(capsys: pytest.CaptureFixture[str], data_dir: Path) -> None:
    graph = str(data_dir / "amazon_cs.npz")
    answer = ask(
        capsys, "what-if", "--graph", graph, "--bandwidth", "1Gbps,500Mbps", "--gpus", "2", "--gpus-per-server", "1"
    )
    for row in answer["results"]:
        check_row(row)
    fast, slow = answer["results"][:4], answer["results"][4:]
    for quick, late in zip(fast, slow, strict=True):
        assert late["iteration_s"] > 1.5 * quick["iteration_s"], "all are bound by the network here"


def test_files_are_written_whole(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    paths = {name: tmp_path / f"answer.{name}" for name in ("csv", "html", "timeline")}
    options = [part for name, path in paths.items() for part in (f"--{name}", str(path))]
    answer = ask(capsys, "what-if", "--method", "pipegcn,psc-gcn", "--gpus", "2", *options)
    rows = list(csv.DictReader(paths["csv"].read_text().splitlines()))
    requested = [row["iteration_s"] for row in answer["results"]]
    best = [] if answer["recommendation"]["in_results"] is not None else [answer["recommendation"]["iteration_s"]]
    assert [float(row["iteration_s"]) for row in rows] == requested + best
    assert 'gcnsim.draw("breakdown"' in paths["html"].read_text()
    events = json.loads(paths["timeline"].read_text())["traceEvents"]
    named = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert named == {0: "worker 0", 1: "worker 1", 2: "iterations", 3: "links"}
    assert {event["pid"] for event in events if event["ph"] == "X"} == {0, 1, 2}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_table_is_printed_as_asked(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    question = ["what-if", "--gpus", "2", "--method", "pipegcn", "--iterations", "2"]
    assert main([*question, "--columns", "method,compute_s", "--explain"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[1:3] == ["           compute", "  method         s"]
    assert all(
        part in text
        for part in ("How much each assumption changes the time", "t4.spmm_efficiency", "Analytic bounds", "engine")
    )
    assert "--explain" not in text
    assert main([*question, "--wide"]) == 0
    text = capsys.readouterr().out
    assert all(head in text.splitlines()[2] for head in ("dataset", "knobs", "limited by", "busy"))
    assert "(--explain: why; confidence" in text


@pytest.mark.parametrize("command", [["what-if"], ["simulate", "no.yaml"]])
def test_detail_of_a_timeline_needs_one(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    assert main([*command, "--timeline-detail"]) == 2
    assert "--timeline-detail: describes the file of --timeline" in capsys.readouterr().err


def test_the_timeline_of_a_simulation_in_detail_has_a_track_per_stream(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scenario, path = tmp_path / "small.yaml", tmp_path / "t.json"
    scenario.write_text("schema: gcnsim.scenario/1\nname: small\ncluster: {gpus: 2, bandwidth: 5Gbps}\n")
    ask(capsys, "simulate", str(scenario), "--timeline", str(path), "--timeline-detail")
    events = json.loads(path.read_text())["traceEvents"]
    tracks = {event["args"]["name"] for event in events if event["name"] == "thread_name" and event["pid"] == 0}
    assert {"gpu", "f.tx1", "f.rx1"} <= tracks


def test_simulate_prints_the_result_and_writes_the_spans(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text("schema: gcnsim.scenario/1\nname: small\ncluster: {gpus: 2, bandwidth: 5Gbps}\n")
    out = tmp_path / "out"
    answer = ask(capsys, "simulate", str(scenario), "--set", "method.tau=1", "--out", str(out))
    jsonschema.validate(answer, schema("result"))
    check_row(answer["result"])
    assert answer["result"]["tau"] == 1
    assert json.loads((out / "result.json").read_text()) == answer
    spans = pq.read_table(out / "spans.parquet")
    assert np.all(spans["end_ps"].to_numpy() > spans["start_ps"].to_numpy())
    assert spans.schema.metadata[b"scenario_hash"].decode() == answer["provenance"]["scenario_hash"]


BAD = [
    (["--bandwidth", "15"], "has no unit"),
    (["--epsilon", "1.5"], "method.epsilon: 1.5"),
    (["--rate", "x"], "method.rate: 'x' is not a number of at least 0 and at most 1, or a percentage"),
    (["--method", "psc-gcn", "--rate", "0.1"], "psc-gcn has no rate (it is 1); methods with it: bns-gcn"),
    (["--tau", "1.5"], "--tau"),
    (["--cache", "30"], "has no unit; write 30% or 0.3"),
    (["--epsilon", "10"], "write 10% or 0.1"),
    (["--device", "b100"], "any other is described by a file: --device my_gpu.yaml"),
    (["--dataset", "ogbn-mag"], "--graph FILE; or sizes: --nodes N --edges M"),
    (["--nodes", "3M", "--edges", "9M", "--dataset", "yelp"], "both dataset (yelp) and nodes (3000000) are given"),
    (["--nodes", "3M", "--edges", "9M", "--train", "66"], "workload.train_fraction: '66' has no unit"),
    (["--nodes", "3M", "--edges", "9M", "--set", "partition.seed=3"], "is known by sizes alone"),
    (["--device", "rxt-4090"], "did you mean 'rtx-4090'"),
    (["--graph", "no-such-file.npz"], "no-such-file.npz: cannot be read"),
    (["--set", "workload.imbalance=9"], "at most 5.4"),
    (["--set", "partition.seed=3"], "is partitioned already"),
    (["--norms", "x.norms"], "needs workload.graph"),
    (["--bandwidth", ","], "--bandwidth"),
    (["--columns", "method,tme"], "--columns: unknown column 'tme'; did you mean 'time'?"),
    (["--html", "no/such/folder/x.html", "--gpus", "1"], "cannot be written"),
    (
        ["--features", "602,301"],
        "one is allowed; gcnsim sweep --axis workload.features=602,301 --out FOLDER compares several",
    ),
    (["--payload", "fp32,bf16"], "; gcnsim sweep --axis cluster.payload=fp32,bf16 --out FOLDER compares several"),
    (
        ["--set", "cluster.sampler_threads=1,4"],
        "; gcnsim sweep --axis cluster.sampler_threads=1,4 --out FOLDER compares several",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input_is_one_line_and_exit_code_2(refused: Refused, arguments: list[str], message: str) -> None:
    assert message in refused("what-if", *arguments)


def test_bad_graph_and_partition_files_are_refused_by_path(ring: Path, tmp_path: Path, refused: Refused) -> None:
    parts = tmp_path / "ring.part"
    assert main(["graph", "partition", str(ring), "--parts", "4", "--out", str(parts)]) == 0
    whole = parts.read_bytes()
    altered, cut = tmp_path / "altered.part", tmp_path / "cut.part"
    altered.write_bytes(whole[:-30] + bytes([whole[-30] ^ 1]) + whole[-29:])
    cut.write_bytes(whole[:-40])
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    cases = [
        (["--graph", str(empty), "--gpus", "2"], "empty graph"),
        (["--graph", str(ring), "--gpus", "61"], "has 60 nodes, fewer than the 61 workers"),
        (["--graph", str(ring), "--gpus", "4", "--set", f"partition.file={altered}"], "altered"),
        (["--graph", str(ring), "--gpus", "4", "--set", f"partition.file={cut}"], "truncated"),
        (["--graph", str(ring), "--gpus", "2", "--set", f"partition.file={parts}"], "has 4 parts"),
        (["--graph", str(ring), "--gpus", "4", "--set", "workload.imbalance=2"], "it is counted on"),
    ]
    for arguments, text in cases:
        assert text in refused("what-if", *arguments)


def test_a_graph_by_its_sizes_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ("--nodes", "20k", "--edges", "400k", "--features", "64", "--classes", "3")
    answer = ask(capsys, "what-if", *sizes, "--gpus", "2,4", "--iterations", "4", "--method", "full-graph,psc-gcn")
    jsonschema.validate(answer, schema("what-if"))
    assert {row["dataset"] for row in answer["results"]} == {"20k nodes, 400k edges"}
    assert all(row["iteration_s_low"] < row["iteration_s"] < row["iteration_s_high"] for row in answer["results"])
    assert answer["scenario"]["workload"]["nodes"] == 20_000
    assert main(["recommend", *sizes, "--device", "t4", "--gpus", "2", "--limit", "4", "--iterations", "3"]) == 0
    assert "20k nodes, 400k edges" in capsys.readouterr().out
