"""A run from its first iteration to its last: iterations, evaluations, checkpoints, and output.

Its checkpoints are resumed from, saved and restored here, and all replicas are checked to be equal.
"""

from __future__ import annotations

import hashlib
import math
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.ids import Iteration
from runtime.exchange import LoadedBatch, SampledGraph
from runtime.launch import Watch, disable_malloc_trim
from runtime.model import save_weights
from runtime.record import IterationRow, LossLog, Progress, RunFolder, read_run
from runtime.record.run_folder import ITERATIONS
from runtime.train.checkpoint import (
    Checkpoint,
    complete,
    forget,
    optimizer_tensors,
    read_checkpoint,
    restore_optimizer,
    set_aside,
    starting_point,
    write_part,
)
from runtime.train.earlier_run import CHECKPOINTS
from runtime.train.evaluate import Scores
from runtime.train.loop import DivergedError
from runtime.train.memory_usage import MemoryUsage
from runtime.train.preflight import restarted, writes_folder
from runtime.train.reduce import GlobalSums, LocalSums
from runtime.train.run_state import RunState, no_outcome, run_record
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


BEST = "best.npz"
"""The weights with the best validation accuracy, in the run folder."""

KEPT_GRAPHS = 1000
"""Iterations whose graphs the record keeps unless a trace was requested: a long run's would fill its memory."""


class Session(RunState):
    """One worker's run. Only worker 0 writes output and prints; every worker saves its part of a checkpoint."""

    def __init__(self, worker: WorkerState, watch: Watch) -> None:
        """Restore the checkpoint that the options or a restart require, and open the output files."""
        super().__init__(worker)
        self._watch = watch
        self._scored = False
        self._sent_last = 0
        self.start = starting_point(self.options, self.out)
        resume(self, self.start)
        self.memory = MemoryUsage(self.options, self.begun)
        self.folder = self._opened()
        logs = self.first and self.options.loss_log is not None
        self._log = LossLog(str(self.options.loss_log), self.begun) if logs else None

    def run(self) -> None:
        """Train until the last iteration, or until a worker is asked to stop.

        Raises DivergedError when the loss or a weight is not finite any more.
        """
        options = self.options
        progress = Progress(
            options.iterations,
            self.begun,
            quiet=options.quiet or not self.first,
            json_log=options.json_log and self.first,
        )
        if self.worker.device.type == "cpu":
            disable_malloc_trim()
        self._watch.ready()
        self._sent_last = sum(self.worker.method.bytes_sent().values()) if self.begun else 0
        try:
            while self.done < options.iterations and not self.stopped:
                self._iterate(progress)
            self.worker.method.drain()
            same_replicas(self.worker)
            refuse_bad_weights(self.worker, self.done)
        except DivergedError as error:
            raise DivergedError(f"{error}; {last_good(self)}") from None
        finally:
            progress.close()
            if self._log is not None:
                self._log.close()

    def _iterate(self, progress: Progress) -> None:
        """One iteration with its evaluation, checkpoint and output."""
        t = self.done
        start = time.perf_counter()
        with self.memory.of(t, self.worker):
            sums, graph = self.worker.trainer.iteration(t, self._own())
        seconds = self.worker.trainer.took(time.perf_counter() - start)
        waited = self.worker.recorder.end_iteration()
        self.stopped = sums.stop
        self._took(t, graph)
        self.done = t + 1
        self.memory.after(t, self.worker)
        self._evaluate()
        row = self._row(t, seconds, sums, waited)
        self.rows.append(row)
        if self._log is not None:
            self._log.add(row.iteration, math.nan if row.loss is None else row.loss)
        progress.show(row)
        if self._due():
            save(self)

    def _opened(self) -> RunFolder | None:
        """The run folder if this worker writes one; checkpoints of an earlier run are moved away."""
        if not (self.first and writes_folder(self.options)):
            return None
        if self.begun == self.options.iterations and _finished(self.out):
            return None
        folder = RunFolder(self.out)
        home = self.out / CHECKPOINTS
        if not restarted() and (self.start is None or home.resolve() not in self.start.resolve().parents):
            set_aside(home)
        # At once, so that the remains of an interrupted run are recognised as a run.
        folder.write_record(run_record(self, no_outcome(self.worker.place.world), None))
        folder.write_iterations(self.rows)
        if self.start is not None:
            self._bring_best(self.start.parent.parent / BEST)
        return folder

    def _bring_best(self, earlier: Path) -> None:
        """Copy the best weights of the resumed run, if they are in another folder."""
        if earlier.is_file() and earlier.resolve() != (self.out / BEST).resolve():
            with atomic_write(self.out / BEST) as file:
                file.write(earlier.read_bytes())

    def _due(self) -> bool:
        """Whether to save now: at the checkpoint interval, and when asked to stop."""
        every = self.options.checkpoint_every
        return bool((every and self.done % every == 0) or (self.stopped and writes_folder(self.options)))

    def _own(self) -> LocalSums:
        """This worker's extras for the next iteration."""
        total = sum(self.worker.method.bytes_sent().values())
        sent, self._sent_last = total - self._sent_last, total
        return LocalSums(self._watch.stop, sent)

    def _took(self, t: Iteration, graph: SampledGraph | LoadedBatch) -> None:
        """Record iteration t."""
        self.drawn = self.drawn[0] + graph.hits, self.drawn[1] + graph.rows
        if self.trace is not None and (self.options.save_trace is not None or t < KEPT_GRAPHS):
            self.trace.add(graph)
        if self.worker.trainer.measured is not None and self.options.record:
            self._norms[t] = self.worker.trainer.measured.cpu().numpy()

    def _evaluate(self) -> None:
        every = self.options.eval_every
        last = self.done == self.options.iterations or self.stopped
        evaluator = self.worker.evaluator
        self._scored = evaluator is not None and (last or bool(every and self.done % every == 0))
        if evaluator is None or not self._scored:
            return
        start = time.perf_counter()
        trainer = self.worker.trainer
        self.scores = evaluator.scores(self.worker.network, trainer.x, trainer.fixed)
        # Without validation nodes the best weights are unknown: the last ones count.
        if self.scores.val is None or self.best.val is None or self.scores.val > self.best.val:
            self.best = self.scores
            if self.folder is not None:
                save_weights(self.out / BEST, self.worker.network)
        self.evaluation_s += time.perf_counter() - start

    def _row(self, t: Iteration, seconds: float, sums: GlobalSums, waited: float) -> IterationRow:
        return IterationRow(
            iteration=t,
            seconds=seconds,
            loss=sums.loss,
            train_accuracy=None if sums.loss is None else sums.correct / max(1, sums.trained),
            val_accuracy=self.scores.val if self._scored else None,
            bytes_sent=sums.nbytes,
            hit_rate=sums.hits / sums.lookups if self.cached and sums.lookups else None,
            wait_s=waited if self.options.record else None,
        )


def _finished(out: Path) -> bool:
    """Whether `out` contains the record of a run that finished all its iterations."""
    try:
        return read_run(out).record.finished
    except FileError:
        return False
