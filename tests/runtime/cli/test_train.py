"""The command line of training: one line for every mistake, before any time is lost; what is printed, and where."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.owners import write_partition
from runtime.launch import Place
from runtime.methods import METHODS
from runtime.options import Options, flag
from runtime.train.__main__ import main
from runtime.train.preflight import out_folder
from runtime.train.setup import check_gpus, device_of, refuse_shared_gpus
from runtime.train.tasks import tasks_of
from tests.runtime.conftest import Case, small_graph
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import refused, seen_on_a_terminal, told, worked
from tests.runtime.shell import ROOT, Shell

WRONG: dict[str, tuple[str, str]] = {
    "method": ("--method psc-gnc", "--method: unknown method 'psc-gnc'; did you mean 'psc-gcn'? known: bns-gcn, "),
    "option": ("--metod psc-gcn", "No such option"),
    "argument": ("psc-gcn", "Got unexpected extra argument (psc-gcn) (see python -m runtime.train --help)"),
    "no value": ("--lr", "Option '--lr' requires an argument. (see python -m runtime.train --help)"),
    "no number": ("--workers two", "Invalid value for '--workers': 'two' is not a valid integer. (see python -m"),
    "no knobs": ("--tau 2", "--tau: full-graph has no tau; it has no knobs"),
    "other knobs": ("--method pipegcn --epsilon 0.1", "--epsilon: pipegcn has no epsilon; its knobs: --cold-start"),
    "tau": ("--method psc-gcn --tau -1", "--tau: -1 is not allowed; a whole number of at least 0 and at most"),
    "epsilon": (
        "--method psc-gcn --epsilon 0",
        "--epsilon: 0 is not allowed; a number above 0 and",
    ),
    "rate": ("--method bns-gcn --p 1.5", "--rate: 1.5 is not allowed; a number of at least 0 and at most 1"),
    "gamma": (
        "--method pipegcn-g --gamma nan",
        "--gamma: 'nan' is not a number of at least 0 and at most 1, or a percentage",
    ),
    "unit": ("--method psc-gcn --cache 30", "--cache: '30' has no unit; write 30% or 0.3"),
    "cache": ("--method psc-gcn --cache 130%", "--cache: '130%' is not allowed; 0% to 100% of the boundary"),
    "sampler": (
        "--method psc-gcn --sampler v",
        "--sampler: unknown sampler 'v'; did you mean 'vr'? known: ",
    ),
    "workers": ("--workers 0", "--workers: 0 is not allowed; a whole number of at least 1 and at most 4096"),
    "loss log": ("--loss-log no/where.csv", "--loss-log: no/where.csv: cannot be written: No such file or directory"),
    "trace": ("--save-trace {tmp}", "--save-trace: {tmp}: is a directory"),
    "init": ("--save-init no/where.npz", "--save-init: no/where.npz: cannot be written: No such file or directory"),
    "foreign out": (
        "--out {tmp}/held",
        "--out: {tmp}/held: holds files but no run; allowed: a new or empty",
    ),
    "file out": (
        "--out {tmp}/held/file",
        "--out: {tmp}/held/file: is a file; allowed: a new or empty folder",
    ),
    "under a file": (
        "--out {tmp}/held/file/x",
        "--out: {tmp}/held/file/x: lies in a file; allowed: ",
    ),
    "crowd": ("--graph {case} --workers 121", "--workers: 121 is more than the graph's 120 nodes; allowed: 1 to 120"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_mistake_is_one_line_and_exit_code_2(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], what: str
) -> None:
    """All of these before any worker starts: starting one would take seconds."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runtime.train.__main__.launch", lambda argv, workers: pytest.fail("workers were started"))
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "file").write_text("mine")
    places = {"tmp": tmp_path, "case": case.path}
    typed, message = (text.format(**places) for text in WRONG[what])
    assert main(typed.split()) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith(f"runtime.train: {message}")
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["held"]


