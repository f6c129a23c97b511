"""How training nodes lie in the parts: where each worker trains its own, the one with the most decides an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gcnsim.errors import plural
from gcnsim.ids import Int32Array, IntArray, Iteration, Rank
from gcnsim.methods import NeighbourBatches
from gcnsim.partition import TRAINING_NODES
from gcnsim.sampling import passes
from gcnsim.scenario import Scenario

NOTEWORTHY: Final = 1.05
"""Training nodes of the worker with the most over the mean, from which on even ones would shorten an epoch."""


@dataclass(frozen=True, slots=True)
class TrainingShares:
    """Of one setting. worker: the one with the most training nodes; most, total: its own and all of them. batch: how
    many it trains in an iteration at most; epoch, even_epoch: iterations of an epoch, now and with even shares.
    hint: what evens them out, in words.
    """

    method: str
    worker: Rank
    most: int
    total: int
    workers: int
    batch: int
    epoch: Iteration
    even_epoch: Iteration
    hint: str = ""

    @property
    def even(self) -> int:
        """Training nodes of the worker with the most, if they were shared evenly."""
        return -(-self.total // self.workers)

    @property
    def uneven(self) -> bool:
        """Whether even training nodes would shorten an epoch: by iterations, or by smaller ones where it has one."""
        longer = self.epoch > self.even_epoch or self.epoch == 1
        return longer and self.most * self.workers >= NOTEWORTHY * self.total

    @property
    def text(self) -> str:
        """What the worker with the most makes of an epoch."""
        whose = f"all {self.total:,}" if self.most == self.total else f"{self.most:,} of the {self.total:,}"
        if self.epoch > self.even_epoch:
            makes = f"an epoch takes {plural(self.epoch, 'iteration')}, {self.even_epoch:,} if they were even"
        else:
            makes = f"its batch holds {self.most:,}, {self.even:,} if they were even"
        return (
            f"{self.method}, batch {self.batch:,}: worker {self.worker} has {whose} training nodes: {makes}{self.hint}"
        )


def trains_own(scenario: Scenario) -> bool:
    """Whether each of several workers trains the training nodes of its own part."""
    method = scenario.method
    return isinstance(method, NeighbourBatches) and method.trains == "own" and scenario.cluster.gpus > 1


def training_shares(scenario: Scenario, training: IntArray, owner: Int32Array) -> TrainingShares | None:
    """How the nodes `training` lie in the parts of `owner`, int32[N]; None of methods without batches of them."""
    method, workers = scenario.method, scenario.cluster.gpus
    if not isinstance(method, NeighbourBatches):
        return None
    spec = scenario.partition
    balances = spec.file is None and spec.balance != TRAINING_NODES
    counts = np.bincount(owner[training], minlength=workers)
    most = int(counts.max())
    return TrainingShares(
        method=method.name,
        worker=int(counts.argmax()),
        most=most,
        total=int(training.size),
        workers=workers,
        batch=method.batch,
        epoch=passes(workers * most, workers, method.batch),
        even_epoch=passes(int(training.size), workers, method.batch),
        hint=f"; partition.balance: {TRAINING_NODES} evens them out" if balances else "",
    )
