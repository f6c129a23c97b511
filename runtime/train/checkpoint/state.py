"""A session's checkpoints: resuming, saving, restoring, and checking that all replicas are equal."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.ids import Iteration
from runtime.record import RunFolder
from runtime.record.run_folder import ITERATIONS
from runtime.train.checkpoint.files import (
    CHECKPOINTS,
    Checkpoint,
    complete,
    forget,
    optimizer_tensors,
    read_checkpoint,
    restore_optimizer,
    write_part,
)
from runtime.train.evaluate import Scores
from runtime.train.loop import DivergedError
from runtime.train.run_state import RunState
from runtime.train.setup import WorkerState

_METHOD, _WEIGHT = "method.", "weight."


def resume(run: RunState, folder: Path | None) -> None:
    """Restore `run` from the checkpoint in `folder`; None: start at the beginning. All workers call it together.

    Raises FileError for a checkpoint that is damaged, of another run, or different between workers, and ScenarioError
    if more iterations are done than requested.
    """
    worker = run.worker
    checkpoint = None if folder is None else read_checkpoint(folder, worker.place.rank, worker.identity())
    everywhere = [int(done[0]) for done in worker.by_rank(np.array([0 if checkpoint is None else checkpoint.done]))]
    for rank, done in enumerate(everywhere):
        if done != everywhere[0]:
            raise FileError(
                f"{run.out}: worker 0 finds a checkpoint after {everywhere[0]} iterations, worker {rank} after "
                f"{done}; all workers must share the folder"
            )
    if checkpoint is None or folder is None:
        return
    if checkpoint.done > run.options.iterations:
        raise ScenarioError(
            f"--iterations: {run.options.iterations}, but {checkpoint.done} are done in {folder}; "
            f"allowed: {checkpoint.done} or more"
        )
    try:
        _restore(run, folder, checkpoint)
    except (LookupError, TypeError, ValueError, RuntimeError) as error:
        what = " ".join(str(error).split())[:200]
        raise FileError(f"{folder}: its tensors are not those of this run: {type(error).__name__}: {what}") from error


def _restore(run: RunState, folder: Path, found: Checkpoint) -> None:
    worker = run.worker
    _refuse_others(run, folder, found)
    with torch.no_grad():
        for name, weight in worker.network.named_parameters():
            saved = found.shared[f"{_WEIGHT}{name}"]
            if saved.shape != weight.shape or not bool(saved.isfinite().all()):
                allowed = f"finite numbers of shape {list(weight.shape)}"
                raise FileError(f"{folder}: {name} is not finite, or of shape {list(saved.shape)}; allowed: {allowed}")
            weight.copy_(saved)
    restore_optimizer(worker.trainer.optimizer, run.names, found.shared)
    rows = {name.removeprefix(_METHOD): rows for name, rows in found.own.items() if name.startswith(_METHOD)}
    worker.method.restore(found.done, rows)
    run.begun = run.done = found.done
    run.best, run.scores = Scores(*found.notes["best"]), Scores(*found.notes["scores"])
    # Traffic of starting and sampling again does not belong to the run.
    run.sent_before = found.own["sent"].numpy() - run.sent()
    run.drawn = int(found.own["drawn"][0]), int(found.own["drawn"][1])
    if run.trace is not None:
        recorded = len(found.own["trace.edges"]) if "trace.edges" in found.own else 0
        if recorded == found.done or (recorded and run.options.save_trace is None):
            bits, edges = (found.own[f"trace.{name}"].numpy() for name in ("bits", "edges"))
            run.trace.restore(bits, edges)
        elif run.options.save_trace is not None:
            raise FileError(f"{folder}: saved without --save-trace: the graphs of its {found.done} iterations are gone")
        else:
            run.trace = None
    home = folder.parent.parent
    if home.resolve() == run.out.resolve():
        run.normed = list(found.notes["norms"])
    if run.first and (home / ITERATIONS).is_file():
        run.rows = list(RunFolder(home).earlier_iterations(found.done))


def _refuse_others(run: RunState, folder: Path, found: Checkpoint) -> None:
    """Raise FileError for a checkpoint without weights of this model, e.g. an older version's."""
    have = set(run.names.values())
    saved = {name.removeprefix(_WEIGHT) for name in found.shared if name.startswith(_WEIGHT)}
    if extra := sorted(saved - have):
        raise FileError(f"{folder}: has {', '.join(extra)}, which this model lacks; made by an older version")


def save(run: RunState) -> None:
    """Write the checkpoint after the iterations so far; all workers call it together.

    Raises FileError if a file cannot be written, and the errors of `same_replicas` and `refuse_bad_weights`.
    """
    worker, done = run.worker, run.done
    same_replicas(worker)
    refuse_bad_weights(worker, done)
    run.keep_norms()
    folder = run.out / CHECKPOINTS
    own = {f"{_METHOD}{name}": tensor for name, tensor in worker.method.state().items()}
    own |= {"sent": torch.from_numpy(run.sent()), "drawn": torch.tensor(run.drawn)}
    if run.trace is not None:
        own |= {f"trace.{name}": torch.from_numpy(array) for name, array in run.trace.state().items()}
    tensors = {f"own.{name}": tensor for name, tensor in own.items()}
    if run.first:
        tensors |= {f"shared.{name}": tensor for name, tensor in _shared(run).items()}
    digest = np.frombuffer(write_part(folder, done, worker.place.rank, tensors), np.uint8)
    parts = [part.tobytes() for part in worker.by_rank(digest)]
    if run.first:
        if run.folder is not None:
            run.folder.write_iterations(run.rows)
        notes = {"best": _listed(run.best), "scores": _listed(run.scores), "norms": run.normed}
        complete(folder, done, worker.identity(), notes, parts)
    run.saved.append(done)


def last_good(run: RunState) -> str:
    """After a loss that is not finite: remove the checkpoint of the bad weights; returns the last good one."""
    folder, saved = run.out / CHECKPOINTS, run.saved
    if saved and saved[-1] == run.done:
        saved.pop()
        if run.first:
            forget(folder, run.done)
    if run.folder is not None:
        run.folder.write_iterations(run.rows)
    if saved:
        return f"the last good checkpoint is {folder / f'{saved[-1]:06d}'}"
    if run.start is not None and run.done > run.begun:
        return f"the last good checkpoint is {run.start}"
    return "no good checkpoint was saved"


def refuse_bad_weights(worker: WorkerState, done: Iteration) -> None:
    """Raise DivergedError if the last step before `done` left weights that are not finite."""
    for name, weight in worker.network.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise DivergedError(f"iteration {done - 1}: its step left values in {name} that are not finite numbers")


def same_replicas(worker: WorkerState) -> None:
    """Compare the weights of all workers bit for bit; raises RuntimeError if they differ."""
    digest = hashlib.sha256()
    for weight in worker.network.parameters():
        digest.update(weight.detach().cpu().numpy().tobytes())
    mine = np.frombuffer(digest.digest(), np.uint8)
    for rank, other in enumerate(worker.by_rank(mine)):
        if not np.array_equal(mine, other):
            raise RuntimeError(f"the weights of worker {rank} differ from those of worker {worker.place.rank}")


def _shared(run: RunState) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {f"{_WEIGHT}{name}": weight for weight, name in run.names.items()}
    return weights | optimizer_tensors(run.worker.trainer.optimizer, run.names)


def _listed(scores: Scores) -> list[float | None]:
    return [scores.train, scores.val, scores.test]
