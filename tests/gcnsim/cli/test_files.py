"""Files of commands: outputs, and maps of node ids."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

import gcnsim
from gcnsim.cli import main
from gcnsim.cli.outputs import check_folder, check_outputs, show_and_write
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.scenario.load import FILE_FIELDS, describe_schema
from tests.gcnsim.cli.conftest import RING, Refused


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of each kind that commands read."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "g.txt").write_text(RING)
    (folder / "degrees.txt").write_text("2\n2\n1\n1\n")
    (folder / "measured.json").write_text("{}")
    (folder / "s.yaml").write_text("schema: gcnsim.scenario/1\ncluster: {gpus: 2}\nworkload: {graph: g.npz}\n")
    (folder / "run").mkdir()
    (folder / "run" / "run.json").write_text("{}")
    with chdir(folder):
        for words in (
            "graph convert g.txt g.npz",
            "graph partition g.npz --parts 2 --out g.part",
            "trace record g.npz --partition g.part --iterations 2 --out g.trace",
        ):
            assert main(words.split()) == 0
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to work in, with links to its graph."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.npz").symlink_to("g.npz")
    (tmp_path / "hard.npz").hardlink_to("g.npz")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("trace record g.npz --parts 3 --iterations 2 --out g.npz", "g.npz"),
        ("trace record g.npz --parts 3 --iterations 2 --out link.npz", "link.npz"),
        ("trace record link.npz --parts 3 --iterations 2 --out g.npz", "g.npz"),
        ("trace record g.npz --parts 3 --iterations 2 --out hard.npz", "hard.npz"),
        ("trace record g.npz --partition g.part --out ./g.part", "./g.part"),
        ("trace record g.npz --partition g.part --norms g.trace --out g.trace", "g.trace"),
        ("trace profile g.npz --partition g.part --out g.part", "g.part"),
        ("trace cache-curve g.trace --csv g.trace", "g.trace"),
        ("trace cache-curve g.trace --html g.trace", "g.trace"),
        ("graph partition g.npz --parts 2 --out g.npz", "g.npz"),
        ("graph convert g.txt g.txt", "g.txt"),
        ("what-if --graph g.npz --gpus 2 --csv link.npz", "link.npz"),
        ("what-if --gpus 2 --calibration measured.json --html measured.json", "measured.json"),
        ("what-if --gpus 2 --runs run --timeline run/run.json", "run/run.json"),
        ("what-if --gpus 2 --set workload.graph='g.npz' --csv g.npz", "g.npz"),
        ("simulate s.yaml --timeline s.yaml", "s.yaml"),
        ("simulate s.yaml --timeline g.npz", "g.npz"),
        ("simulate s.yaml --set partition.file=g.part --timeline g.part", "g.part"),
        ("compare s.yaml s.yaml --json-out g.npz", "g.npz"),
        ("compare measured.json#1 s.yaml --json-out measured.json", "measured.json"),
        ("calibrate measured.json --out measured.json", "measured.json"),
        ("calibrate measured.json --runs run --out run/run.json", "run/run.json"),
        ("validate run --json-out run/run.json", "run/run.json"),
        ("reproduce --published run --csv run/run.json", "run/run.json"),
    ],
)
def test_an_input_is_never_replaced(words: str, named: str, place: Path, refused: Refused) -> None:
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    line = refused(*words.split())
    assert line.startswith(f"gcnsim: {named}: ")
    assert "which this command reads" in line or "is read by this command" in line
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


def test_the_folder_of_a_result_keeps_its_scenario(place: Path, refused: Refused) -> None:
    (place / "out").mkdir()
    (place / "out" / "result.json").symlink_to(place / "s.yaml")
    assert "out/result.json: is read by this command" in refused("simulate", "s.yaml", "--out", "out")


def test_a_file_is_replaced_only_if_told(place: Path, refused: Refused) -> None:
    command = ["trace", "cache-curve", "g.trace", "--size", "10%", "--csv", "g.part"]
    before = (place / "g.part").read_bytes()
    assert refused(*command) == "gcnsim: g.part: exists; allowed: a new file, or --overwrite to replace it\n"
    assert (place / "g.part").read_bytes() == before
    assert main([*command, "--overwrite"]) == 0
    assert (place / "g.part").read_bytes() != before
    (place / "out").mkdir()
    (place / "out" / "result.json").write_text("{}")
    assert "out/result.json: exists; " in refused("simulate", "s.yaml", "--out", "out")


def test_new_files_go_into_a_folder_that_is_read(place: Path) -> None:
    (place / "empty.csv").touch()
    check_outputs("g.npz", "run", None, "absent", csv="empty.csv", html="run/new.html")
    check_outputs("g.npz", csv="/dev/null")
    with pytest.raises(FileError, match=r"g\.part: given to both --csv and --json-out; allowed: different files"):
        check_outputs(csv="g.part", json_out="g.part")


FULL = "/dev/full"
"""A device that is always full."""


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("what-if --graph g.npz --gpus 2 --iterations 2 --method full-graph --csv", "full-graph"),
        ("what-if --graph g.npz --gpus 2 --iterations 2 --method full-graph --timeline", "full-graph"),
        ("simulate s.yaml --timeline", "psc-gcn"),
        ("compare s.yaml s.yaml --json-out", "iteration"),
        ("trace cache-curve g.trace --size 10% --csv", "hit"),
    ],
)
def test_a_disk_that_is_full_at_the_end_does_not_cost_the_answer(
    words: str, shown: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "s.yaml").write_text(
        "schema: gcnsim.scenario/1\ncluster: {gpus: 2}\nrun: {iterations: 2}\n"
        "workload: {graph: g.npz, features: 8, classes: 2}\n"
    )
    capsys.readouterr()
    assert main([*words.split(), FULL]) == 2
    captured = capsys.readouterr()
    assert shown in captured.out
    assert captured.err == f"gcnsim: {FULL}: cannot be written: No space left on device\n"


def test_every_file_is_written_though_one_cannot_be(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileError, match="first: gone; third: gone"):
        show_and_write("shown", failing("first"), lambda: Path("second").touch(), failing("third"), notes=["mind this"])
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("shown\n", "note: mind this\n")
    assert Path("second").exists()


def failing(name: str) -> Callable[[], object]:
    def write() -> None:
        raise FileError(f"{name}: gone")

    return write


def test_files_are_written_though_standard_output_cannot_be(place: Path) -> None:
    """It is full, or its reader has left."""
    command = f"{sys.executable} -m gcnsim trace cache-curve g.trace --size 10% --csv"
    full = subprocess.run(["sh", "-c", f"{command} a.csv > {FULL}"], capture_output=True, text=True, check=False)
    assert full.returncode == 2
    assert full.stderr == "gcnsim: standard output: cannot be written: No space left on device\n"
    left = subprocess.run(["sh", "-c", f"{command} b.csv | true"], capture_output=True, text=True, check=False)
    assert (left.returncode, left.stderr) == (0, "")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes() != b""


def test_a_name_too_long_to_be_written_beside_is_found_before_the_work(place: Path) -> None:
    with pytest.raises(FileError, match="File name too long"):
        check_outputs(csv="x" * 250)


def test_a_folder_that_takes_no_files_is_found_before_the_work(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever permissions say: full, over its quota, or read-only."""

    def refused(*_: object, **__: object) -> tuple[int, str]:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(tempfile, "mkstemp", refused)
    with pytest.raises(FileError, match="cannot be written: Disk quota exceeded"):
        check_outputs(csv="new.csv")
    with pytest.raises(FileError, match="cannot be written: Disk quota exceeded"):
        check_folder("out", "run")


