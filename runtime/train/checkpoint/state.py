"""A session's checkpoints: where to go on from, what is saved and restored, and that all replicas agree."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from torch import Tensor

from gcnsim.errors import FileError, ScenarioError
from gcnsim.ids import Iteration
from runtime.options import Options
from runtime.record import RunFolder
from runtime.record.run_folder import ITERATIONS
from runtime.train.checkpoint.files import (
    Checkpoint,
    complete,
    forget,
    latest,
    optimizer_tensors,
    read_checkpoint,
    restore_optimizer,
    write_part,
)
from runtime.train.evaluate import Scores
from runtime.train.loop import DivergedError
from runtime.train.preflight import writes_folder
from runtime.train.setup import WorkerState

if TYPE_CHECKING:
    from runtime.train.session import Session

CHECKPOINTS: Final = "checkpoints"
_METHOD, _WEIGHT = "method.", "weight."


def restarted() -> bool:
    """Whether torchrun started the workers again after one of them failed."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") or "0") > 0


def starting_point(options: Options, out: Path) -> Path | None:
    """The checkpoint to go on from: the last one of this very run after a restart, else that which was asked for.

    Raises FileError when what was asked for holds none.
    """
    own = latest(out / CHECKPOINTS) if restarted() and writes_folder(options) else None
    if own is not None or options.resume is None:
        return own
    asked = Path(options.resume)
    place = asked if (asked / "state.json").is_file() else latest(asked / CHECKPOINTS) or latest(asked)
    if place is None:
        raise FileError(f"--resume: {asked} has no complete checkpoint; allowed: the folder of a run that saved one")
    return place


def resume(session: Session, place: Path | None) -> None:
    """Put `session` where the checkpoint in `place` was; None: at its beginning. All workers together.

    Raises FileError for a checkpoint that is damaged, of another run, or not the same on all workers, and ScenarioError
    when more iterations are done than are asked for.
    """
    worker = session.worker
    found = None if place is None else read_checkpoint(place, worker.place.rank, worker.identity())
    everywhere = [int(done[0]) for done in worker.by_rank(np.array([0 if found is None else found.done]))]
    for rank, done in enumerate(everywhere):
        if done != everywhere[0]:
            raise FileError(
                f"{session.out}: worker 0 finds a checkpoint after {everywhere[0]} iterations, worker {rank} after "
                f"{done}; all workers must share the folder"
            )
    if found is None or place is None:
        return
    if found.done > session.options.iterations:
        raise ScenarioError(
            f"--iterations: {session.options.iterations}, but {found.done} are done in {place}; "
            f"allowed: {found.done} or more"
        )
    _restore(session, place, found)


def _restore(session: Session, place: Path, found: Checkpoint) -> None:
    worker = session.worker
    with torch.no_grad():
        for name, weight in worker.network.named_parameters():
            weight.copy_(found.shared[f"{_WEIGHT}{name}"])
    restore_optimizer(worker.trainer.optimizer, session.names, found.shared)
    rows = {name.removeprefix(_METHOD): rows for name, rows in found.own.items() if name.startswith(_METHOD)}
    worker.method.restore(found.done, rows)
    session.begun = session.done = found.done
    session.best, session.scores = Scores(*found.notes["best"]), Scores(*found.notes["scores"])
    # What starting again and drawing again has sent is no part of the run.
    session.sent_before = found.own["sent"].numpy() - session.sent()
    session.drawn = int(found.own["drawn"][0]), int(found.own["drawn"][1])
    if session.trace is not None:
        kept = len(found.own["trace.edges"]) if "trace.edges" in found.own else 0
        if kept == found.done or (kept and session.options.save_trace is None):
            session.trace.restore(found.own["trace.bits"].numpy(), found.own["trace.edges"].numpy())
        elif session.options.save_trace is not None:
            raise FileError(f"{place}: saved without --save-trace: the graphs of its {found.done} iterations are gone")
        else:
            session.trace = None
    home = place.parent.parent
    if home.resolve() == session.out.resolve():
        session.normed = list(found.notes["norms"])
    if session.first and (home / ITERATIONS).is_file():
        session.rows = list(RunFolder(home).earlier_iterations(found.done))


def save(session: Session) -> None:
    """Write the checkpoint after the iterations done so far; all workers together.

    Raises FileError when a file cannot be written, and what `same_replicas` and `refuse_bad_weights` do.
    """
    worker, done = session.worker, session.done
    same_replicas(worker)
    refuse_bad_weights(worker, done)
    session.keep_norms()
    folder = session.out / CHECKPOINTS
    own = {f"{_METHOD}{name}": tensor for name, tensor in worker.method.state().items()}
    own |= {"sent": torch.from_numpy(session.sent()), "drawn": torch.tensor(session.drawn)}
    if session.trace is not None:
        bits, edges = session.trace.state()
        own |= {"trace.bits": torch.from_numpy(bits), "trace.edges": torch.from_numpy(edges)}
    tensors = {f"own.{name}": tensor for name, tensor in own.items()}
    if session.first:
        tensors |= {f"shared.{name}": tensor for name, tensor in _shared(session).items()}
    digest = np.frombuffer(write_part(folder, done, worker.place.rank, tensors), np.uint8)
    parts = [part.tobytes() for part in worker.by_rank(digest)]
    if session.first:
        if session.folder is not None:
            session.folder.write_iterations(session.rows)
        notes = {"best": _listed(session.best), "scores": _listed(session.scores), "norms": session.normed}
        complete(folder, done, worker.identity(), notes, parts)
    session.saved.append(done)


def last_good(session: Session) -> str:
    """After a loss that is no number: forget the checkpoint of the weights that gave it; where the last good one is."""
    folder, saved = session.out / CHECKPOINTS, session.saved
    if saved and saved[-1] == session.done:
        saved.pop()
        if session.first:
            forget(folder, session.done)
    if session.folder is not None:
        session.folder.write_iterations(session.rows)
    if saved:
        return f"the last good checkpoint is {folder / f'{saved[-1]:06d}'}"
    if session.start is not None and session.done > session.begun:
        return f"the last good checkpoint is {session.start}"
    return "no good checkpoint was saved"


def refuse_bad_weights(worker: WorkerState, done: Iteration) -> None:
    """Raise DivergedError when the step of the iteration before `done` left weights that are not finite numbers."""
    for name, weight in worker.network.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise DivergedError(f"iteration {done - 1}: its step left values in {name} that are not finite numbers")


def same_replicas(worker: WorkerState) -> None:
    """Compare the weights of all workers bit for bit; raises RuntimeError when they differ."""
    digest = hashlib.sha256()
    for weight in worker.network.parameters():
        digest.update(weight.detach().cpu().numpy().tobytes())
    mine = np.frombuffer(digest.digest(), np.uint8)
    for rank, other in enumerate(worker.by_rank(mine)):
        if not np.array_equal(mine, other):
            raise RuntimeError(f"the weights of worker {rank} differ from those of worker {worker.place.rank}")


def _shared(session: Session) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {f"{_WEIGHT}{name}": weight for weight, name in session.names.items()}
    return weights | optimizer_tensors(session.worker.trainer.optimizer, session.names)


def _listed(scores: Scores) -> list[float | None]:
    return [scores.train, scores.val, scores.test]
