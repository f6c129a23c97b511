"""A run from its first iteration to its last: iterations, evaluations, checkpoints, and output."""

from __future__ import annotations

import math
import time
from pathlib import Path

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError
from gcnsim.core.ids import Iteration
from runtime.exchange import LoadedBatch, SampledGraph
from runtime.launch import Watch, disable_malloc_trim
from runtime.model import save_weights
from runtime.record import IterationRow, LossLog, Progress, RunFolder, read_run
from runtime.train.checkpoint.files import CHECKPOINTS, set_aside, starting_point
from runtime.train.checkpoint.state import (
    last_good,
    refuse_bad_weights,
    resume,
    same_replicas,
    save,
)
from runtime.train.loop import DivergedError
from runtime.train.memory_usage import MemoryUsage
from runtime.train.preflight import restarted, writes_folder
from runtime.train.reduce import GlobalSums, LocalSums
from runtime.train.run_state import RunState, no_outcome, run_record
from runtime.train.setup import WorkerState

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
