"""Compute while a second thread transfers at a chosen rate: what is hidden is not free."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

import torch

from runtime.exchange import Channel
from runtime.exchange.channels import Message
from runtime.microbench.bench import Bench, Call, no_collector
from runtime.microbench.inputs import Shape, facts_of, matrix_of
from runtime.microbench.maps import learnt_map
from runtime.microbench.sums import product

SMALL: Final = 1 << 12
"""Bytes of a list of ids."""

LARGE: Final = 1 << 18
"""Bytes of a boundary's rows of one layer."""

MBIT: Final = 125_000.0
UNLIMITED: Final = float("inf")
_BEHIND_S: Final = 0.05
"""A pump that is late makes up for no more than this."""


class TrafficGenerator:
    """A thread that exchanges messages with the peer, both ways at once, until rank 0 has it stop.

    Both processes of `channel` make one. Rank 0 keeps the pace, `rate` bytes per second each way; its last message says
    that it is the last.
    """

    def __init__(self, channel: Channel, rate: float, message: int) -> None:
        """Start it. message: bytes, each way."""
        self._channel, self._rate, self._message = channel, rate, message
        self._stop = False
        self._failed: BaseException | None = None
        self.seconds: list[float] = []
        """Of each exchange so far."""
        self._thread = threading.Thread(target=self._run, name="pump", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Wait for its end, which rank 0 asks for; raises what failed in it."""
        self._stop = True
        self._thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        out, into = torch.zeros(self._message // 4), torch.zeros(self._message // 4)
        messages = [Message(1 - self._channel.rank, into, False), Message(1 - self._channel.rank, out, True)]
        due = time.perf_counter()
        last = False
        try:
            while not last:
                if self._channel.rank == 0:
                    due = max(due + self._message / self._rate, time.perf_counter() - _BEHIND_S)
                    time.sleep(max(0.0, due - time.perf_counter()))
                    last = self._stop
                    out[0] = float(last)
                start = time.perf_counter()
                self._channel.exchange(messages)
                self.seconds.append(time.perf_counter() - start)
                last = last or bool(into[0])
        except BaseException as error:
            self._failed = error


@dataclass(frozen=True, slots=True)
class Traffic:
    """request: bytes per second each way, 0 for none. message: bytes."""

    request: float
    message: int


@dataclass(frozen=True, slots=True)
class OverlapResult:
    """What happened in a while of `spent` seconds: of each call, of each exchange."""

    calls: list[float]
    exchanges: list[float]
    spent: float


def measure(bench: Bench, channel: Channel, wire: Channel) -> None:
    """`spmm_beside` and `gemm_beside`, in the first process of `channel` or in both, while their threads use `wire`.

    params: those of the kernel; computing: processes that compute; message: bytes, each way; asked: bytes per second
    each way, 0 for none, left out where nothing limits it; rate: bytes per second each way that there were. seconds:
    the while over the calls in it; low, high: of single calls. `transfer_beside` is one exchange of those transfers,
    the median as of other messages; its params are bytes, computing, asked, and gemm (1 beside gemm, 0 beside spmm).
    """
    for name, params, call in _kernels(bench):
        for computing in bench.budget.of((1,), (1, 2), (1, 2)):
            for traffic in _traffic(bench):
                beside = _beside(bench, channel, wire, traffic, call if channel.rank < computing else None)
                if channel.rank == 0:
                    _record(bench, name, params, {"computing": computing}, traffic, beside)


def _traffic(bench: Bench) -> list[Traffic]:
    rates = bench.budget.of((), (500 * MBIT,), (200 * MBIT, 500 * MBIT, 1_000 * MBIT, 2_000 * MBIT))
    large = [Traffic(rate, LARGE) for rate in (0.0, *rates, UNLIMITED)]
    return [*large, *bench.budget.of([], [], [Traffic(UNLIMITED, SMALL)])]


def _record(
    bench: Bench, name: str, params: dict[str, float], about: dict[str, float], traffic: Traffic, found: OverlapResult
) -> None:
    if traffic.request < UNLIMITED:
        about = about | {"asked": traffic.request}
    rate = {"message": traffic.message, "rate": traffic.message * len(found.exchanges) / found.spent}
    bench.found(f"{name}_beside", params | about | rate, found.calls, 2, found.spent / len(found.calls))
    if found.exchanges:
        size = {"bytes": traffic.message, "gemm": int(name == "gemm")}
        bench.found("transfer_beside", about | size, found.exchanges, 2)


def _beside(bench: Bench, channel: Channel, wire: Channel, traffic: Traffic, call: Call | None) -> OverlapResult:
    """Both processes call this at once; one that computes nothing lets its pump follow the other's."""
    calls: list[float] = []
    if call is not None:
        call(0)
    channel.barrier()
    pump = TrafficGenerator(wire, traffic.request, traffic.message) if traffic.request else None
    begin = time.perf_counter()
    with no_collector():
        while call is not None and time.perf_counter() - begin < bench.budget.window_s:
            start = time.perf_counter()
            call(len(calls))
            calls.append(time.perf_counter() - start)
    spent = time.perf_counter() - begin
    exchanges = list(pump.seconds) if pump is not None else []
    if pump is not None:
        pump.end()
    channel.barrier()
    return OverlapResult(calls, exchanges, spent)


def _kernels(bench: Bench) -> list[tuple[str, dict[str, float], Call]]:
    entries, nodes = bench.budget.of((1_000, 100), (200_000, 10_000), (200_000, 10_000))
    made = Shape(entries, nodes, nodes, skewed=True, local=True).made()
    matrix = matrix_of(made, bench.device, bench.request.aggregator)
    width = bench.budget.of(16, 64, 64)
    rows, d = bench.budget.of((64, 16), (4_096, 128), (4_096, 128))
    return [
        ("spmm", {**facts_of(made), "width": width, "hot": 0}, product(bench, matrix, width)[0]),
        ("gemm", {"rows": rows, "d_in": d, "d_out": d, "bias": 1}, learnt_map(bench, rows, d, d)),
    ]
