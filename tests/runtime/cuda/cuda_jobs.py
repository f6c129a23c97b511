"""What ranks of a test do on a GPU that several of them share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

import runtime.aggregate.matrix
from gcnsim.core.ids import AnyArray
from gcnsim.timeline import Timeline
from runtime.launch import Place
from runtime.options import Options
from runtime.train.evaluate import Scores
from runtime.train.reduce import LocalSums
from tests.runtime.jobs import ready_at
from tests.runtime.train.test_equality import close

ALONE = Place(0, 1, 0, 1, True)
CYCLES = 400_000
"""Clock cycles of a GPU, about 0.2 ms."""


@dataclass(frozen=True)
class Followed:
    """One rank's run. weights: at the end, by name. timeline: of its spans. ends: of iterations, ps since the run's
    begin; the last one is when the GPU had done everything."""

    losses: list[float]
    weights: dict[str, AnyArray]
    scores: Scores
    sent: dict[tuple[int, str], int]
    timeline: Timeline
    ends: list[int]


def followed(place: Place, options: Options, late: bool = False) -> Followed:
    """Train without reading anything in between, so that nothing waits for the GPU that a run would not wait for.

    late: every product is preceded by idle time on the compute stream, so that whatever reads its result without
    waiting reads too early.
    """
    if options.backend == "nccl":
        # Two ranks of one host may not share a GPU; of two hosts they may.
        os.environ |= {"NCCL_HOSTID": f"host-{place.rank}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1"}
    with _late_products() if late else _as_usual():
        ready = ready_at(place, options)
        begin, losses, ends = time.perf_counter_ns(), [], []
        for t in range(options.iterations):
            sums, _ = ready.trainer.iteration(t, LocalSums())
            ready.recorder.end_iteration()
            assert sums.loss is not None
            losses.append(sums.loss)
            ends.append(1000 * (time.perf_counter_ns() - begin))
        ready.method.drain()
        if ready.device.type == "cuda":
            torch.cuda.synchronize()
        ends[-1] = 1000 * (time.perf_counter_ns() - begin)
        assert ready.evaluator is not None
        scores = ready.evaluator.scores(ready.network, ready.trainer.x, ready.trainer.fixed)
        weights = {name: weight.detach().cpu().numpy().copy() for name, weight in ready.network.named_parameters()}
        timeline = ready.recorder.timeline(begin)
        ready.method.close()
        sent = ready.method.bytes_sent()
    if options.backend == "nccl" and ready.control is not None:
        ready.control.barrier()
        ready.channels.close()
    return Followed(losses, weights, scores, sent, timeline, ends)


def same(found: list[Followed], wanted: list[Followed], bound: float) -> None:
    """Losses, weights and scores of two runs; the ranks of one have the same bits."""
    close(np.array(found[0].losses), np.array(wanted[0].losses), "losses", bound)
    for name, weight in wanted[0].weights.items():
        close(found[0].weights[name], weight, name, bound)
        assert all(np.array_equal(other.weights[name], found[0].weights[name]) for other in found), f"replicas: {name}"
    assert [one.scores for one in found] == [one.scores for one in wanted]
    assert [one.sent for one in found] == [one.sent for one in wanted]


@contextmanager
def _as_usual() -> Iterator[None]:
    yield


@contextmanager
def _late_products() -> Iterator[None]:
    usual = runtime.aggregate.matrix._product

    def late(matrix: Tensor, x: Tensor, out: Tensor, add: bool) -> None:
        if x.is_cuda:
            sleep: Any = torch.cuda._sleep
            sleep(CYCLES)
        usual(matrix, x, out, add)

    runtime.aggregate.matrix._product = late
    try:
        yield
    finally:
        runtime.aggregate.matrix._product = usual
