"""A resumed run is told nothing twice: what its record says holds, and whatever contradicts it is named at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import FileError, ScenarioError
from runtime.options import Options
from runtime.train.earlier_run import home
from runtime.train.tasks import tasks_of
from tests.gcnsim.evidence.conftest import run_document

KNOBS: dict[str, Any] = {"tau": 1, "epsilon": 0.3, "cache": "30%", "sampler": "vr", "refresh": 20}
MADE = Options(
    method="psc-gcn",
    knobs=KNOBS,
    graph="g.npz",
    workers=3,
    iterations=50,
    hidden=64,
    layers=3,
    lr=0.02,
    threads=1,
    bias=False,
    checkpoint_every=10,
    loss_log="losses.csv",
    out="elsewhere",
    overwrite=True,
    quiet=True,
    save_init="first.npz",
    aggregator="numba",
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run with options of its own."""
    folder = tmp_path / "run"
    (folder / "checkpoints" / "000010").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(run_document(MADE)), encoding="utf-8")
    return folder


def resumed(run: Path, *words: str) -> Options:
    (task,) = tasks_of(["--resume", str(run), *words]) or ()
    return task.options


def test_every_option_that_is_not_about_one_start_comes_from_the_run(run: Path) -> None:
    options = resumed(run)
    for name in ("method", "graph", "workers", "iterations", "hidden", "layers", "lr", "bias", "threads", "loss_log"):
        assert getattr(options, name) == getattr(MADE, name)
    assert (options.checkpoint_every, options.aggregator) == (10, "numba")
    assert (options.out, options.overwrite, options.quiet, options.save_init) == (None, False, False, None)
    assert {name: options.asdict()["knobs"][name] for name in KNOBS} == KNOBS


def test_a_checkpoint_or_their_folder_names_the_run_too(run: Path, tmp_path: Path) -> None:
    assert home(str(run / "checkpoints")) == home(str(run / "checkpoints" / "000010")) == run
    assert resumed(run / "checkpoints" / "000010").hidden == 64
    assert home(str(tmp_path)) is None
    assert resumed(tmp_path).hidden == Options().hidden, "without a record, the options count as they are typed"


def test_what_may_change_is_taken_as_typed_and_equal_values_in_other_words_are_no_change(run: Path) -> None:
    words = ("--iterations", "80", "--lr", "0.5", "--epsilon", "30%", "--cache", "0.3", "--method", "PSC_GCN")
    options = resumed(run, *words, "--aggregator", "auto", "--eval-every", "7")
    assert (options.iterations, options.lr, options.eval_every) == (80, 0.5, 7)
    assert options.knobs["epsilon"] == 0.3
    assert options.aggregator == "auto", "the checkpoint says which"


def test_all_that_contradicts_the_run_is_named_at_once(run: Path) -> None:
    words = ("--hidden", "32", "--epsilon", "0.1", "--bias", "--layers", "3", "--seed", "4")
    with pytest.raises(ScenarioError) as caught:
        resumed(run, *words)
    text = str(caught.value)
    assert text.startswith(f"--resume: {run} was made with ")
    assert text.endswith("; allowed: its options, which need not be given")
    seed_and_width = "--seed 0 (given: --seed 4), --hidden 64 (given: --hidden 32)"
    assert f"{seed_and_width}, --no-bias (given: --bias), --epsilon 0.3 (given: --epsilon 0.1); " in text
    with pytest.raises(ScenarioError, match=r"--method psc-gcn \(given: --method pipegcn\), --hidden 64 \(given"):
        resumed(run, "--method", "pipegcn", "--hidden", "1")


def test_a_damaged_record_is_named(run: Path) -> None:
    (run / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(FileError, match=rf"^--resume: {run}/run\.json: "):
        resumed(run)
