"""What is checked and planned before training."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.resources import Resources
from runtime.aggregate import Matrix, PlainMatrix
from runtime.data import DatasetCache
from runtime.launch import Place
from runtime.options import Options
from runtime.record import read_run
from runtime.record.folder_lock import lock_folder
from runtime.train import preflight
from runtime.train import setup as quickest_module
from runtime.train.checkpoint import with_saved_kernels
from runtime.train.preflight import check_outputs, free_folder, quota_warning, threads_of
from runtime.train.setup import KERNELS, quickest, with_kernels
from runtime.train.tasks import Entry, EntryError, naming, read_plan, tasks_of
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import ran, told, worked


def test_a_trace_may_go_into_the_run_folder_that_will_be_made(tmp_path: Path) -> None:
    out = tmp_path / "newrun"
    check_outputs(Options(out=str(out), save_trace=str(out / "access.trace")))
    check_outputs(Options(out=str(out / "deep"), save_trace=str(out / "deep" / "access.trace")))
    assert not out.exists()


@pytest.mark.parametrize("record", [True, False])
def test_a_trace_in_no_folder_is_refused(tmp_path: Path, record: bool) -> None:
    inside = tmp_path / ("other" if record else "newrun") / "access.trace"
    with pytest.raises(FileError, match=r"--save-trace: .*access\.trace: cannot be written: No such file"):
        check_outputs(Options(out=str(tmp_path / "newrun"), save_trace=str(inside), record=record))


@pytest.mark.parametrize(
    ("quota", "workers", "count", "threads", "warned"),
    [
        (4.0, 1, None, 4, False),
        (4.5, 2, None, 2, False),
        (0.5, 1, None, 1, True),
        (4.0, 1, 8, 8, True),
        (4.0, 6, None, 1, True),
        (None, 6, 64, 64, False),
    ],
)
def test_threads_are_what_a_container_leaves(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, workers: int, count: int | None, threads: int, warned: bool
) -> None:
    usable = Resources(4 if quota is None else max(1, int(quota)), quota, None)
    monkeypatch.setattr("gcnsim.core.processes.usable_resources", lambda: usable)
    monkeypatch.setattr(preflight, "usable_resources", lambda: usable)
    options, place = Options(threads=count), Place(0, workers, 0, workers, True)
    assert threads_of(options, place) == threads
    line = quota_warning(options, place)
    assert (line is not None) == warned
    if line:
        assert line.startswith(
            f"the CPU quota of this container is {quota:g} CPUs, less than {workers * threads} thread"
        )


def made_run(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"schema": "gcnsim.run/1"}')
    return folder


def test_a_folder_with_a_run_is_refused_in_one_line(tmp_path: Path) -> None:
    out = made_run(tmp_path / "mine")
    with pytest.raises(FileError) as caught:
        check_outputs(Options(out=str(out)))
    assert str(caught.value) == (
        f"--out: {out}: holds a run already; allowed: another folder, --overwrite (replaces that run) or "
        f"--resume {out} (continues it)"
    )
    with pytest.raises(FileError, match="holds a run already"):
        check_outputs(Options(out=str(out), record=False, checkpoint_every=5))


def test_of_a_run_that_is_still_written_the_process_is_named(tmp_path: Path) -> None:
    out = made_run(tmp_path / "mine")
    handle = lock_folder(out)
    assert handle is not None
    with pytest.raises(
        FileError, match=rf"^--out: {out}: is being written by process {os.getpid()}; allowed: another folder$"
    ):
        check_outputs(Options(out=str(out)))
    os.close(handle)
    for _ in range(2):
        with pytest.raises(FileError, match="holds a run already"):
            check_outputs(Options(out=str(out)))


def test_a_run_is_written_over_as_asked_where_it_goes_on_and_where_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = made_run(tmp_path / "mine")
    check_outputs(Options(out=str(out), overwrite=True))
    check_outputs(Options(out=str(out), resume=str(out)))
    check_outputs(Options(out=str(out), resume=str(out / "checkpoints" / "000010")))
    check_outputs(Options(resume=str(out)))
    check_outputs(Options(out=str(out), record=False))
    with pytest.raises(FileError, match=rf"{out}: holds a run already"):
        check_outputs(Options(out=str(out), resume=str(made_run(tmp_path / "other"))))
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    check_outputs(Options(out=str(out)))


def test_the_default_folder_is_the_first_that_holds_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert free_folder(Options()) is None
    (tmp_path / "run").mkdir()
    assert free_folder(Options()) is None, "an empty folder is free"
    (tmp_path / "run").rmdir()
    made_run(tmp_path / "run")
    assert free_folder(Options()) == Path("run-2")
    made_run(tmp_path / "run-2")
    (tmp_path / "run-3").write_text("a file")
    assert free_folder(Options()) == Path("run-4")
    for own in (Options(out="run"), Options(overwrite=True), Options(record=False), Options(resume="run")):
        assert free_folder(own) is None


COMMON = ("--iterations", "8", "--hidden", "16", "--quiet", "--threads", "1", "--workers", "2")
RUNS = {
    "sampled": ("--method", "psc-gcn", "--tau", "2", "--epsilon", "0.3", "--cache", "30%"),
    "stale": ("--method", "pipegcn", "--seed", "3"),
    "narrow": ("--feature-dim", "16", "--norm", "layer"),
}


def written(folder: Path, runs: dict[str, tuple[str, ...]]) -> Path:
    """A plan file of `runs` by folder."""
    path = folder / "plan.yaml"
    path.write_text(json.dumps([{"out": out, "args": list(words)} for out, words in runs.items()]), encoding="utf-8")
    return path


def losses(folder: Path) -> list[str]:
    """As written."""
    return [line.split(",")[2] for line in (folder / "iterations.csv").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("compared", ["stale", pytest.param("sampled narrow", marks=pytest.mark.slow)])
def test_a_run_of_a_plan_is_the_run_alone(crew: Crew, compared: str, tmp_path: Path) -> None:
    written(tmp_path, RUNS)
    out, _ = crew.run(2, worked, [*COMMON, "--plan", "plan.yaml", "--json"], str(tmp_path))
    finals = [json.loads(line) for line in out.splitlines()]
    assert [(final["out"], final["workers"], final["iterations"]) for final in finals] == [(out, 2, 8) for out in RUNS]
    for out in compared.split():
        (task,) = tasks_of([*COMMON, *RUNS[out], "--out", str(tmp_path / "alone" / out)]) or ()
        crew.run(2, ran, task.options)
        assert losses(tmp_path / out) == losses(tmp_path / "alone" / out)
        assert len(losses(tmp_path / out)) == 9


def test_a_failing_entry_ends_the_plan_and_is_named(crew: Crew, tmp_path: Path) -> None:
    written(tmp_path, {"first": (), "second": ("--graph", "absent.npz"), "third": ()})
    (out, _, why), _ = crew.run(2, told, [*COMMON, "--plan", "plan.yaml"], str(tmp_path))
    assert out.startswith("first: 8 iterations of ")
    assert out.count("\n") == 1
    assert why.startswith("plan.yaml: entry 2 (second): absent.npz: ")
    assert "\n" not in why
    assert (tmp_path / "first" / "run.json").is_file()
    assert not (tmp_path / "third").exists()


def test_entries_are_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text("- {out: a, args: [--tau, 2, --epsilon, 0.1]}\n- out: b\n", encoding="utf-8")
    assert read_plan(str(path)) == (
        Entry(f"{path}: entry 1 (a)", "a", ("--tau", "2", "--epsilon", "0.1")),
        Entry(f"{path}: entry 2 (b)", "b", ()),
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a list of runs"),
        ("out: a", "not a list of runs"),
        ("- a", "entry 1: is not a mapping; allowed: out, args"),
        ("- {args: []}", "entry 1: has args; allowed: out, args"),
        ("- {out: a, arg: []}", "entry 1: has out, arg; allowed: out, args"),
        ("- {out: 3}", "entry 1: out is 3; allowed: a folder's path"),
        ("- {out: a, args: --tau 2}", r"entry 1 \(a\): args is not a list of strings"),
        ("- {out: a, args: [true]}", r"entry 1 \(a\): args is not a list of strings"),
        ("- {out: a}\n- {out: a}", r"entry 2 \(a\): this folder is already that of .*entry 1"),
    ],
)
def test_a_wrong_plan_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=words) as caught:
        read_plan(str(path))
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tau", "2"), "--tau: full-graph has no tau"),
        (("--metod", "x"), "No such option '--metod'"),
        (("--workers", "3"), "--workers: 3"),
        (("--plan", "other.yaml"), "args: --help and --plan are for the whole command"),
    ],
)
def test_wrong_arguments_of_an_entry_are_refused_before_anything_starts(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    path = written(tmp_path, {"a": (), "b": arguments})
    with pytest.raises(ScenarioError, match=words) as caught:
        tasks_of(["--plan", str(path)])
    assert str(caught.value).startswith(f"{path}: entry 2 (b): ")


def test_an_entrys_arguments_win_over_the_commands(tmp_path: Path) -> None:
    path = written(tmp_path, {"a": ("--lr", "0.5"), "b": ()})
    tasks = tasks_of(["--lr", "0.1", "--plan", str(path), "--out", "ignored"])
    assert tasks is not None
    assert [(task.options.lr, task.options.out) for task in tasks] == [(0.5, "a"), (0.1, "b")]


def test_errors_are_named() -> None:
    with pytest.raises(ScenarioError, match=r"^here: --lr: no$"), naming("here"):
        raise ScenarioError("--lr: no")
    with pytest.raises(EntryError, match=r"^here: ValueError: no$"), naming("here"):
        raise ValueError("no")
    with pytest.raises(ValueError, match=r"^no$"), naming(None):
        raise ValueError("no")


def test_data_is_read_once_for_runs_that_ask_for_the_same() -> None:
    shelf = DatasetCache()
    first = shelf.dataset(Options(seed=1, hidden=4))
    assert shelf.dataset(Options(seed=2, hidden=8)) is first
    narrow = shelf.dataset(Options(feature_dim=4))
    assert narrow is not first
    assert narrow.features.width == 4
    drawn = shelf.dataset(Options(random_features=8, seed=1))
    assert shelf.dataset(Options(random_features=8, seed=2)) is not drawn


class Clock:
    """Shows what it is told, so that no other work on this machine decides."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


