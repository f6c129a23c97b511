"""What ranks of a test do with whole sessions: run, save, go on."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TextIO

import torch

import runtime.train.session
from gcnsim.core.errors import GcnsimError
from runtime.launch import Place, Watch
from runtime.launch.watch import PARENT
from runtime.options import Options
from runtime.train.loop import DivergedError
from runtime.train.session import Session, save
from runtime.train.tasks import tasks_of
from runtime.train.worker import FinalResults, work
from tests.runtime.jobs import ready_at


@dataclass(frozen=True)
class Ran:
    """One rank's session. losses: of this process's iterations, by number. weights: the bytes of all at the end."""

    begun: int
    losses: dict[int, float]
    weights: bytes
    drawn: tuple[int, int]


def ran(place: Place, options: Options) -> Ran:
    """A session from its beginning to its end, run folder included."""
    session = opened(place, options)
    session.run()
    ending = FinalResults(session, 0, 0)
    if place.rank == 0:
        ending.write(ending.summary())
    session.worker.method.close()
    losses = {row.iteration: row.loss or 0.0 for row in session.rows if row.iteration >= session.begun}
    return Ran(session.begun, losses, weights_of(session), session.drawn)


def ran_keeping(place: Place, options: Options, graphs: int) -> Ran:
    """The same, where a record keeps so many graphs."""
    usual, runtime.train.session.KEPT_GRAPHS = runtime.train.session.KEPT_GRAPHS, graphs
    try:
        return ran(place, options)
    finally:
        runtime.train.session.KEPT_GRAPHS = usual


def graphs_held(place: Place, options: Options) -> list[int]:
    """The iterations whose graphs a sampled session holds at its beginning."""
    session = opened(place, options)
    method: Any = session.worker.method
    method.close()
    return sorted(method._graphs)


def refused(place: Place, options: Options) -> str:
    """The message with which a session is refused or ended."""
    try:
        session = opened(place, options)
        session.run()
    except GcnsimError as error:
        return str(error)
    return "nothing was refused"


def at_odds(place: Place, options: Options, other: str) -> str:
    """As `refused`, with rank 1 told to go on from `other`."""
    return refused(place, replace(options, resume=other) if place.rank else options)


def one_bit_off(place: Place, options: Options) -> str:
    """What saving says when one bit of one weight differs on rank 1."""
    session = opened(place, options)
    session.run()
    if place.rank == 1:
        weight = next(session.worker.network.parameters())
        weight.detach().view(torch.int32).view(-1)[0] ^= 1
    try:
        save(session)
    except RuntimeError as error:
        return str(error)
    return "nobody noticed"


def spoilt(place: Place, options: Options, at: int, value: float) -> str:
    """What ends a run when a weight becomes `value` in the step of iteration `at`."""
    session = opened(place, options)
    step, done = session.worker.trainer.optimizer.step, [0]

    def spoiling() -> None:
        step()
        if done[0] == at:
            with torch.no_grad():
                next(session.worker.network.parameters()).view(-1)[0] = value
        done[0] += 1

    session.worker.trainer.optimizer.step = spoiling  # type: ignore[method-assign]
    try:
        session.run()
    except DivergedError as error:
        return str(error)
    return "nobody noticed"


def told(place: Place, words: Sequence[str], folder: str, terminal: TextIO | None = None) -> tuple[str, str, str]:
    """What a worker of `python -m runtime.train` with `words`, begun in `folder`, prints: on standard output, on
    standard error (a terminal, if one is given), and the user's error that ends it, if one does."""
    out, err, why = io.StringIO(), io.StringIO(), ""
    parent, ours = os.pipe()  # of the process that launches workers
    os.environ[PARENT] = str(parent)
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(terminal or err):
        try:
            assert work(tasks_of(words) or (), place) == 0
        except GcnsimError as error:
            why = str(error)
        finally:
            os.close(parent)
            os.close(ours)
    return out.getvalue(), err.getvalue(), why


def worked(place: Place, words: Sequence[str], folder: str, terminal: TextIO | None = None) -> str:
    """What a worker that trains to the end prints on standard output."""
    out, _, why = told(place, words, folder, terminal)
    assert not why, why
    return out


def seen_on_a_terminal(place: Place, words: Sequence[str], folder: str) -> tuple[str, str]:
    """What such a worker prints on standard output, and on a terminal in place of standard error."""
    master, slave = os.openpty()
    with open(slave, "w", encoding="utf-8") as terminal:
        out = worked(place, words, folder, terminal)
    os.set_blocking(master, False)
    seen = b""
    with contextlib.suppress(OSError):
        while piece := os.read(master, 4096):
            seen += piece
    os.close(master)
    return out, seen.decode()


def opened(place: Place, options: Options) -> Session:
    """A session at `place`."""
    return Session(ready_at(place, options), Watch(place))


def weights_of(session: Session) -> bytes:
    """The bytes of all weights."""
    return b"".join(weight.detach().cpu().numpy().tobytes() for weight in session.worker.network.parameters())
