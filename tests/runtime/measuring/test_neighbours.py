"""Processes that train on the other cores while parts are measured."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from gcnsim.core.processes import cores
from runtime.measuring.neighbours import Neighbours, cores_apart, on_cores
from tests.runtime.conftest import MakeOptions

HERE = sorted(os.sched_getaffinity(0))[: cores()]


@pytest.fixture
def neighbours(options: MakeOptions) -> Iterator[Neighbours]:
    """One process, which has read the graph."""
    settings = [options(method, knobs, workers=2) for method, knobs in (("full-graph", {}), ("psc-gcn", {"tau": 1}))]
    started = Neighbours(settings, [HERE[-1:]], None)
    try:
        started.wait()
        yield started
    finally:
        started.close()


def processor_s(process: int) -> float:
    """Seconds that the process ran."""
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_neighbour_trains_what_it_was_told_on_its_core(neighbours: Neighbours) -> None:
    (process,) = neighbours.processes
    for setting in (0, 1, 0):
        neighbours.train(setting)
        before, end = processor_s(process.pid), time.monotonic() + 30
        while processor_s(process.pid) < before + 0.3:
            assert time.monotonic() < end, f"setting {setting}: it does not train"
            time.sleep(0.02)
        assert neighbours.count == 1
    assert os.sched_getaffinity(process.pid) == set(HERE[-1:])
    neighbours.close()
    assert neighbours.count == 0


def test_one_that_ended_is_not_counted(neighbours: Neighbours) -> None:
    neighbours.processes[0].kill()
    neighbours.processes[0].wait()
    assert neighbours.count == 0
    neighbours.train(0)
    neighbours.wait()


def test_each_process_has_as_many_cores_as_a_part_has_threads() -> None:
    assert cores_apart(1, 99) == [[core] for core in HERE]
    assert cores_apart(1, 1) == [HERE[:1]]
    assert cores_apart(len(HERE), 99) == [HERE]
    assert cores_apart(len(HERE) + 1, 99) == [HERE]


def test_afterwards_a_thread_may_use_all_cores_again() -> None:
    with on_cores(HERE[:1]):
        assert os.sched_getaffinity(0) == set(HERE[:1])
    assert os.sched_getaffinity(0) >= set(HERE)
