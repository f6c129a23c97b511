"""`python -m runtime.measure` from end to end on a small graph."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
import torch

from gcnsim.core.container import read_parquet_table
from gcnsim.graph import load_graph
from gcnsim.records.compute_facts import FORMAT
from gcnsim.records.compute_reading import read_measured_compute
from gcnsim.timeline import KINDS
from runtime.measure import main
from runtime.measuring.document import KEY
from runtime.measuring.part import COUNTS, PartRun
from runtime.measuring.rounds import FEWEST_ROUNDS, LEAST_WARMUP, relative_error
from runtime.methods import METHODS
from runtime.train.loop import DivergedError
from tests.runtime.conftest import Case
from tests.runtime.shell import ROOT

WRONG = {
    "seconds": ("--seconds 0", "--seconds: 0 is not allowed; a number above 0 and at most 86400"),
    "endless": ("--seconds inf", "--seconds: inf is not allowed"),
    "no number": ("--seconds nan", "--seconds: nan is not allowed"),
    "parts": ("--parts 0", "--parts: 0 is not allowed; a whole number of at least 1 and at most 4096"),
    "too many parts": ("--parts 4000", "--workers: 4000 is more than the"),
    "method": ("--method pipegnc", "--method: unknown method 'pipegnc'; did you mean 'pipegcn'?"),
    "empty": ("--method full-graph,", "--method: unknown method ''"),
    "blocks": ("--method full-graph,sancus", "--method: sancus sends whole blocks between workers, so its parts"),
    "no knob": ("--method full-graph,pipegcn --epsilon 0.1", "--epsilon: no knob of full-graph, pipegcn; allowed: a"),
    "rate": ("--method psc-gcn --epsilon 0.1,2", "--epsilon: 2 is not allowed; a number above 0 and at most 1"),
    "whole": ("--method psc-gcn --tau 1,x", "--tau: 'x' is not a whole number; allowed: a whole number of at least 0"),
    "model": ("--model gcnn", "--model: unknown 'gcnn'; did you mean 'gcn'?"),
    "refused": ("--method dgl --preaggregate", "--preaggregate: dgl draws new neighbours for every batch"),
    "option": ("--iterations 3", "No such option"),
    "runs": ("--runs . --method psc-gcn", "--method: is for a graph's parts; allowed with --runs: --seconds, --out"),
    "no runs": ("--runs missing", "--runs: no recorded run whose parts can be measured; allowed: folders of runtime"),
    "links": (
        "--links --method psc-gcn",
        "--method: is for a graph's parts; allowed with --links: --device, --threads",
    ),
    "folder": ("--out missing/measured.parquet", "--out: missing/measured.parquet: cannot be written: No such file"),
    "graph": ("--graph missing.npz", "missing.npz"),
}

Measure = Callable[..., tuple[dict[str, Any], dict[str, list[Any]]]]


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """In a folder of its own; memory and signals of the tests' process stay as they are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runtime.measuring.document.disable_malloc_trim", lambda: False)
    old = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, old)


@pytest.fixture
def measure(case: Case, tmp_path: Path) -> Measure:
    """What a measurement of the small graph wrote: its head and its columns."""

    def run(words: str = "", seconds: float = 0.2) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        out = tmp_path / "measured.parquet"
        given = ["--graph", str(case.path), "--partition-method", "random", "--hidden", "8", "--seconds", str(seconds)]
        assert main([*given, "--out", str(out), "--overwrite", *words.split()]) == 0
        table = read_parquet_table(out)
        return json.loads(table.schema.metadata[KEY.encode()]), table.to_pydict()

    return run