def test_the_folder_of_a_result_is_looked_at_before_the_work(place: Path, refused: Refused) -> None:
    (place / "run" / "result.json").mkdir()
    for out, text in (("none/there", "No such file"), ("run", "is a directory"), ("g.npz", "not a folder")):
        assert text in refused("simulate", "s.yaml", "--out", out)


def test_every_field_that_names_a_file_is_known() -> None:
    assert {path for path, _, allowed, _, _ in describe_schema() if allowed.startswith("a file name")} == {*FILE_FIELDS}


WIDTHS = ["workload.features=8", "workload.classes=2"]


@pytest.fixture
def folder_of_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    folder_of_ids: Path, capsys: pytest.CaptureFixture[str]
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
    assert json.loads(out)["warnings"] == [line.removeprefix("note: ") for line in err.splitlines()]
    for words in ("info tens.txt --ids compact", "partition tens.txt --parts 4 --ids compact", "info ones.txt"):
        assert printed(f"graph {words}", capsys)[1] == ""


def test_what_loading_leaves_out_is_named_by_every_command_that_opens_a_graph(
    folder_of_ids: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = [(v, (v + step) % 60) for v in range(60) for step in (1, 2, 7)]
    lines = [f"{k},{u},{v},0.5" for k, (u, v) in enumerate([*pairs, pairs[0], (1, 1)])]
    Path("w.csv").write_text("\n".join(["id,source,target,weight", *lines, ""]))
    note = "note: w: dropped 1 self-loop, dropped 1 duplicate, ignored: id, weight\n"
    widths = "--set workload.features=8 --set workload.classes=2"
    for words in (
        "graph partition w.csv --parts 2,3",
        "trace record w.csv --parts 2 --iterations 1 --out w.trace",
        "trace profile w.csv --gpus 2 --out w.profile",
        f"recommend --graph w.csv --device t4 --gpus 2 --method full-graph --minimise time {widths}",
        f"what-if --graph w.csv --gpus 2 --method full-graph {widths}",
        f"sweep --set workload.graph=w.csv --set method.name=full-graph --set cluster.gpus=2 {widths}"
        " --interval none --axis cluster.bandwidth=5Gbps --out w",
    ):
        assert printed(words, capsys)[1] == note, words
    for words in (
        "graph info w.csv",
        "graph convert w.csv w.npz",
        "graph partition w.csv --parts 2",
        f"what-if --graph w.csv --gpus 2 --method full-graph --explain {widths}",
        "simulate s.yaml --set workload.graph=w.csv --set workload.ids=numbers",
    ):
        out = " ".join(printed(words, capsys)[0].split())
        assert "dropped 1 self-loop, dropped 1 duplicate" in out, words
        assert "ignored: id, weight" in out, words
    for words in ("graph convert w.csv v.npz --json", "graph partition w.csv --parts 2 --json"):
        assert json.loads(printed(words, capsys)[0])["cleaning"]["ignored"] == ["id", "weight"], words


def test_ends_are_chosen_by_every_command_that_opens_a_graph(
    folder_of_ids: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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


def test_names_make_the_same_graph_and_their_map_is_written(
    folder_of_ids: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
def test_what_cannot_be_is_one_line(words: str, message: str, folder_of_ids: Path, refused: Refused) -> None:
    assert message in refused(*words.split())


def test_answers_read_ids_and_warn_of_what_they_make(folder_of_ids: Path) -> None:
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
