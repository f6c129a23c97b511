"""Plans: the same runs as alone, trained by the same workers; every mistake names its entry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcnsim.core.errors import FileError, ScenarioError
from runtime.data import DatasetCache
from runtime.options import Options
from runtime.train.tasks import Entry, EntryError, naming, read_plan, tasks_of
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import ran, told, worked

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
