"""What is told of a kernel that several processes run at once, and of the memory a kernel goes through."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from runtime.microbench import TINY, Measurement, MicrobenchRequest
from runtime.microbench.bench import Bench
from runtime.microbench.maps import learnt_map
from runtime.microbench.sharing import measure


class Channel:
    """Of two processes: the other one takes three times as long."""

    def __init__(self, rank: int) -> None:
        self.rank, self.barriers = rank, 0

    def barrier(self) -> None:
        self.barriers += 1

    def gather(self, own: Tensor) -> list[Tensor]:
        return [own, 3 * own]


def measured(channel: Channel | None) -> list[Measurement]:
    measurements: list[Measurement] = []
    bench = Bench(MicrobenchRequest(TINY), torch.device("cpu"), measurements.append)
    calls: list[int] = []
    measure(bench, [("gemm", {"rows": 3.0}, calls.append)], channel, 1 if channel is None else 2)  # type: ignore[arg-type]
    assert calls[0] == 0
    assert calls[1:] == list(range(len(calls) - 1)), "one call before all begin"
    return measurements


def test_processes_begin_together_and_the_first_tells_the_mean() -> None:
    first, other = Channel(0), Channel(1)
    (measurement,) = measured(first)
    assert measured(other) == []
    assert first.barriers == other.barriers == 1
    assert (measurement.kernel, measurement.params, measurement.processes, measurement.repeats) == (
        "shared_gemm",
        {"rows": 3.0},
        2,
        2,
    )
    assert measurement.low < measurement.seconds < measurement.high
    assert measurement.low + measurement.high == pytest.approx(2 * measurement.seconds)


def test_a_process_alone_asks_nobody() -> None:
    (measurement,) = measured(None)
    assert (measurement.processes, measurement.repeats) == (1, 1)
    assert measurement.low == measurement.seconds == measurement.high


def test_a_map_goes_through_what_it_reads_and_what_it_writes() -> None:
    requested: list[float] = []

    class Asked(Bench):
        def sets(self, nbytes: float, apart: int | None = None) -> int:
            requested.append(nbytes)
            return 2

    learnt_map(Asked(MicrobenchRequest(TINY), torch.device("cpu"), lambda _: None), 100, 8, 24)
    assert requested == [4 * 100 * (8 + 24)]
