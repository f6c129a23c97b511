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
    told: list[Measurement] = []
    bench = Bench(MicrobenchRequest(TINY), torch.device("cpu"), told.append)
    calls: list[int] = []
    measure(bench, [("gemm", {"rows": 3.0}, calls.append)], channel, 1 if channel is None else 2)  # type: ignore[arg-type]
    assert calls[0] == 0
    assert calls[1:] == list(range(len(calls) - 1)), "one call before all begin"
    return told


def test_processes_begin_together_and_the_first_tells_the_mean() -> None:
    first, other = Channel(0), Channel(1)
    (told,) = measured(first)
    assert measured(other) == []
    assert first.barriers == other.barriers == 1
    assert (told.kernel, told.params, told.processes, told.repeats) == ("shared_gemm", {"rows": 3.0}, 2, 2)
    assert told.low < told.seconds < told.high
    assert told.low + told.high == pytest.approx(2 * told.seconds)


def test_a_process_alone_asks_nobody() -> None:
    (told,) = measured(None)
    assert (told.processes, told.repeats) == (1, 1)
    assert told.low == told.seconds == told.high


def test_a_map_goes_through_what_it_reads_and_what_it_writes() -> None:
    asked: list[float] = []

    class Asked(Bench):
        def sets(self, nbytes: float, apart: int | None = None) -> int:
            asked.append(nbytes)
            return 2

    learnt_map(Asked(MicrobenchRequest(TINY), torch.device("cpu"), lambda _: None), 100, 8, 24)
    assert asked == [4 * 100 * (8 + 24)]
