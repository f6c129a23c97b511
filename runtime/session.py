"""A run from its first iteration to its last: iterations, evaluations, checkpoints, and what is told of them."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gcnsim.caching import CacheSize
from gcnsim.errors import FileError
from gcnsim.ids import AnyArray, Iteration
from runtime.checkpoint import (
    complete,
    latest,
    optimizer_tensors,
    read_checkpoint,
    restore_optimizer,
    write_part,
)
from runtime.evaluate import Scores
from runtime.exchange import Drawn
from runtime.facts import nothing_yet, run_record
from runtime.launch import Watch
from runtime.model import save_weights
from runtime.record import IterationRow, LossLog, Progress, RunFolder
from runtime.reduce import Own, Sums
from runtime.setup import Ready
from runtime.traces import TraceRecord

NONE = Scores(None, None, None)


class Session:
    """One worker's run. Only worker 0 writes and talks; every worker saves its part of a checkpoint."""

    def __init__(self, ready: Ready, watch: Watch) -> None:
        """Open what is written to, and go back to the checkpoint that the options or a restart ask for."""
        self.ready, self.options, self._watch = ready, ready.options, watch
        self.first = ready.place.rank == 0
        self.out = Path(self.options.out or "run")
        wanted = self.options.record or self.options.checkpoint_every > 0
        self.folder = RunFolder(self.out) if self.first and wanted else None
        self.begun: Iteration = 0
        self.rows: list[IterationRow] = []
        self.best = NONE
        self.scores = NONE
        self.evaluation_s = 0.0
        self.norms: dict[Iteration, AnyArray] = {}
        self.stopped = False
        self.scored = False
        size = self.options.knobs.get("cache")
        self.cached = isinstance(size, CacheSize) and not size.empty
        self.drawn: tuple[int, int] = (0, 0)
        self.trace = TraceRecord(ready) if self.options.save_trace is not None else None
        self._sent_before = 0
        self._names = {weight: name for name, weight in ready.network.named_parameters()}
        part = ready.share.part
        sizes = by_rank(ready, np.array([part.inner_nodes, part.boundary_nodes], np.int64))
        self.inner = tuple(int(found[0]) for found in sizes)
        self.boundary = tuple(int(found[1]) for found in sizes)
        self._resume()
        if self.folder is not None:
            # At once, so that what an interrupted run leaves is known to be a run.
            self.folder.write_iterations(self.rows)
            self.folder.write_record(run_record(self, nothing_yet(ready.place.world), None))
        self._log = None
        if self.first and self.options.loss_log is not None:
            self._log = LossLog(self.options.loss_log, self.begun)

    def run(self) -> None:
        """Train until the last iteration, or until a worker is asked to stop."""
        options = self.options
        progress = Progress(
            options.iterations,
            self.begun,
            quiet=options.quiet or not self.first,
            json_log=options.json_log and self.first,
        )
        self._watch.ready()
        own = Own()
        t = self.begun
        try:
            while t < options.iterations and not self.stopped:
                start = time.perf_counter()
                sums, drawn = self.ready.trainer.iteration(t, self._own(own))
                seconds = time.perf_counter() - start
                own = Own(hits=drawn.hits, asked=drawn.rows)
                waited = self.ready.recorder.end_iteration()
                self.stopped = sums.stop
                self._took(t, drawn)
                t += 1
                self._evaluate(t)
                row = self._row(t - 1, seconds, sums, waited)
                self.rows.append(row)
                if self._log is not None:
                    self._log.add(row.iteration, row.loss)
                progress.show(row)
                if self._due(t):
                    self.save(t)
        finally:
            progress.close()
            if self._log is not None:
                self._log.close()
        self.ready.method.drain()
        self.same_replicas()

    def _due(self, done: Iteration) -> bool:
        """Whether to save after `done` iterations: every so many, and when asked to stop."""
        every = self.options.checkpoint_every
        return bool((every and done % every == 0) or (self.stopped and (every or self.options.record)))

    def save(self, done: Iteration) -> None:
        """Write the checkpoint after `done` iterations; all workers together."""
        self.same_replicas()
        folder = self.out / "checkpoints"
        tensors = {f"own.{name}": tensor for name, tensor in self.ready.method.state().items()}
        if self.first:
            shared: dict[str, Tensor] = {f"weight.{name}": weight for weight, name in self._names.items()}
            shared |= optimizer_tensors(self.ready.trainer.optimizer, self._names)
            tensors |= {f"shared.{name}": tensor for name, tensor in shared.items()}
        write_part(folder, done, self.ready.place.rank, tensors)
        if self.ready.control is not None:
            self.ready.control.barrier()
        if self.first:
            notes = {"best": _listed(self.best), "scores": _listed(self.scores)}
            complete(folder, done, self.ready.identity(), notes)

    def same_replicas(self) -> None:
        """Compare the weights of all workers bit for bit; raises RuntimeError when they differ."""
        if self.ready.control is None:
            return
        digest = hashlib.sha256()
        for weight in self._names:
            digest.update(weight.detach().cpu().numpy().tobytes())
        mine = torch.frombuffer(bytearray(digest.digest()), dtype=torch.uint8)
        for rank, other in enumerate(self.ready.control.gather(mine)):
            if not torch.equal(mine, other):
                raise RuntimeError(f"the weights of worker {rank} differ from those of worker {self.ready.place.rank}")

    def _resume(self) -> None:
        """Restore the checkpoint asked for, or after a restart by torchrun the last one, if there is any."""
        place = None
        if self.options.resume is not None:
            asked = Path(self.options.resume)
            place = asked if (asked / "state.json").is_file() else latest(asked / "checkpoints") or latest(asked)
            if place is None:
                raise FileError(f"--resume: {asked} holds no whole checkpoint")
        elif int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") or "0"):
            place = latest(self.out / "checkpoints")
        if place is None:
            return
        found = read_checkpoint(place, self.ready.place.rank, self.ready.identity())
        with torch.no_grad():
            for weight, name in self._names.items():
                weight.copy_(found.shared[f"weight.{name}"])
        restore_optimizer(self.ready.trainer.optimizer, self._names, found.shared)
        self.ready.method.restore(found.done, found.own)
        self.begun = found.done
        self.best, self.scores = Scores(*found.notes["best"]), Scores(*found.notes["scores"])
        if self.folder is not None:
            self.rows = list(self.folder.earlier_iterations(found.done))

    def _own(self, own: Own) -> Own:
        """This worker's extras for the next iteration."""
        total = sum(self.ready.method.bytes_sent().values())
        sent, self._sent_before = total - self._sent_before, total
        return Own(self._watch.stop, sent, own.hits, own.asked)

    def _took(self, t: Iteration, drawn: Drawn) -> None:
        """Keep what the record needs of iteration t."""
        self.drawn = self.drawn[0] + drawn.hits, self.drawn[1] + drawn.rows
        if self.trace is not None:
            self.trace.add(drawn)
        if self.ready.trainer.measured is not None and self.options.record:
            self.norms[t] = self.ready.trainer.measured.cpu().numpy()

    def _evaluate(self, done: Iteration) -> None:
        options = self.options
        last = done == options.iterations or self.stopped
        if not last and (not options.eval_every or done % options.eval_every):
            self.scored = False
            return
        start = time.perf_counter()
        trainer = self.ready.trainer
        self.scores = self.ready.evaluator.scores(self.ready.network, trainer.x, trainer.fixed)
        self.scored = True
        known = self.best.val if self.best.val is not None else -1.0
        if (self.scores.val if self.scores.val is not None else 0.0) > known:
            self.best = self.scores
            if self.folder is not None:
                save_weights(self.out / "best.npz", self.ready.network)
        self.evaluation_s += time.perf_counter() - start

    def _row(self, t: Iteration, seconds: float, sums: Sums, waited: float) -> IterationRow:
        return IterationRow(
            iteration=t,
            seconds=seconds,
            loss=sums.loss,
            train_accuracy=sums.correct / self.ready.share.train_total,
            val_accuracy=self.scores.val if self.scored else None,
            bytes_sent=sums.nbytes,
            hit_rate=sums.hits / sums.asked if self.cached and sums.asked else None,
            wait_s=waited if self.options.record else None,
        )


def _listed(scores: Scores) -> list[float | None]:
    return [scores.train, scores.val, scores.test]


def by_rank(ready: Ready, array: AnyArray) -> list[AnyArray]:
    """Every worker's array of the same type, shapes may differ in the first axis; on every rank."""
    if ready.control is None:
        return [array]
    flat = np.ascontiguousarray(array)
    found = ready.control.gather_arrays(flat.tobytes())
    return [np.frombuffer(raw, flat.dtype).reshape((-1, *flat.shape[1:])) for raw in found]
