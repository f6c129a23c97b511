"""However a run ends, it says why, leaves no process behind, and goes on from what it saved: real processes."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.record import read_run
from runtime.train.checkpoint import read_checkpoint
from runtime.train.earlier_run import STATE, latest
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import ran, told, worked
from tests.runtime.shell import TORCHRUN, TRAIN, Shell, gone, lines, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")

SABOTAGE = [sys.executable, str(Path(__file__).parents[1] / "sabotage.py")]
LONG = 100_000
"""Iterations that nobody waits for."""

CONTINUE = "runtime.train: continue it with: python -m runtime.train --resume run\n"

Start = Callable[..., Shell]


def words_of(case: Case, iterations: int) -> list[str]:
    """What all of these runs have in common."""
    usual = "--loss-log loss.csv --threads 1 --partition-method random --hidden 6 --dropout 0.2 --eval-every 50"
    return ["--graph", str(case.path), "--iterations", str(iterations), *usual.split(), "--no-record"]


@pytest.fixture
def start(case: Case, tmp_path: Path) -> Iterator[Start]:
    """Start a run of two workers on the small graph, in `tmp_path`; nothing of it is left at the end."""
    runs: list[Shell] = []

    def begin(*arguments: str, iterations: int = LONG, command: list[str] | None = None) -> Shell:
        run = Shell(tmp_path, *arguments, *words_of(case, iterations), command=command)
        runs.append(run)
        return run

    yield begin
    for run in runs:
        left = [*run.workers(), run.process.pid]
        run.process.kill()
        run.process.communicate()
        until(lambda pids=left: all(gone(pid) for pid in pids), "all processes are gone")  # type: ignore[misc]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where runs log their losses."""
    return tmp_path / "loss.csv"


def reached(log: Path, iterations: int) -> None:
    """Return when the log has grown to `iterations`."""
    until(lambda: lines(log) > iterations, f"{iterations} iterations are done")


THREADS = {
    "rows": "runtime.exchange.exchange:Exchange._forward",
    "gradients": "runtime.exchange.exchange:Exchange._backward",
    "draws": "gcnsim.workload.draws:Draws.edges",
    "refreshes": "runtime.methods.psc_gcn.worker:sampling_rule",
}


@pytest.mark.parametrize(
    "where", [name if name == "refreshes" else pytest.param(name, marks=pytest.mark.slow) for name in THREADS]
)
def test_an_error_in_a_helper_thread_ends_the_run_with_its_reason(start: Start, where: str) -> None:
    knobs = ["--method", "psc-gcn", "--tau", "2", "--epsilon", "0.5", "--refresh", "2"]
    code, _, err = start(*knobs, command=[*SABOTAGE, THREADS[where]]).end()
    assert code == 1
    name = THREADS[where].rpartition(":")[2].rpartition(".")[2]
    assert err == f"runtime.train: worker 1: ArithmeticError: {name} is broken\n"


PSC = {"tau": 2, "epsilon": 0.5, "refresh": 3}
OPTIONS = ["--method", "psc-gcn", "--tau", "2", "--epsilon", "0.5", "--refresh", "3", "--checkpoint-every", "20"]
DONE = 150


@pytest.fixture
def uninterrupted(crew: Crew, options: MakeOptions) -> Callable[[int], list[str]]:
    """The loss log of a run that nobody interrupted, made by other processes."""

    def log(done: int) -> list[str]:
        requested = options("psc-gcn", PSC, workers=2, iterations=done, dropout=0.2, dtype="float32", layers=2, lr=0.01)
        losses = crew.run(2, ran, requested)[0].losses
        return ["iteration,loss", *(f"{t},{loss!r}" for t, loss in losses.items())]

    return log


def test_asked_to_stop_it_saves_and_goes_on_as_if_nothing_had_happened(
    start: Start, log: Path, crew: Crew, case: Case, tmp_path: Path, uninterrupted: Callable[[int], list[str]]
) -> None:
    """By a scheduler's SIGTERM, then by Ctrl-C, then not at all; the stops are no multiples of the saving."""
    first = start(*OPTIONS[:-2], "--checkpoint-every", "100000", iterations=DONE)
    reached(log, 33)
    first.process.send_signal(signal.SIGTERM)
    code, out, err = first.end()
    assert (code, err) == (143, f"runtime.train: stopped by SIGTERM\n{CONTINUE}")
    assert out.startswith("psc-gcn: ")
    saved = latest(tmp_path / "run" / "checkpoints")
    assert saved is not None
    assert lines(log) == 1 + int(saved.name)
    assert 33 <= int(saved.name) < DONE
    assert not read_run(tmp_path / "run").record.finished

    again = Shell(tmp_path, "--resume", "run")
    until(lambda: lines(log) > int(saved.name) + 20, "more iterations are done")
    again.process.send_signal(signal.SIGINT)
    code, _, err = again.end()
    assert (code, err) == (130, f"runtime.train: stopped by SIGINT\n{CONTINUE}")
    stopped = latest(tmp_path / "run" / "checkpoints")
    assert stopped is not None
    assert lines(log) == 1 + int(stopped.name) < 1 + DONE

    out, _ = crew.run(2, worked, ["--resume", "run"], str(tmp_path))
    assert out.startswith(f"psc-gcn: {DONE} iterations on 2 workers in ")
    assert log.read_text(encoding="utf-8").splitlines() == uninterrupted(DONE)
    run = read_run(tmp_path / "run")
    assert run.record.finished
    assert [row.iteration for row in run.iterations] == list(range(DONE))


def test_a_loss_that_is_no_number_stops_the_run_and_leaves_a_good_checkpoint(
    crew: Crew, case: Case, tmp_path: Path, log: Path
) -> None:
    words = "--workers 2 --optimizer sgd --lr 1e6 --weight-decay 1e4 --checkpoint-every 1 --layers 3"
    (out, _, why), (_, _, other) = crew.run(2, told, [*words.split(), *words_of(case, LONG)], str(tmp_path))
    assert (out, other) == ("", why)
    text = re.fullmatch(
        r"iteration (\d+): the loss is (nan|inf); first in the output of layer \d, worker [01], inner node \d+; "
        r"the last good checkpoint is (.*)",
        why,
    )
    assert text is not None, why
    path = latest(tmp_path / "run" / "checkpoints")
    assert path is not None
    assert text[3] == str(path.relative_to(tmp_path))
    assert int(path.name) == int(text[1]) - 1, "the weights of that iteration gave the loss, so those before it"
    assert lines(log) == 1 + int(text[1])
    state = json.loads((path / STATE).read_text(encoding="utf-8"))
    assert read_checkpoint(path, 1, state["identity"]).done == int(path.name), "it can be read"


@pytest.mark.slow
def test_torchrun_starts_again_from_the_last_checkpoint(
    start: Start, log: Path, tmp_path: Path, uninterrupted: Callable[[int], list[str]]
) -> None:
    command = [*TORCHRUN, "--max-restarts=1", *TRAIN[1:]]
    run = start(*OPTIONS, command=command, iterations=DONE)
    reached(log, 41)
    os.kill(run.worker(1), signal.SIGKILL)
    code, out, err = run.end()
    assert code == 0, err
    assert out.startswith(f"psc-gcn: {DONE} iterations on 2 workers in ")
    assert log.read_text(encoding="utf-8").splitlines() == uninterrupted(DONE)
    begun = [row.iteration for row in read_run(tmp_path / "run").iterations]
    assert begun == list(range(DONE))
