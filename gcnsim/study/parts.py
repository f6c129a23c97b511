"""Where each worker's iteration goes, in parts that add up to it.

Finer than `Metrics`, and of every worker: exposed communication is told apart by what is under way meanwhile, and what
is neither computation nor communication by what it does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gcnsim.engine import Run
from gcnsim.ids import BoolArray, Rank, Seconds
from gcnsim.study.measured import MeasuredRun
from gcnsim.timeline import PS_PER_S, Intervals, OpKind, Phase


@dataclass(frozen=True, slots=True)
class Parts:
    """One worker's mean iteration, in seconds.

    compute_s: its kernels. Exposed communication: handling_s, received rows are taken in; network_s, a message of rows
    from or to it is under way; copies_s, rows are packed or copied between device and host; reduce_s, the all-reduce;
    waiting_s, none of these: a peer is not as far. The rest: exposed_sampling_s, optimizer_s, rest_s. hidden_comm_s:
    its transfers beneath other work, no part of the iteration.
    """

    worker: Rank
    compute_s: Seconds
    handling_s: Seconds
    network_s: Seconds
    copies_s: Seconds
    reduce_s: Seconds
    waiting_s: Seconds
    exposed_sampling_s: Seconds
    optimizer_s: Seconds
    rest_s: Seconds
    hidden_comm_s: Seconds


COMMUNICATION = ("handling_s", "network_s", "copies_s", "reduce_s", "waiting_s")
OTHER = ("exposed_sampling_s", "optimizer_s", "rest_s")

ROUNDING = 1e-9
"""Share of an iteration that its parts may miss by arithmetic alone."""


def worker_parts(run: Run, first: int) -> tuple[Parts, ...]:
    """Per worker, where the iterations from `first` (at least 1) to the end of `run` went."""
    return _Told(run, first).workers()


def made_up(workers: Sequence[Parts], slowest: Rank, iteration_s: Seconds) -> tuple[Parts, ...]:
    """The workers' parts of an iteration of `iteration_s` seconds, where more was put off than its run shows.

    Queues still to be emptied (`gcnsim.study.metrics.at_least`) are messages of rows under way, on every worker.
    """
    own = workers[slowest]
    owed = iteration_s - sum(getattr(own, name) for name in ("compute_s", *COMMUNICATION, *OTHER))
    if owed <= ROUNDING * iteration_s:
        return tuple(workers)
    return tuple(replace(each, network_s=each.network_s + owed) for each in workers)


class _Told(MeasuredRun):
    def workers(self) -> tuple[Parts, ...]:
        return tuple(self.worker_parts(rank) for rank in range(self.schedule.workers))

    @cached_property
    def kinds(self) -> dict[str, BoolArray]:
        """Per word, the ops it means."""
        kind = np.array([op.kind for op in self.schedule.ops])
        return {
            "network": kind == OpKind.WIRE,
            "copies": (self.phase == Phase.TRANSFER) & (kind != OpKind.WIRE),
            "reduce": self.phase == Phase.REDUCE,
            "optimizer": self.phase == Phase.OPTIMIZER,
        }

    def worker_parts(self, rank: Rank) -> Parts:
        split, near = self.split(rank), (self.worker == rank) | (self.peer == rank)
        left, seconds = split.exposed.minus(split.handling), {"handling": split.handling.length}
        for word in ("network", "copies", "reduce"):
            under_way = self.spans(near & self.kinds[word], rank)
            seconds[word] = left.both(under_way).length
            left = left.minus(under_way)
        start, end = self.edges(rank)
        whole = Intervals.of(np.array([start], np.int64), np.array([end], np.int64))
        other = whole.minus(self.computing(rank)).minus(split.exposed)
        # The GPU's own stream comes first: a step is a step, whatever its sampler does beneath it.
        for word, ops in (("optimizer", self.kinds["optimizer"]), ("exposed_sampling", self.is_sampling)):
            doing = self.spans((self.worker == rank) & ops, rank)
            seconds[word] = other.both(doing).length
            other = other.minus(doing)
        seconds |= {"compute": split.compute, "waiting": left.length, "rest": other.length}
        seconds["hidden_comm"] = split.transfers.minus(split.exposed).length
        scale = 1.0 / (self.count * PS_PER_S)
        return Parts(rank, **{f"{word}_s": length * scale for word, length in seconds.items()})