def test_the_file_says_what_was_measured_and_has_a_row_for_each_op(measure: Measure, case: Case) -> None:
    head, rows = measure("--parts 3 --layers 3 --method full-graph,pipegcn")
    assert head["format"] == FORMAT
    graph = load_graph(case.path)
    assert head["graph"] == {
        "name": graph.name, "file": os.path.abspath(case.path), "nodes": 120, "edges": graph.entries,
        "features": 7, "classes": 4,
        "hash": graph.content_hash(),
    }  # fmt: skip
    owners = case.owners(3)
    assert head["partition"] == {"parts": 3, "algorithm": "random", "hash": owners.owner_hash}
    assert head["model"]["widths"] == [7, 8, 8, 4]
    assert head["model"]["model"] == "gcn"
    assert head["training"]["aggregator"] == "plain"
    assert (head["device"]["kind"], head["device"]["threads"]) == ("cpu", 1)
    assert {"gcnsim", "python", "torch"} <= set(head["versions"])
    assert [setting["method"] for setting in head["settings"]] == ["full-graph", "pipegcn"]
    assert head["skipped"] == []
    sizes = [(part.inner_nodes, part.boundary_nodes) for part in case.parts(3)]
    assert [(entry["inner"], entry["boundary"]) for entry in head["parts"]] == sizes * 2
    assert list(rows) == ["setting", "part", "iteration", "kind", "layer", "direction", "seconds"]
    assert set(rows["kind"]) <= {str(kind) for kind in KINDS} - {"wait", "wire", "allreduce"}
    assert set(rows["direction"]) == {"", "forward", "backward"}
    assert all(math.isfinite(value) and value >= 0 for value in rows["seconds"])
    for part in head["parts"]:
        _check_part(part, rows)


def _check_part(part: dict[str, Any], rows: dict[str, list[Any]]) -> None:
    own = [
        k
        for k, (setting, rank) in enumerate(zip(rows["setting"], rows["part"], strict=True))
        if (setting, rank) == (part["setting"], part["part"])
    ]
    iterations = [rows["iteration"][k] for k in own]
    assert set(iterations) == set(range(part["iterations"]))
    assert part["iterations"] >= FEWEST_ROUNDS
    keys = [(rows["iteration"][k], rows["kind"][k], rows["layer"][k], rows["direction"][k]) for k in own]
    assert len(set(keys)) == len(keys)
    counted = sum(rows["seconds"][k] for k in own)
    # Whatever threads an iteration has, they run one after the other on one core.
    assert counted <= 1.1 * part["iterations"] * part["mean_seconds"]
    assert part["outside_seconds"] >= 0.0
    assert part["peak_bytes"] > 0
    assert part["warmup"] > 0
    assert 0 <= part["relative_error"] < math.inf
    assert set(part["drawn"]) == set(COUNTS)
    assert part["drawn"]["rows"] == part["boundary"]


def test_each_combination_of_values_is_a_setting_and_methods_take_what_they_have(measure: Measure) -> None:
    head, _ = measure("--method psc-gcn,pipegcn,dgl --epsilon 0.1,30%,0.1 --tau 1,2 --batch 9 --fanout 3,2")
    found = [
        (
            setting["method"],
            setting["knobs"].get("epsilon"),
            setting["knobs"].get("tau"),
            setting["knobs"].get("fanout"),
        )
        for setting in head["settings"]
    ]
    psc = [("psc-gcn", epsilon, tau, None) for tau in (1, 2) for epsilon in (0.1, 0.3)]
    assert sorted(found[:4]) == sorted(psc)
    assert found[4:] == [("pipegcn", None, None, None), ("dgl", None, None, "3,2")]
    drawn = {part["setting"]: part["drawn"]["edges"] for part in head["parts"]}
    more = [number for number, setting in enumerate(head["settings"]) if setting["knobs"].get("epsilon") == 0.3]
    fewer = [number for number, setting in enumerate(head["settings"]) if setting["knobs"].get("epsilon") == 0.1]
    assert all(1.5 * drawn[few] < drawn[many] for few in fewer for many in more)


def test_one_part_alone_is_the_whole_graph(measure: Measure) -> None:
    head, rows = measure("--parts 1 --method full-graph,psc-gcn")
    assert [part["boundary"] for part in head["parts"]] == [0, 0]
    assert "pack" not in rows["kind"]


def test_the_means_are_known_to_two_percent_or_the_time_is_over() -> None:
    assert relative_error([1.0]) == math.inf
    assert relative_error([1.0, 1.0, 1.0]) == 0.0
    # Student's t of 3 degrees of freedom, 90 %: 2.3534.
    rounds = [0.9, 1.0, 1.0, 1.1]
    assert relative_error(rounds) == pytest.approx(2.3534 * np.std(rounds, ddof=1) / 2, rel=1e-4)


@pytest.mark.parametrize("name", list(WRONG))
def test_what_is_wrong_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, message = WRONG[name]
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"runtime.measure: {message}") or message in err
    assert err.count("\n") == 1
    assert not list(Path().iterdir())