def test_the_run_folder_is_that_which_is_gone_on_from(tmp_path: Path) -> None:
    assert out_folder(Options()) == out_folder(Options(resume=str(tmp_path))) == Path("run")
    (tmp_path / "run.json").write_text("{}")
    assert out_folder(Options(resume=str(tmp_path))) == tmp_path
    assert out_folder(Options(resume=str(tmp_path), out="new")) == Path("new")


def test_torchruns_workers_say_it_once(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    for name, value in {"WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}.items():
        monkeypatch.setenv(name, value)
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        assert main(["--method", "none"]) == 2
    assert capfd.readouterr().err.count("unknown method 'none'") == 1


@pytest.fixture(scope="module")
def broken(case: Case, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Files that do not fit, by what is wrong with them."""
    folder = tmp_path_factory.mktemp("broken")
    found = {name: folder / name for name in ("missing", "damaged.npz", "bare.npz", "tiny.npz", "far", "few", "none")}
    found["damaged.npz"].write_bytes(case.path.read_bytes()[:900])
    graph = case.graph
    np.savez(found["bare.npz"], allow_pickle=False, indptr=graph.indptr, indices=graph.indices)
    tiny: dict[str, Any] = {"indptr": np.array([0, 1, 2]), "indices": np.array([1, 0]), "labels": np.array([0, 1])}
    tiny |= {f"{name}_mask": np.array([name == "train", name == "val"], np.uint8) for name in ("train", "val", "test")}
    np.savez(found["tiny.npz"], allow_pickle=False, x=np.ones((2, 3), np.float32), **tiny)
    other = small_graph(120, 360, 9)
    write_partition(found["far"], partition_graph(other, 2, "block"))
    write_partition(found["few"], partition_graph(load_graph(case.path), 3, "block"))
    found["few.npy"], found["short.npy"], found["weights.npz"] = (
        folder / name for name in ("few.npy", "short.npy", "weights.npz")
    )
    np.save(found["few.npy"], np.arange(120) % 3)
    np.save(found["short.npy"], np.arange(119) % 2)
    np.savez(found["weights.npz"], allow_pickle=False, **{"maps.0.weight": np.ones((2, 2), np.float32)})
    return found


UNFIT: dict[str, tuple[str, str]] = {
    "missing graph": ("--graph {missing}", "{missing}: cannot be read: No such file or directory"),
    "damaged graph": ("--graph {damaged.npz}", "{damaged.npz}: "),
    "no features": (
        "--graph {bare.npz}",
        "{bare.npz}: no features (--random-features D makes random ones) and no labels (--random-classes C makes",
    ),
    "workers": ("--graph {tiny.npz} --workers 3", "--workers: 3 is more than the 2 nodes of tiny; allowed: 1 to 2"),
    "another graph": ("--graph {case} --partition {far}", "{far}: made for 'small' (hash "),
    "another count": ("--graph {case} --partition {few}", "{few}: made for 3 workers, but --workers is 2"),
    "npy count": (
        "--graph {case} --partition {few.npy}",
        "{few.npy}: made for 3 workers, but --workers is 2",
    ),
    "npy graph": ("--graph {case} --partition {short.npy}", "{short.npy}: 119 owners of 120 nodes; each node of small"),
    "weights": ("--graph {case} --init-weights {weights.npz}", "{weights.npz}: lacks "),
    "no weights": ("--graph {case} --init-weights {missing}", "{missing}: cannot be read: No such file or directory"),
    "resume": (
        "--graph {case} --resume {missing}",
        "--resume: {missing} has no complete checkpoint; allowed: ",
    ),
    "dataset": ("--dataset cora_typo", "--dataset: "),
}


@pytest.mark.parametrize("what", UNFIT)
def test_a_file_that_does_not_fit_is_named(
    crew: Crew, case: Case, broken: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """All workers say the same line; the launcher prints the first one."""
    monkeypatch.chdir(tmp_path)
    typed, message = (_filled(text, broken | {"case": case.path}) for text in UNFIT[what])
    tasks = tasks_of([*typed.split(), "--out", str(tmp_path / "run")])
    assert tasks is not None
    content = crew.run(tasks[0].options.workers, refused, tasks[0].options)
    assert len(set(content)) == 1
    assert content[0].startswith(message)
    assert "\n" not in content[0]
    assert list(tmp_path.iterdir()) == []


def test_a_run_is_never_written_over_unasked(
    crew: Crew, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    words = [*LONG, "--graph", str(case.path), "--iterations", "2", "--quiet", "--workers", "1"]
    crew.run(1, worked, words, str(tmp_path))
    before = {path: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()}
    code, _, err = Shell(tmp_path, *words).end()
    assert (code, err) == (0, "runtime.train: run holds a run already: this one goes into run-2\n")
    assert json.loads((tmp_path / "run-2" / "run.json").read_text())["finished"]
    monkeypatch.chdir(tmp_path)
    assert main([*words, "--out", "run"]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("runtime.train: --out: run: holds a run already; allowed: another folder, --overwrite")
    assert err.count("\n") == 1
    assert {path: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.is_file()} == before
    crew.run(1, worked, [*words, "--out", "run", "--overwrite", "--seed", "9"], str(tmp_path))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["seed"] == 9
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run-2"]


def _filled(text: str, paths: dict[str, Path]) -> str:
    return re.sub(r"\{(.*?)\}", lambda found: str(paths[found[1]]), text)


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is available")
def test_cuda_without_cuda() -> None:
    with pytest.raises(GcnsimError, match=r"^--device: cuda is not available here .*; allowed: cpu$"):
        device_of(Options(device="cuda"), Place(0, 2, 0, 2, True))


@pytest.mark.parametrize(
    ("gpus", "launched", "local", "own"),
    [(2, True, 2, False), (1, True, 1, False), (1, False, 4, True), (4, False, 4, False)],
)
def test_a_worker_has_a_gpu_for_itself(
    gpus: int, launched: bool, local: int, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    assert check_gpus(Place(0, local, 0, local, launched)) is own


@pytest.mark.parametrize(("gpus", "launched"), [(1, True), (2, False)])
def test_there_is_a_gpu_for_each_worker(gpus: int, launched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    text = rf"^--workers: 3 on this server, which has {gpus} GPUs?; allowed: 1 to {gpus}$"
    with pytest.raises(ScenarioError, match=text):
        check_gpus(Place(0, 3, 0, 3, launched))


def test_workers_do_not_share_a_gpu_but_may_share_one_in_slices() -> None:
    refuse_shared_gpus([b"GPU-1", b"", b"", b"GPU-2"])
    with pytest.raises(ScenarioError, match=r"^--device: workers 1 and 3 were given the same GPU; allowed: one for"):
        refuse_shared_gpus([b"GPU-1", b"GPU-2", b"", b"GPU-2"])


WITHOUT_TORCH = """
import sys
from runtime.train.__main__ import main
code = main(sys.argv[1:])
sys.exit("torch was imported" if "torch" in sys.modules else code)
"""


def helped(option: str) -> str:
    """What a parent without torch prints of its options."""
    found = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, option], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stderr == ""
    return found.stdout


def test_help_has_groups_an_example_and_at_most_50_options_the_rest_on_request() -> None:
    first, every = helped("--help"), helped("--help-all")
    titles = ["Data", "Model and training", "Method", "Workers", "Record and output"]
    assert re.findall(r"^(\S.*):$", first, re.MULTILINE) == titles == re.findall(r"^(\S.*):$", every, re.MULTILINE)
    assert "python -m runtime.train --method psc-gcn --tau 2 --epsilon 0.1 --workers 2" in first
    names = {field.name for field in fields(Options)} - {"knobs"}
    names |= {knob.name for method in METHODS.values() for knob in method.knobs()}
    options = re.compile(r"^  (?:-h, )?(--[a-z][a-z-]*)", re.MULTILINE)
    listed = options.findall(first)
    assert len(listed) <= 50
    rest = {flag(name) for name in names} - set(listed)
    assert f"{len(rest)} more options: --help-all" in first
    assert {flag(name) for name in names} <= set(options.findall(every))
    assert "more options" not in every


RESULTS = ("method", "workers", "iterations", "test_accuracy", "val_accuracy", "final_loss", "cache_hit_rate")
TIMES = ("iteration_s", "compute_s", "wait_s", "transfer_s", "sampling_s", "bytes_sent", "seconds")
LONG = ["--workers", "2", "--iterations", "12", "--hidden", "8", "--dropout", "0", "--threads", "1"]


def test_what_is_printed_and_written(crew: Crew, case: Case, tmp_path: Path) -> None:
    """Two runs: with everything on, its parent without torch; and from its first weights and owners, quiet."""
    graph = load_graph(case.path)
    np.save(tmp_path / "owners.npy", partition_graph(graph, 2, "metis").owner)
    first = [*LONG, "--graph", str(case.path), "--json", "--json-log", "--loss-log", "a.csv", "--save-init", "init.npz"]
    knobs = ["--method", "psc-gcn", "--tau", "1", "--cache", "20%", "--epsilon", "1"]
    run = Shell(tmp_path, *first, *knobs, command=[sys.executable, "-c", WITHOUT_TORCH])
    code, out, err = run.end()
    assert code == 0, err
    _check_json(out, err)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "init.npz", "owners.npy", "run"]

    second = [*LONG, "--graph", str(case.path), "--init-weights", "init.npz", "--partition", "owners.npy", "--quiet"]
    second += ["--out", "second", *knobs, "--seed", "7", "--loss-log", "b.csv"]
    (out, seen), _ = crew.run(2, seen_on_a_terminal, second, str(tmp_path))
    assert out.startswith("psc-gcn: 12 iterations on 2 workers in ")
    assert all(title in out for title in ("test accuracy", "final loss", "cache hit rate", "iteration (mean)"))
    assert seen == "", "nothing on standard error"
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes(), "the same weights, the same owners"
    losses = list(csv.reader((tmp_path / "a.csv").read_text(encoding="utf-8").splitlines()))
    assert losses[0] == ["iteration", "loss"]
    assert [int(t) for t, _ in losses[1:]] == list(range(12))
    assert all(repr(float(loss)) == loss for _, loss in losses[1:]), "every digit"


def test_a_terminal_sees_a_live_line_and_no_record_leaves_no_file(crew: Crew, case: Case, tmp_path: Path) -> None:
    words = [*LONG, "--graph", str(case.path), "--no-record"]
    (out, seen), (_, nothing) = crew.run(2, seen_on_a_terminal, words, str(tmp_path))
    assert nothing == ""
    assert "iteration 12/12, 0:00 left, loss " in seen
    assert seen.endswith("\x1b[2K"), "wiped at the end"
    assert out.startswith("full-graph: 12 iterations on 2 workers in ")
    assert list(tmp_path.iterdir()) == []


def _check_json(out: str, err: str) -> None:
    assert out.count("\n") == 1
    final = json.loads(out)
    assert (final["method"], final["workers"], final["iterations"]) == ("psc-gcn", 2, 12)
    assert 0 < final["cache_hit_rate"] < 1
    assert all(final[key] is not None for key in (*RESULTS, *TIMES))
    content = [json.loads(line) for line in err.splitlines()]
    assert [row["iteration"] for row in content] == list(range(12))
    assert content[-1]["loss"] == final["final_loss"]
    assert content[-1]["val_accuracy"] is not None


def test_what_loading_left_out_of_a_graph_is_noted(crew: Crew, tmp_path: Path) -> None:
    lines = [f"{k},{k % 40},0.5,{(k * 7 + 1) % 40}" for k in range(80)]
    (tmp_path / "w.csv").write_text("\n".join(["id,source,weight,target", *lines, "80,1,1,1", ""]))
    words = "--graph w.csv --random-features 4 --random-classes 2 --iterations 1 --workers 1 --no-record"
    ((_, err, _),) = crew.run(1, told, words.split(), str(tmp_path))
    left_out, split = err.splitlines()
    assert left_out == "note: w: dropped 1 self-loop, dropped 40 duplicates, ignored: id, weight"
    assert split.startswith("note: w: no split in the file: 60 % train, ")
