from __future__ import annotations

import pytest

from gcnsim.cost import Memory
from gcnsim.report.figures.memory import memory_data, memory_figure
from gcnsim.results import MemoryReport

GIB = 2.0**30
ONE = Memory(1 * GIB, 0.5 * GIB, 2 * GIB, 0.25 * GIB, 0.0, 0.01 * GIB, 0.01 * GIB, 0.02 * GIB, 0.5 * GIB)
TWO = Memory(2 * GIB, 0.5 * GIB, 2 * GIB, 0.25 * GIB, 0.0, 0.01 * GIB, 0.01 * GIB, 0.02 * GIB, 0.5 * GIB)
REPORT = MemoryReport(16 * GIB, (16 * GIB, 16 * GIB), 1, 0.5 * GIB, True, None, (ONE, TWO))


def test_memory_by_value() -> None:
    data = memory_data(REPORT)
    assert [worker.worker for worker in data.workers] == [0, 1]
    assert data.workers[1].total == pytest.approx(TWO.total + 0.5 * GIB)
    assert data.workers[0].nbytes["activations"] == 2 * GIB
    assert (data.unit, data.unit_size, data.left_out) == ("GiB", GIB, 0)
    assert "cache" not in [name for name, _, _ in data.legend]


def test_of_many_the_tightest_is_shown() -> None:
    data = memory_data(REPORT, most=1)
    assert [worker.worker for worker in data.workers] == [1]
    assert data.left_out == 1


def test_bars_stack_up_to_the_total_and_the_device_is_marked() -> None:
    traces = memory_figure(memory_data(REPORT)).to_dict()["data"]
    bars = [trace for trace in traces if trace["type"] == "bar"]
    assert sum(trace["x"][1] for trace in bars) == pytest.approx(TWO.total / GIB + 0.5)
    assert tuple(traces[-1]["x"]) == (16.0, 16.0)
    assert traces[-1]["customdata"][0] == "worker 0: the device has 16.0 GiB"


def test_a_device_of_unknown_size_has_no_mark() -> None:
    unknown = MemoryReport(None, None, 0, 0.0, None, None, (ONE,))
    assert all(trace["type"] == "bar" for trace in memory_figure(memory_data(unknown)).to_dict()["data"])