def test_docs_name_all_that_the_file_holds_and_json_says_the_same(
    measure: Measure, capsys: pytest.CaptureFixture[str]
) -> None:
    version = FORMAT.rpartition("/")[2]
    pages = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
    section = pages.split(f"## Measured compute, version {version}", 1)[1]
    content = set(re.findall(r"`(\w+)`", section.split("\n## ", 1)[0]))
    head, rows = measure("--json")
    assert {*head, *rows, *rows["kind"], *COUNTS} <= content
    for name in ("graph", "partition", "model", "training", "device"):
        assert set(head[name]) <= content
    assert {*head["settings"][0], *head["parts"][0]} <= content
    printed = json.loads(capsys.readouterr().out)
    assert {name: value for name, value in printed.items() if name != "out"} == head
    assert Path(printed["out"]).name == "measured.parquet"


def test_a_file_is_never_written_over_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    out = Path("measured.parquet")
    out.write_text("mine")
    assert main(["--out", str(out)]) == 2
    assert capsys.readouterr().err == (
        "runtime.measure: --out: measured.parquet: already exists; allowed: another file, or --overwrite to replace "
        "it\n"
    )
    assert out.read_text() == "mine"


def test_an_interrupted_measurement_leaves_no_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **named: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("runtime.measuring.rounds.PartRun.train", stopped)
    assert main(["--seconds", "1"]) == 130
    assert capsys.readouterr().err == "runtime.measure: stopped by SIGINT\n"
    assert not list(Path().iterdir())