def slow(seconds: float, seen: list[bool], clock: Clock) -> type[Matrix]:
    """Sums that take `seconds`, and note whether they were given a weight per entry."""

    class Slow(PlainMatrix):
        def multiply(self, x: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
            clock.now += seconds
            seen.append(values is not None)
            super().multiply(x, out, add=add, values=values)

    return Slow


Kinds = Callable[[dict[str, float]], list[bool]]


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> Kinds:
    """Sums that take so many seconds, in place of those of these names; the others cannot be imported."""

    def put(seconds: dict[str, float]) -> list[bool]:
        seen: list[bool] = []
        clock = Clock()

        def kind(name: str) -> type[Matrix]:
            if name not in seconds:
                raise ScenarioError("not installed")
            return slow(seconds[name], seen, clock)

        monkeypatch.setattr(quickest_module, "matrix_kind", kind)
        monkeypatch.setattr(quickest_module, "time", clock)
        return seen

    return put


@pytest.mark.parametrize("quick", ["plain", "numba", "dgl"])
def test_the_quickest_is_taken(case: Case, options: MakeOptions, kinds: Kinds, quick: str) -> None:
    seen = kinds({name: 1.0 if name == quick else 2.0 for name in KERNELS})
    (part,) = case.parts(1)
    found = with_kernels(options(workers=1, aggregator="auto"), part, "symmetric", torch.float64, None)
    assert found.aggregator == quick
    assert not any(seen), "a sum over all neighbours needs no weight per entry"


def test_what_is_not_installed_is_no_candidate(case: Case, options: MakeOptions, kinds: Kinds) -> None:
    kinds({"plain": 0.01})
    assert quickest(options(workers=1), case.parts(1)[0], "symmetric", torch.float64) == "plain"


@pytest.mark.parametrize(
    ("method", "knobs", "fields", "weighed"),
    [
        ("psc-gcn", {"epsilon": 0.3}, {}, True),
        ("psc-gcn", {"epsilon": 1.0}, {}, False),
        ("psc-gcn", {"epsilon": 0.3, "estimator": "mean"}, {}, False),
        ("full-graph", {}, {"model": "gat"}, True),
    ],
    ids=["drawn", "whole", "mean", "gat"],
)
def test_sums_are_timed_as_the_run_takes_them(
    case: Case,
    options: MakeOptions,
    kinds: Kinds,
    method: str,
    knobs: dict[str, Any],
    fields: dict[str, Any],
    weighed: bool,
) -> None:
    seen = kinds({"plain": 0.0})
    quickest(options(method, knobs, workers=1, **fields), case.parts(1)[0], "symmetric", torch.float64)
    assert seen == [weighed] * len(seen)
    assert seen


def test_kernels_that_are_named_are_not_measured(case: Case, kinds: Kinds) -> None:
    seen = kinds({"plain": 0.0})
    for name in KERNELS:
        options = Options(aggregator=name)
        assert with_kernels(options, case.parts(1)[0], "symmetric", torch.float32, None) is options
    on_gpus = Options(aggregator="auto", device="cuda")
    assert with_kernels(on_gpus, case.parts(1)[0], "symmetric", torch.float32, None).aggregator == "plain"
    assert not seen


def test_a_run_says_what_was_chosen_and_goes_on_with_it(crew: Crew, options: MakeOptions, tmp_path: Path) -> None:
    fields: dict[str, Any] = {"workers": 2, "record": True, "checkpoint_every": 2}
    crew.run(2, ran, options(iterations=2, aggregator="auto", out=str(tmp_path / "auto"), **fields))
    assert read_run(tmp_path / "auto").record.options["aggregator"] in KERNELS
    for name in ("plain", "numba"):
        begun = tmp_path / name
        crew.run(2, ran, options(iterations=2, aggregator=name, out=str(begun), **fields))
        more = options(iterations=4, aggregator="auto", resume=str(begun), out=str(begun), **fields)
        crew.run(2, ran, with_saved_kernels(more))
        record = read_run(begun).record
        assert (record.options["aggregator"], record.iterations) == (name, 4)
