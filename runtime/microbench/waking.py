"""A small message and its answer, alone and while every process trains: what waits for a core that a message wakes.

A thread that exchanges sleeps until its peer answers, and then needs a core again, which trains meanwhile; in Python it
needs the interpreter too, which the training thread of its own process holds. So short exchanges of a run last longer
than their messages.
"""

from __future__ import annotations

import threading
import time
from statistics import fmean
from typing import Final

import torch

from runtime.exchange import Channel
from runtime.exchange.channels import Message
from runtime.microbench.bench import Bench, Call, no_collector

APART_S: Final = 2e-3
"""Between two exchanges their thread sleeps, as between the layers of an iteration."""


class Answers:
    """A thread of each of the first two processes: one sends 4 bytes, the other answers, until the first has enough."""

    def __init__(self, wire: Channel) -> None:
        """Start it. wire: between the two, used by nobody else meanwhile."""
        self._wire, self._enough = wire, threading.Event()
        self._failed: BaseException | None = None
        self.seconds: list[float] = []
        """Of each message with its answer."""
        self._thread = threading.Thread(target=self._run, name="answers", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for the last answer, which the first process asks for; raises what failed meanwhile."""
        self._enough.set()
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        peer, ball = 1 - self._wire.rank, torch.zeros(1)
        ways = [[Message(peer, ball, outgoing)] for outgoing in (True, False)]
        last = False
        try:
            while not last:
                if self._wire.rank == 0:
                    time.sleep(APART_S)
                    last = self._enough.is_set() and bool(self.seconds)
                    ball[0] = float(last)
                start = time.perf_counter()
                for messages in ways[:: 1 if self._wire.rank == 0 else -1]:
                    self._wire.exchange(messages)
                seconds = time.perf_counter() - start
                last = bool(ball[0])
                if not last:
                    self.seconds.append(seconds)
        except BaseException as error:
            self._failed = error


def measure(bench: Bench, train: Call, channel: Channel, wire: Channel, processes: int) -> None:
    """`answer` and `answer_beside`: alone, and while all `processes` of `channel` train; and their processor times.

    params: bytes. seconds: the mean, since an iteration waits for all of its exchanges. `answer_cpu` and
    `answer_beside_cpu` are of the process that answers, which does not sleep between, all its threads but the training.
    """
    for name, trains in (("answer", False), ("answer_beside", True)):
        train(0)
        channel.barrier()
        answers = Answers(wire) if channel.rank < 2 else None
        begin, others = time.perf_counter(), _others_s()
        with no_collector():
            while (spent := time.perf_counter() - begin) < bench.budget.window_s:
                if trains:
                    train(0)
                else:
                    time.sleep(bench.budget.window_s - spent)
        if answers is not None:
            answers.end()
        count = 0 if answers is None else len(answers.seconds)
        own = torch.tensor([(_others_s() - others) / max(count, 1)], dtype=torch.float64)
        every = [float(tensor) for tensor in channel.gather(own)]
        if answers is not None and channel.rank == 0:
            bench.found(name, {"bytes": 4}, answers.seconds, processes, fmean(answers.seconds))
            bench.found(f"{name}_cpu", {"bytes": 4}, [every[1]], processes)
        channel.barrier()


def _others_s() -> float:
    """Processor seconds of this process's other threads so far."""
    return time.process_time() - time.thread_time()