def test_a_part_that_does_not_fit_is_left_out_and_says_by_how_much(
    measure: Measure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.measuring.rounds.Setting._needed", lambda self, rank: 5000 if rank == 1 else 10)
    monkeypatch.setattr("runtime.measuring.rounds.free_bytes", lambda: 1000)
    head, rows = measure("--parts 3", seconds=0.01)
    assert head["skipped"] == [
        {"setting": 0, "part": 1, "reason": "does not fit into memory", "needed_bytes": 5000, "free_bytes": 1000}
    ]
    assert [part["part"] for part in head["parts"]] == [0, 2]
    assert set(rows["part"]) == {0, 2}
    assert "  part 1 left out: does not fit into memory (4.88 KiB needed, 1,000 B free)\n" in capsys.readouterr().out


def test_nothing_stays_of_a_part_for_which_memory_runs_out_later(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both fit, but not at once; from the second round on only the smaller one does.
    free = itertools.chain([1000] * 5, itertools.repeat(550))
    monkeypatch.setattr("runtime.measuring.rounds.Setting._needed", lambda self, rank: (600, 500)[rank])
    monkeypatch.setattr("runtime.measuring.rounds.free_bytes", lambda: next(free))
    head, rows = measure("--method bns-gcn", seconds=0.01)
    assert [(part["part"], part["free_bytes"]) for part in head["skipped"]] == [(0, 550)]
    assert [part["part"] for part in head["parts"]] == [1]
    assert set(rows["part"]) == {1}


def test_where_no_part_fits_there_is_no_file(
    case: Case, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("rounds", "document"):
        monkeypatch.setattr(f"runtime.measuring.{module}.free_bytes", lambda: 1)
    assert main(["--graph", str(case.path), "--out", "none.parquet"]) == 2
    err = capsys.readouterr().err
    assert err.splitlines()[-1].startswith("runtime.measure: no part could be measured; part 0: does not fit into mem")
    assert not list(Path().iterdir())


def test_a_gpu_without_room_leaves_a_part_out(
    measure: Measure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, turns = PartRun.train, iter(range(100))

    def full(run: PartRun, iterations: int, *, measured: bool) -> list[float]:
        if run.record.rank == 1 and next(turns) > LEAST_WARMUP + 2:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has ...")
        return usual(run, iterations, measured=measured)

    monkeypatch.setattr(PartRun, "train", full)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda _: (2 << 30, 16 << 30))
    monkeypatch.setattr("torch.cuda.memory_reserved", lambda _: 1 << 30)
    monkeypatch.setattr("torch.cuda.max_memory_allocated", lambda _: 1 << 30)
    head, rows = measure()
    assert head["skipped"] == [
        {
            "setting": 0, "part": 1, "reason": "does not fit into the memory of the GPU",
            "needed_bytes": 4 << 30, "free_bytes": 3 << 30,
        }
    ]  # fmt: skip
    assert set(rows["part"]) == {0}
    assert "part 1 left out: does not fit into the memory of the GPU (4.00 GiB needed, 3.00 GiB free)" in (
        capsys.readouterr().out
    )


def test_a_part_whose_loss_is_no_number_is_left_out(measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = PartRun.train

    def diverging(run: PartRun, iterations: int, *, measured: bool) -> list[float]:
        if run.record.rank == 0:
            raise DivergedError("iteration 3: the loss is nan")
        return usual(run, iterations, measured=measured)

    monkeypatch.setattr(PartRun, "train", diverging)
    head, _ = measure()
    assert head["skipped"] == [{"setting": 0, "part": 0, "reason": "iteration 3: the loss is nan"}]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize(
    "words",
    [
        *(f"--method {name}" for name, kind in METHODS.items() if kind.alone),
        *(f"--method full-graph --model {model}" for model in ("graphsage", "gat")),
        "--method psc-gcn --model gat",
        "--method full-graph --parts 1 --norm layer --dropout 0.5",
    ],
)
def test_parts_are_measured_on_a_gpu(measure: Measure, words: str, tmp_path: Path) -> None:
    head, rows = measure(f"--device cuda {words}", seconds=0.5)
    assert head["device"]["kind"] == "cuda"
    assert head["skipped"] == []
    assert all(part["peak_bytes"] > 0 for part in head["parts"])
    assert {"attention" if "--model gat" in words else "update", "loss", "step"} <= set(rows["kind"])
    assert all(0 <= value < 1 for value in rows["seconds"])
    assert all(0 <= part["outside_seconds"] < part["mean_seconds"] for part in head["parts"])
    assert read_measured_compute(str(tmp_path / "measured.parquet")).on_gpu


def test_a_partition_of_a_file_is_taken(measure: Measure, case: Case, tmp_path: Path) -> None:
    owners = case.owners(3, seed=7).owner
    np.save(tmp_path / "owners.npy", owners)
    head, _ = measure(f"--parts 3 --partition {tmp_path / 'owners.npy'}")
    assert head["partition"]["algorithm"] == "file"
    assert [part["inner"] for part in head["parts"]] == np.bincount(owners).tolist()


def test_a_terminal_shows_which_part_has_its_turn(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr("gcnsim.core.terminal.LiveLine.show", lambda _, text: lines.append(text))
    assert main(["--graph", str(case.path), "--out", "told.parquet", "--seconds", "0.2"]) == 0
    assert lines[:3] == ["starting", "reading the graph", "partitioning the graph"]
    assert "full-graph, warm-up, part 2 of 2" in lines
    turn = re.compile(r"full-graph, round (\d+), part ([12]) of 2(?:, means known to [0-9.]+ %)?")
    turns = [found for text in lines[5:] if (found := turn.fullmatch(text))]
    assert [(found[1], found[2]) for found in turns[:4]] == [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")]
    assert len(turns) == len(lines[5:])
    count = len(lines)
    assert main(["--graph", str(case.path), "--out", "quiet.parquet", "--seconds", "0.1", "--quiet"]) == 0
    assert len(lines) == count


@pytest.mark.parametrize("share", [0.4, 1.2])
def test_a_machine_that_is_not_quiet_is_noticed(
    share: float, measure: Measure, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = PartRun.train

    def slowed(run: PartRun, iterations: int, *, measured: bool, refreshing: bool = False) -> list[float]:
        found = usual(run, iterations, measured=measured, refreshing=refreshing)
        if measured:
            run.record.processor_s = [share * seconds for seconds in run.record.seconds]
        return found

    monkeypatch.setattr(PartRun, "train", slowed)
    measure()
    note = "note: other programs used the cores: training ran only 40.0 % of the time; measure again when the "
    assert (note in capsys.readouterr().err) == (share < 1)


def test_a_table_says_what_was_reached(measure: Measure, capsys: pytest.CaptureFixture[str]) -> None:
    measure("--method bns-gcn --rate 0.3")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("bns-gcn (rate 0.3, boundary scale rate), measured in ")
    assert lines[2].split() == ["part", "nodes", "boundary", "iterations", "mean", "+-", "memory"]
    assert lines[-1].startswith("Written to ")
