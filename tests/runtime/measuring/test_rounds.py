"""Which parts stay in memory from turn to turn, on a GPU that this machine need not have."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from runtime.data import DatasetCache
from runtime.measuring.memory import GpuPeak, free_on_gpu
from runtime.measuring.part import PartRecord
from runtime.measuring.rounds import Setting
from tests.runtime.conftest import MakeOptions

GPU = torch.device("cuda")


class Gpu:
    """Bytes of a GPU of 1000: allocated now, allocated at most, and the runs of parts that hold 100 each."""

    def __init__(self) -> None:
        self.allocated = self.most = 0
        self.made: list[int] = []
        self.held: set[int] = set()
        self.room = 10

    def hold(self, nbytes: int) -> None:
        self.allocated += nbytes
        self.most = max(self.most, self.allocated)

    def reset(self, _: Any) -> None:
        self.most = self.allocated


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    found = Gpu()
    replaced: dict[str, Any] = {
        "mem_get_info": lambda _: (900 - found.allocated, 1000),
        "memory_reserved": lambda _: found.allocated + 50,
        "memory_allocated": lambda _: found.allocated,
        "max_memory_allocated": lambda _: found.most,
        "reset_peak_memory_stats": found.reset,
        "empty_cache": lambda: None,
    }
    for name, value in replaced.items():
        monkeypatch.setattr(torch.cuda, name, value)

    class Run:
        """A part that trains for no time."""

        def __init__(self, record: PartRecord, *_: Any) -> None:
            if len(found.held) >= found.room:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 3.00 GiB.")
            self.record = record
            found.made.append(record.rank)
            found.held.add(record.rank)

        def train(self, iterations: int, *, measured: bool) -> list[float]:
            return [0.001] * iterations

        def turn(self, iterations: int) -> list[float]:
            self.record.rounds.append(0.001)
            self.record.seconds += [0.001] * iterations
            return [0.001] * iterations

        def close(self) -> None:
            found.held.remove(self.record.rank)

        abandon = close

    monkeypatch.setattr("runtime.measuring.rounds.PartRun", Run)
    return found


def setting(monkeypatch: pytest.MonkeyPatch, options: MakeOptions, needed: int) -> Setting:
    monkeypatch.setattr(Setting, "_needed", lambda self, rank: needed)
    return Setting(options(workers=3), GPU, DatasetCache(), lambda _: None)


@pytest.mark.parametrize(("needed", "stay"), [(150, True), (160, False)])
def test_parts_stay_on_a_gpu_that_has_twice_what_they_need(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, options: MakeOptions, needed: int, stay: bool
) -> None:
    assert free_on_gpu(GPU) == 950
    found = setting(monkeypatch, options, needed).measured(0.01)
    assert found.known
    assert (len(gpu.made) == 3) == stay
    assert not gpu.held


def test_host_memory_must_have_room_too(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, options: MakeOptions) -> None:
    monkeypatch.setattr("runtime.measuring.rounds.free_bytes", lambda: 299)
    setting(monkeypatch, options, 100).measured(0.01)
    assert len(gpu.made) > 3


@pytest.mark.parametrize(("cache", "stay"), [("40%", True), ("auto", False)])
def test_parts_whose_caches_fill_the_memory_take_turns(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, options: MakeOptions, cache: str, stay: bool
) -> None:
    monkeypatch.setattr(Setting, "_needed", lambda self, rank: 10)
    Setting(options("pagraph", {"cache": cache}, workers=3), GPU, DatasetCache(), lambda _: None).measured(0.01)
    assert (len(gpu.made) == 3) == stay


@pytest.mark.parametrize("room", [1, 2])
def test_a_part_without_room_beside_others_is_measured_alone(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, options: MakeOptions, room: int
) -> None:
    gpu.room = room
    found = setting(monkeypatch, options, 100).measured(0.01)
    assert [part.skipped for part in found.parts] == [None] * 3
    assert all(part.iterations for part in found.parts)
    assert not gpu.held


def test_the_peak_of_a_part_is_its_own(gpu: Gpu) -> None:
    gpu.hold(70)  # of others
    peak = GpuPeak(GPU)
    gpu.hold(30)  # what it keeps
    peak.begin()
    gpu.hold(25)
    gpu.hold(-25)
    peak.end()
    assert peak.nbytes == 55
    gpu.hold(400)  # another part comes,
    gpu.hold(-70)  # and the first ones go
    peak.begin()
    gpu.hold(35)
    gpu.hold(-35)
    peak.end()
    assert peak.nbytes == 65
