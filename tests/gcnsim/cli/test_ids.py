"""Ids of edge lists on the command line: renumbered, named, written down, and what is said of gaps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gcnsim
from gcnsim.cli import main
from gcnsim.core.errors import ScenarioError
from tests.gcnsim.cli.conftest import Refused

WIDTHS = ["workload.features=8", "workload.classes=2"]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the same ring four times: by number, by tens, by name, and as a scenario's graph."""
    monkeypatch.chdir(tmp_path)
    ends = [(v, (v + step) % 60) for v in range(60) for step in (1, 2, 7)]
    (tmp_path / "ones.txt").write_text("".join(f"{u} {v}\n" for u, v in ends))
    (tmp_path / "tens.txt").write_text("".join(f"{10 * u} {10 * v}\n" for u, v in ends))
    (tmp_path / "names.csv").write_text("from,to\n" + "".join(f"user {u:02},user {v:02}\n" for u, v in ends))
    (tmp_path / "s.yaml").write_text(
        "schema: gcnsim.scenario/1\ncluster: {gpus: 2}\nrun: {iterations: 2}\n"
        "workload: {graph: names.csv, ids: names, features: 8, classes: 2}\n"
    )
    return tmp_path


def printed(words: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main(words.split()) == code
    captured = capsys.readouterr()
    return captured.out, captured.err


def test_gaps_and_isolated_nodes_are_noted_by_every_graph_command(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gaps = (
        "note: tens: 531 of 591 nodes are isolated (no edges): the ids have gaps, 531 numbers do not occur; "
        "--ids compact leaves them out\n"
    )
    out, err = printed("graph info tens.txt --json", capsys)
    assert err == gaps
    assert json.loads(out)["unused_ids"] == 531
    assert json.loads(out)["warnings"] == [gaps.removeprefix("note: ").strip()]
    assert printed("graph convert tens.txt tens.npz", capsys)[1] == gaps
    out, err = printed("graph partition tens.txt --parts 4 --json", capsys)
    assert err.startswith(gaps)
    assert "note: degenerate partition: " in err
    assert json.loads(out)["warnings"] == [err.splitlines()[1].removeprefix("note: ")]
    for words in ("info tens.txt --ids compact", "partition tens.txt --parts 4 --ids compact", "info ones.txt"):
        assert printed(f"graph {words}", capsys)[1] == ""


def test_what_loading_leaves_out_is_named_by_every_command_that_opens_a_graph(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [(v, (v + step) % 60) for v in range(60) for step in (1, 2, 7)]
    lines = [f"{k},{u},{v},0.5" for k, (u, v) in enumerate([*pairs, pairs[0], (1, 1)])]
    Path("w.csv").write_text("\n".join(["id,source,target,weight", *lines, ""]))
    note = "note: w: dropped 1 self-loop, dropped 1 duplicate, ignored: id, weight\n"
    widths = "--set workload.features=8 --set workload.classes=2"
    for words in (
        "graph partition w.csv --parts 2",
        "trace record w.csv --parts 2 --iterations 1 --out w.trace",
        "trace profile w.csv --gpus 2 --out w.profile",
        f"recommend --graph w.csv --device t4 --gpus 2 --method full-graph --minimise time {widths}",
        f"sweep --set workload.graph=w.csv --set method.name=full-graph --set cluster.gpus=2 {widths}"
        " --interval none --axis cluster.bandwidth=5Gbps --out w",
    ):
        assert printed(words, capsys)[1] == note, words
    for words in (
        "graph info w.csv",
        "graph convert w.csv w.npz",
        f"what-if --graph w.csv --gpus 2 --method full-graph {widths}",
        "simulate s.yaml --set workload.graph=w.csv --set workload.ids=numbers",
    ):
        out = " ".join(printed(words, capsys)[0].split())
        assert "dropped 1 self-loop, dropped 1 duplicate" in out, words
        assert "ignored: id, weight" in out, words
    assert json.loads(printed("graph convert w.csv w.npz --json", capsys)[0])["cleaning"]["ignored"] == ["id", "weight"]


def test_ends_are_chosen_by_every_command_that_opens_a_graph(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("u.csv").write_text(
        "alpha,beta,gamma\n" + "".join(f"{v},3,{(v + step) % 60}\n" for v in range(60) for step in (1, 2, 7))
    )
    ones, chosen = (
        json.loads(printed(f"graph info {words} --json", capsys)[0])
        for words in ("ones.txt", "u.csv --ends alpha,gamma")
    )
    assert chosen["content_hash"] == ones["content_hash"]
    for words in (
        "graph convert u.csv u.npz --ends alpha,gamma",
        "graph partition u.csv --parts 2 --ends 1,3",
        "trace record u.csv --parts 2 --iterations 1 --out u.trace --ends 1,3",
        "trace profile u.csv --gpus 2 --out u.profile --ends 1,3",
        "simulate s.yaml --set workload.graph=u.csv --set workload.ids=numbers --set workload.ends=alpha,gamma",
    ):
        printed(words, capsys)
    assert "which two columns are the ends" in printed("graph info u.csv", capsys, 2)[1]
    message = printed("simulate s.yaml --set workload.ends=alpha", capsys, 2)[1]
    assert message == (
        "gcnsim: workload.ends: 'alpha' is not allowed; two columns are needed, as in source,target or 1,3\n"
    )
    message = printed("what-if --set workload.ends=alpha,beta", capsys, 2)[1]
    assert message == "gcnsim: workload.ends: alpha,beta needs workload.graph, an edge list; allowed: null\n"


def test_names_make_the_same_graph_and_their_map_is_written(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ones, names = (
        json.loads(printed(f"graph info {words} --json", capsys)[0]) for words in ("ones.txt", "names.csv --ids names")
    )
    assert (names["nodes"], names["edges"], names["degree"]) == (ones["nodes"], ones["edges"], ones["degree"])
    out, _ = printed("graph convert names.csv names.npz --ids names --json", capsys)
    assert json.loads(out)["ids_map"] == "names.npz.ids.csv"
    lines = Path("names.npz.ids.csv").read_text().splitlines()
    assert lines[:3] == ["node,id", "0,user 00", "1,user 01"]
    assert len(lines) == 61
    printed("graph partition names.csv --ids names --parts 2 --out a.part", capsys)
    printed("graph info names.csv --ids names --ids-map map.csv", capsys)
    assert Path("a.part.ids.csv").read_bytes() == Path("map.csv").read_bytes() == Path("names.npz.ids.csv").read_bytes()
    printed("graph convert tens.txt tens.npz --ids compact", capsys)
    assert Path("tens.npz.ids.csv").read_text().splitlines()[:3] == ["node,id", "0,0", "1,10"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "graph info names.csv",
            "names.csv: line 2: node ids must be integers, not 'user 00'; for names use --ids names",
        ),
        (
            "graph info ones.txt --ids-map map.csv",
            "--ids-map: only valid with --ids compact or names",
        ),
        ("graph info names.csv --ids names --ids-map names.csv", "names.csv: is read by this command"),
        ("graph info names.csv --ids nams", "'nams' is not one of 'numbers', 'compact', 'names'"),
        ("what-if --ids names", "workload.ids: names needs workload.graph, an edge list; allowed: numbers"),
        (
            "simulate s.yaml --set workload.ids=nam",
            "workload.ids: unknown way to read ids 'nam'; did you mean 'names'?",
        ),
    ],
)
def test_what_cannot_be_is_one_line(words: str, message: str, place: Path, refused: Refused) -> None:
    assert message in refused(*words.split())


def test_answers_read_ids_and_warn_of_what_they_make(place: Path) -> None:
    requested = {"gpus": 4, "method": "full-graph", "iterations": 2, "overrides": WIDTHS, "processes": 1}
    tens = gcnsim.what_if(graph="tens.txt", **requested)  # type: ignore[arg-type]
    first, second = tens.payload["provenance"]["warnings"]
    assert "531 of 591 nodes are isolated" in first
    assert second.startswith("4 GPUs: degenerate partition: ")
    plain = gcnsim.what_if(graph="ones.txt", **requested)  # type: ignore[arg-type]
    compact = gcnsim.what_if(graph="tens.txt", ids="compact", **requested)  # type: ignore[arg-type]
    assert compact.payload["provenance"]["warnings"] == plain.payload["provenance"]["warnings"] == []
    assert compact.results[0]["iteration_s"] == plain.results[0]["iteration_s"]
    assert compact.payload["scenario"]["workload"]["ids"] == "compact"
    assert "ids" not in plain.payload["scenario"]["workload"]
    with pytest.raises(ScenarioError, match="ids: names is for a file; ones is a graph in memory"):
        gcnsim.what_if(graph=gcnsim.load_graph("ones.txt"), ids="names", **requested)  # type: ignore[arg-type]


def test_a_scenario_names_its_graphs_ids(place: Path) -> None:
    found = gcnsim.simulate("s.yaml").payload
    assert found["scenario"]["workload"]["ids"] == "names"
    assert "names: 60 nodes" in found["provenance"]["graph"]["text"]
